"""The verb up: everything in one process tree, until Ctrl-C.

    embedded Valkey ─▶ sandbox ─▶ serve ─▶ couriers, bots    started in this order, each when the previous one is ready;
    (ADA_REDIS_URL)    (credentials)              scenarios  stopped in the opposite order

With ADA_REDIS_URL no embedded server is started. With credentials of any channel no sandbox is started, and only the
channels that have credentials get a courier.
"""

import asyncio
import json
import secrets
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cli.client.first_api_key import get_or_create_api_key, key_file
from cli.command import SUCCESS, Command, CommandFailed
from cli.processes import embedded_valkey
from cli.processes.aof_fsync import fsync_periodically
from cli.processes.data_directory import prepare_data_directory
from cli.processes.embedded_valkey import DirectoryInUse, EmbeddedValkey, free_port
from cli.processes.event_lines import EventLines
from cli.processes.forked_process import start_fork_server
from cli.processes.ports import check_is_free
from cli.processes.startup import stop_requested
from cli.processes.supervisor import Announcement, ChildFailed, ChildSpec, PrintLine, Supervisor
from cli.settings.secrets import BOT, receiver
from cli.settings.settings import Configuration, Settings, load
from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.topology import Topology
from providers.sms.profile import KANNEL

CHANNELS = ("telegram", "vk", "max", "sms", "telegram-bot", "email")
"""The channels of a usual installation. The sandbox simulates all of them."""

SANDBOX_BOTS = ("telegram", "vk", "max", "sms")
"""The bots beside a sandbox."""

SERVICES = (("ADA_SIGN_IN", "HUNT_"), ("ADA_MODEL_",), ("ADA_SPEECH", "ADA_TRANSCRIPTION"))
"""What the names of the settings of a service begin with: the sign-in, the language model, and speech."""

START_TIMEOUT = 120.0
"""Seconds for a child that others need: loading a large append-only file takes time."""

COURIER_START_TIMEOUT = 20.0
"""Seconds for a courier: a provider that is down must not delay the others. The sandbox is never down."""

STORE, PROVIDERS, API, COURIERS = range(4)
"""Stages: the order of the start, and in reverse of the stop."""


@dataclass
class Installation:
    """What is running. `environment` is given to the children that are started next.

    `not_ready` is the reason for each courier that was not ready in time.
    """

    redis_url: str
    api_key: str = field(repr=False)
    data: Path
    supervisor: Supervisor
    http: str = ""
    inbox: str | None = None
    night: str | None = None
    channels: Sequence[str] = ()
    bots: Sequence[str] = ()
    scenarios: Path | None = None
    jobs: str | None = None
    not_ready: Mapping[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict, repr=False)


@asynccontextmanager
async def start_everything(configuration: Configuration, print_line: PrintLine) -> AsyncIterator[Installation]:
    """Starts all children, yields when they are ready, stops them. Raises CommandFailed if a needed one fails."""
    settings = configuration.settings
    data = prepare_data_directory(settings.data)
    supervisor = Supervisor(print_line)
    try:
        with embedded_valkey.locked(data / "valkey") as lock:
            check_is_free(settings.http)  # before anything is started
            start_fork_server(libraries(configuration))
            fsync = asyncio.create_task(fsync_periodically(data / "valkey"))  # idle with ADA_REDIS_URL
            try:
                url, tools_url = await store_urls(settings, supervisor, lock)
                installation = Installation(tools_url, get_or_create_api_key(settings), data, supervisor)
                installation.environment["ADA_REDIS_URL"] = url
                await start_after_store(configuration, supervisor, installation)
                yield installation
            finally:
                await supervisor.stop()
                await cancel_and_wait(fsync)
    except DirectoryInUse as error:
        raise CommandFailed(str(error)) from error


async def store_urls(settings: Settings, supervisor: Supervisor, lock: int) -> tuple[str, str]:
    """Return the URL for Ada's own processes and the one for the user's tools."""
    if settings.redis_url:
        return settings.redis_url, settings.redis_url
    server = await start_valkey(supervisor, settings.data.absolute() / "valkey", lock)
    return server.url, server.tcp_url


async def start_valkey(supervisor: Supervisor, directory: Path, lock: int) -> EmbeddedValkey:
    """Starts the embedded server. It is restarted after any exit."""
    server = embedded_valkey.prepare(directory)
    spec = ChildSpec(
        "valkey",
        tuple(server.command()),
        STORE,
        embedded_valkey.ENVIRONMENT,
        parse_ready=valkey_is_ready,
        pass_fds=(lock,),
        final_exit_codes=frozenset(),
        is_shown=embedded_valkey.is_warning,
        may_receive=receiver("valkey"),
    )
    await start_required(supervisor, spec)
    return server


def valkey_is_ready(line: str) -> Announcement | None:
    return {} if embedded_valkey.READY in line else None


async def start_after_store(configuration: Configuration, supervisor: Supervisor, installation: Installation) -> None:
    installation.environment |= {
        "ADA_DATA": str(installation.data),
        "ADA_API_KEY": installation.api_key,
    }
    installation.channels = [channel for channel in CHANNELS if configuration.has_channel(channel)]
    installation.bots = bots_of(configuration, installation.channels)
    installation.scenarios = configuration.settings.scenarios
    installation.jobs = configuration.settings.jobs
    if not installation.channels:
        await start_sandbox(configuration, supervisor, installation)
        if "ADA_QUIET_HOURS" not in configuration.raw:
            installation.environment["ADA_QUIET_HOURS"] = "off"
            installation.night = QUIET_HOURS_ARE_OFF
    serve = await start_required(supervisor, ada_child("serve", API, installation.environment, "serve"))
    installation.http = str(serve["http"])
    if "ADA_SMS_CALLBACK_URL" not in configuration.raw:
        installation.environment["ADA_SMS_CALLBACK_URL"] = installation.http
    await start_couriers(supervisor, installation)


def libraries(configuration: Configuration) -> list[str]:
    """Return the modules that couriers and bots import. An installed courier imports its own libraries by itself."""
    channels = [channel for channel in CHANNELS if configuration.has_channel(channel)] or CHANNELS
    return [
        "cli.commands.parts.courier",
        "cli.commands.parts.bot",
        *(f"couriers.{channel.replace('-', '_')}" for channel in channels),
        *(module for channel in channels for module in BOT_MODULES.get(channel, ())),
    ]


BOT_MODULES = {
    "telegram-bot": ("bots.telegram.bot", "bots.telegram.dialogs", "bots.telegram.events", "bots.telegram.webhook"),
    "vk": ("bots.vk.long_poll",),
    "max": ("bots.max.long_poll",),
}
"""What the bots import when they start, by the channel of their account."""


def bots_of(configuration: Configuration, channels: Sequence[str]) -> Sequence[str]:
    """Return the bots for which there is an account."""
    writes = {
        "telegram-bot": configuration.settings.bot_token,
        "sms": configuration.settings.inbound_sms_secret,
        "max": True,  # without a webhook it polls
        "vk": configuration.settings.inbound_vk_secret or "ADA_VK_LONG_POLL" in configuration.raw,
    }
    return [channel.removesuffix("-bot") for channel in channels if writes.get(channel)]


async def start_sandbox(configuration: Configuration, supervisor: Supervisor, installation: Installation) -> None:
    """Starts the sandbox. Its people write SMS to the API, which is started later, so its port is chosen here."""
    settings = configuration.settings
    http = settings.http if settings.http.port else replace(settings.http, port=free_port())
    reachable = replace(http, host=http.host or "127.0.0.1")
    secret = settings.inbound_sms_secret or secrets.token_urlsafe(16)
    installation.environment |= {
        "ADA_HTTP": str(http),
        "ADA_INBOUND_SMS_SECRET": secret,
        "ADA_PUBLIC_URL": settings.public_url or f"http://{reachable}",
    }
    spec = ada_child(
        "sandbox", PROVIDERS, installation.environment, "sandbox", "--json", "--inbound", f"http://{reachable}"
    )
    sandbox = await start_required(supervisor, spec)
    installation.inbox = str(sandbox["page"])
    installation.environment |= simulated(sandbox["environment"], configuration.raw)
    if configuration.settings.sms_profile != KANNEL:
        installation.environment["ADA_SMS_URL"] = str(sandbox["sms_providers"])
    installation.channels, installation.bots = CHANNELS, SANDBOX_BOTS


def simulated(environment: Mapping[str, str], own: Collection[str]) -> dict[str, str]:
    """Return the settings of the sandbox, without those of a service that the user's `own` settings set up."""
    kept = [names for names in SERVICES if any(name.startswith(names) for name in own)]
    return {name: value for name, value in environment.items() if not any(name.startswith(names) for names in kept)}


async def start_couriers(supervisor: Supervisor, installation: Installation) -> None:
    """Start all couriers and bots at once. A process that is late stays supervised and is in `not_ready`."""
    environment = installation.environment
    specs = [forked_child(channel, environment, "courier", channel) for channel in installation.channels]
    specs += [forked_child(f"bot {channel}", environment, "bot", channel) for channel in installation.bots]
    specs += [ada_child("scenarios", COURIERS, environment, "scenarios")] if installation.scenarios else []
    specs += [ada_child("jobs", COURIERS, environment, "jobs")] if installation.jobs else []
    timeout = START_TIMEOUT if installation.inbox else COURIER_START_TIMEOUT
    reasons = await asyncio.gather(*(start_optional(supervisor, spec, timeout) for spec in specs))
    installation.not_ready = {spec.name: reason for spec, reason in zip(specs, reasons, strict=True) if reason}


def ada_child(name: str, stage: int, environment: Mapping[str, str], *args: str) -> ChildSpec:
    """Return a child that runs a verb of Ada, with its own secrets only.

    The environment is copied: later changes are for later children.
    """
    command = (sys.executable, "-P", "-m", "cli", *args)
    process = name if name.startswith(BOT) else name.split()[0]  # one of several is "serve 2"
    return ChildSpec(name, command, stage, dict(environment), may_receive=receiver(process))


def forked_child(name: str, environment: Mapping[str, str], *args: str) -> ChildSpec:
    """Return a child of the last stage that shares the memory of its libraries with the others."""
    return replace(ada_child(name, COURIERS, environment, *args), command=("cli", *args), forked=True)


async def start_required(supervisor: Supervisor, spec: ChildSpec) -> Announcement:
    """Start a child and wait until it is ready. Raises CommandFailed if the child does not become ready."""
    try:
        return await asyncio.wait_for(supervisor.start(replace(spec, needed=True)), START_TIMEOUT)
    except TimeoutError:
        raise CommandFailed(f"{spec.name} was not ready within {START_TIMEOUT:.0f} s; see its output above") from None
    except ChildFailed as error:
        raise CommandFailed(f"{error}; see its output above") from None


async def start_optional(supervisor: Supervisor, spec: ChildSpec, timeout: float) -> str:
    """Returns why the child is not ready after `timeout` seconds, or "" if it is."""
    try:
        await asyncio.wait_for(asyncio.shield(supervisor.start(spec)), timeout)
    except TimeoutError:
        return "not ready yet, keeps trying"
    except ChildFailed as error:
        return str(error)
    return ""


def declare(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--show-key", action="store_true", help="print the first API key, not only the place of its file"
    )


def run(arguments: Namespace) -> int:
    return asyncio.run(up(load(), arguments))


async def up(configuration: Configuration, arguments: Namespace) -> int:
    print_line = EventLines(arguments.json)
    print_line("up", "starting")
    work = run_forever(configuration, print_line, arguments)
    code = await run_until(stop_requested(), work, lambda: print_line("up", STOPPING))
    print_line("up", "stopped")
    return code


async def run_forever(configuration: Configuration, print_line: EventLines, arguments: Namespace) -> int:
    async with start_everything(configuration, print_line) as installation:
        print_summary(installation, place_of_key(configuration.settings, shown=arguments.show_key), arguments.json)
        print_line.is_up = True
        await asyncio.Event().wait()
    return SUCCESS


QUIET_HOURS_ARE_OFF = "quiet hours are off, because the providers are simulated; ADA_QUIET_HOURS sets them"

STOPPING = "stopping; couriers finish what they are sending"


async def run_until(
    stop: asyncio.Event, work: Coroutine[Any, Any, int], on_stop: Callable[[], None] = lambda: None
) -> int:
    """Runs the work; cancels it when a stop is requested, also during the start. `on_stop` is called before."""
    working, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
    await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
    if working.done():
        stopping.cancel()
        return working.result()
    on_stop()
    working.cancel()
    with suppress(asyncio.CancelledError):
        await working
    return SUCCESS


def place_of_key(settings: Settings, *, shown: bool) -> dict[str, str | None]:
    """Return the file of the first API key, None with ADA_API_KEY; with `shown` also the key, which else stays out of
    logs."""
    place = {"key": get_or_create_api_key(settings)} if shown else {}
    return {**place, "key_file": None if settings.api_key else str(key_file(settings))}


def print_summary(installation: Installation, key: Mapping[str, str | None], as_json: bool) -> None:
    """Print the addresses and the place of the API key: all that a user needs to send the first message."""
    shown = summary(installation, key)
    if as_json:
        print(json.dumps({"ready": shown}, ensure_ascii=False), flush=True)
        return
    lines = [f"{name.replace('_', ' '):<12} {value}" for name, value in shown.items() if value]
    lines += [f"{channel:<12} {reason}" for channel, reason in installation.not_ready.items()]
    print("\n".join(["", "Ada is up. Ctrl-C stops it.", *(f"  {line}" for line in lines), ""]), flush=True)
    print(SANDBOX_HINT if installation.inbox else ACCOUNTS_HINT, flush=True)


SANDBOX_HINT = """Open the api address in a browser and paste the key from its file, or send from another terminal:
  ./ada send --to 7=telegram:100001,sms:+79990000001 --text Hello --wait
Telegram, its Bot API, VK, MAX, SMS and e-mail are simulated: what was sent is on the inbox page.
The README says how to connect real accounts.
"""
ACCOUNTS_HINT = """Open the api address in a browser and paste the key from its file, or see ./ada send --help.
"""


def summary(installation: Installation, key: Mapping[str, str | None]) -> dict[str, str | None]:
    return {
        "api": installation.http,
        **key,
        "inbox": installation.inbox,
        "couriers": ", ".join(name for name in installation.channels if name not in installation.not_ready),
        "bots": ", ".join(name for name in installation.bots if f"{BOT}{name}" not in installation.not_ready),
        "scenarios": str(installation.scenarios or "") or None,
        "jobs": installation.jobs,
        "redis": str(Topology(installation.redis_url)),
        "data": str(installation.data),
        "night": installation.night,
    }


COMMANDS: Mapping[str, Command] = {"up": Command(declare, run)}
