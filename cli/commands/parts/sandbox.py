"""The verb sandbox: simulates Telegram, its Bot API, VK, MAX, SMS, e-mail and models here, with an inbox page."""

import asyncio
import json
import shlex
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module
from pathlib import Path

from cli.command import SUCCESS, WRONG_USAGE, Command, CommandFailed
from cli.processes.data_directory import prepare_data_directory, private_directory
from cli.processes.embedded_valkey import free_port, reserve
from cli.processes.startup import configure_logging, stop_requested
from cli.processes.supervisor import announce
from cli.settings.parsing import parse_address
from cli.settings.settings import Configuration, load
from couriers.channel import Simulator, channels
from sandbox.sandbox import Ports, Sandbox

PORTS = tuple(field.name for field in fields(Ports))


def declare(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--http", default=None, metavar="HOST:PORT", help="address of the inbox page (default: a free port)"
    )
    inbound = parser.add_mutually_exclusive_group()
    inbound.add_argument(
        "--inbound-url", metavar="URL", help="URL that the SMS gateway calls for each incoming message"
    )
    inbound.add_argument(
        "--inbound", metavar="URL", help="URL of Ada's API, which gets incoming SMS with ADA_INBOUND_SMS_SECRET"
    )


def run(arguments: Namespace) -> int:
    configuration = load()
    settings = configuration.settings
    configure_logging(settings)
    arguments.inbound_urls = inbound_urls(configuration, arguments)
    return asyncio.run(run_sandbox(prepare_data_directory(settings.data) / "sandbox", arguments))


def inbound_urls(configuration: Configuration, arguments: Namespace) -> Mapping[str, str]:
    """Return channel → the URL that its simulated provider calls for each message of a person."""
    ways = {name: one.receiving.callback for name, one in channels().items() if one.is_simulated and one.receiving}
    forms = {name: callback for name, callback in ways.items() if callback and callback.is_form}
    if not arguments.inbound:
        return dict.fromkeys(forms, arguments.inbound_url) if arguments.inbound_url else {}
    return {
        name: import_module(one.module).get_url(arguments.inbound, configuration.text(one.secret))
        for name, one in forms.items()
    }


async def run_sandbox(directory: Path, arguments: Namespace) -> int:
    stop = stop_requested()
    sandbox = await start_sandbox(directory, arguments)
    simulators = [
        await start_simulator(name, one.simulator, directory) for name, one in channels().items() if one.simulator
    ]
    for one in simulators:
        sandbox.further |= one.environment
    print_addresses(sandbox, sandbox.environment, arguments.json)
    await stop.wait()
    for one in simulators:
        await one.close()
    await sandbox.stop()
    return SUCCESS


async def start_simulator(channel: str, module: str, directory: Path) -> Simulator:
    """Start what simulates the provider of an installed channel. `directory`: its own is made in it."""
    simulator: Simulator = await import_module(module).start_simulator(private_directory(directory / channel))
    return simulator


async def start_sandbox(directory: Path, arguments: Namespace, attempts: int = 3) -> Sandbox:
    """Return the sandbox when it listens. Raises CommandFailed.

    Another program may take a port between its choice and the start: then others are chosen.
    """
    sandbox = create_sandbox(directory, arguments)
    try:
        await sandbox.start()
    except OSError as error:
        if attempts > 1:
            return await start_sandbox(directory, arguments, attempts - 1)
        raise CommandFailed(f"the sandbox cannot listen: {error.strerror or error}") from error
    return sandbox


def create_sandbox(directory: Path, arguments: Namespace) -> Sandbox:
    ports = last_ports(directory / "ports.json")
    host = "127.0.0.1"
    if arguments.http:
        try:
            page = parse_address(arguments.http)
        except ValueError as error:
            raise CommandFailed(f"--http is {arguments.http}, {error}", WRONG_USAGE) from None
        host, ports["web"] = page.host, page.port
    return Sandbox(directory, host, Ports(**ports), arguments.inbound_urls, arguments.inbound or "")


def last_ports(file: Path) -> dict[str, int]:
    """Return the ports of the last run if they are still free, so that addresses in use stay valid; else free ports."""
    last = json.loads(file.read_text()) if file.exists() else {}
    ports = {name: last[name] for name in PORTS if name in last and reserve(last[name])}
    ports = {name: ports.get(name) or free_port() for name in PORTS}
    private_directory(file.parent)
    file.write_text(json.dumps(ports))
    return ports


def print_addresses(sandbox: Sandbox, environment: Mapping[str, str], as_json: bool) -> None:
    """Print the announcement; for people also lines to paste into a shell."""
    if not as_json:
        print(f"The inbox page is {sandbox.page_url}. To send through the sandbox, set:\n")
        for name, value in environment.items():
            print(f"export {name}={shlex.quote(value)}")
        print()
    announce(page=sandbox.page_url, environment=environment, with_profile=sandbox.with_profile)


COMMANDS: Mapping[str, Command] = {"sandbox": Command(declare, run)}
