"""The verb serve: the HTTP API, in one process or in several on one port. Each also sends webhooks.

    serve                     one process
    serve --processes N       a supervisor and N workers: `serve --share-port`, each with its own store connection and
                              one subscription to the tracker's events

The workers share the port (SO_REUSEPORT): the kernel gives each new connection to one of them. A worker that dies is
restarted; its connections break, and clients repeat (safely, with an Idempotency-Key).
"""

import asyncio
import logging
import socket
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from cli.client.own_server import stored_api_key
from cli.command import SUCCESS, Command, CommandFailed
from cli.commands.start.installation import ada_child, start_required
from cli.processes.forked_process import start_fork_server
from cli.processes.noted_process import noted_process
from cli.processes.startup import (
    bind,
    cannot_listen,
    collect_garbage_less_often,
    configure_logging,
    run_until,
    run_with_restarts,
    stop_requested,
)
from cli.processes.supervisor import ChildSpec, Supervisor, announce
from cli.services.api import SHUTDOWN_TIMEOUT, open_accounted_services, receiving_mails
from cli.services.store import open_store
from cli.settings.parsing import Address
from cli.settings.secrets import receiver
from cli.settings.settings import Configuration, load
from cli.settings.sources import export
from couriers.channel import channels, mailed_channel, receiving
from delivery.app import METRICS, build
from delivery.http.options import Inbound, MiB, Options
from delivery.http.server import listening
from scenarios.action_files import SETTING as ACTIONS

log = logging.getLogger(__name__)


def declare(parser: ArgumentParser) -> None:
    parser.add_argument("--processes", type=int, default=1, metavar="N", help="processes on one port, default 1")
    parser.add_argument(
        "--share-port", action="store_true", help="let other processes listen on the same port (SO_REUSEPORT)"
    )


def run(arguments: Namespace) -> int:
    if arguments.processes < 1:
        raise CommandFailed("--processes must be at least 1")
    configuration = load(may_receive=receiver("serve"))
    export(ACTIONS)  # for dry runs in the console
    configure_logging(configuration.settings)
    logging.getLogger("aiohttp.access").setLevel(logging.WARNING)  # a line per request costs as much as the request
    if arguments.processes == 1:
        return run_with_restarts(partial(serve, configuration, arguments.share_port))
    return asyncio.run(supervise(configuration, arguments.processes))


# one process


async def serve(configuration: Configuration, share_port: bool) -> int:
    settings = configuration.settings
    address, options = settings.http, options_of(configuration)
    async with (
        open_store(configuration, waits=True) as store,
        noted_process(store, "serve", data=settings.data) as process,
        open_accounted_services(store, configuration, process, options) as services,
    ):
        stop = stop_requested()  # before, a signal simply ends the process
        app = build(services, options)
        collect_garbage_less_often()
        with cannot_listen(address):
            async with (
                receiving_mails(services, settings, app[METRICS].count_mail, share_port=share_port),
                listening(
                    app, address.host, address.port, share_port=share_port, shutdown_timeout=SHUTDOWN_TIMEOUT
                ) as (host, port),
            ):
                announce(http=url(Address(address.host or host, port)))
                process.runs()
                await stop.wait()
    return SUCCESS


def options_of(configuration: Configuration) -> Options:
    """Return the limits and secrets of the API."""
    settings, text, records = configuration.settings, configuration.text, channels().items()
    inbound = Inbound(
        {
            **{name: text(one.inbound_secret) for name, one in records},
            mailed_channel(): settings.inbound_mail_secret or "",
        },
        {name: text(one.callback.confirmation) for name, one in receiving().items() if one.callback},
        {name: text(way.profile) for name, one in records for way in one.reports if way.profile},
        settings.inbound_mail or "",
    )
    return Options(
        rate=settings.http_rate,
        file_limit=settings.file_mb * MiB,
        burst=settings.http_burst,
        inbound=inbound,
        metrics_key=settings.metrics_key or "",
        proof_secret=stored_api_key(settings),
        public_url=settings.public_url or "",
        timezone=settings.timezone,
        tenant_timezones=settings.tenant_timezones,
        office=settings.office or "",
        bot_tenant=settings.bot_tenant,
    )


def url(address: Address) -> str:
    return f"http://{address}"


# several processes


async def supervise(configuration: Configuration, processes: int) -> int:
    return await run_until(stop_requested(), run_workers(configuration, processes))


async def run_workers(configuration: Configuration, processes: int) -> int:
    """Keep the workers running until cancelled. Raises CommandFailed if they cannot start."""
    async with open_store(configuration, waits=True):
        pass  # a wrong setting or server is reported here once, not by every worker
    supervisor = Supervisor(print_line)
    start_fork_server(())  # which imports no library: the metrics of the workers begin with the environment of each
    with reserve_port(configuration.settings.http) as address, tempfile.TemporaryDirectory("-ada-metrics") as metrics:
        environment = {"ADA_HTTP": str(address), "PROMETHEUS_MULTIPROC_DIR": metrics}
        workers = [worker(number, environment) for number in range(1, processes + 1)]
        try:
            await asyncio.gather(*(start_required(supervisor, spec) for spec in workers))
            announce(http=url(address))
            await asyncio.Event().wait()
        finally:
            await supervisor.stop()
    return SUCCESS


def worker(number: int, environment: Mapping[str, str]) -> ChildSpec:
    """Return one worker; it is restarted whatever its exit code."""
    spec = ada_child(f"serve {number}", 0, environment, "serve", "--share-port")
    return replace(spec, final_exit_codes=frozenset())


@contextmanager
def reserve_port(address: Address) -> Iterator[Address]:
    """Reserve the port for the workers; yield the address with the number of the port.

    First it binds alone: with SO_REUSEPORT another installation on this port would silently get a part of the requests.
    """
    with cannot_listen(address):
        with bind(address) as alone:
            bound = replace(address, port=alone.getsockname()[1])
        held = bind(bound, socket.SO_REUSEPORT)
    with held:
        yield bound


def print_line(process: str, line: str) -> None:
    print(f"{process} | {line}", file=sys.stderr, flush=True)


COMMANDS: Mapping[str, Command] = {"serve": Command(declare, run)}
