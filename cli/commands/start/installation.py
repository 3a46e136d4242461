"""The installation that `./ada up` and `./ada demo` start, in one process tree.

    embedded Valkey ─▶ sandbox ─▶ serve ─▶ couriers, bots    started in this order, each when the previous one is ready;
    (ADA_REDIS_URL)    (credentials)      scenarios, syncs   stopped in the opposite order

With ADA_REDIS_URL no embedded server is started. With credentials of any channel no sandbox is started, and only the
channels that have credentials get a courier.
"""

import asyncio
import multiprocessing
import secrets
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from cli.client.own_server import get_or_create_api_key
from cli.command import WRONG_USAGE, CommandFailed
from cli.processes import embedded_valkey
from cli.processes.data_directory import prepare_data_directory
from cli.processes.embedded_valkey import DirectoryInUse, EmbeddedValkey, free_port, fsync_periodically
from cli.processes.forked_process import start_fork_server
from cli.processes.parts import UpNoteWriter, follow_requests, take_requests
from cli.processes.startup import check_is_free
from cli.processes.supervisor import Announcement, ChildSpec, PrintLine, ProcessFailed, Supervisor
from cli.settings.bot_folders import BotFolder, channels_of_bots, read_bots
from cli.settings.parsing import Processes, read_sync_lines
from cli.settings.secrets import BOT, receiver
from cli.settings.settings import Configuration, Settings
from cli.settings.sources import RawSetting
from core.model.durability import Durability
from core.redis.cancel_and_wait import cancel_and_wait
from couriers.channel import channels as all_channels
from couriers.channel import receiving

SERVICES = (("ADA_SIGN_IN", "HUNT_"), ("ADA_MODEL_",), ("ADA_SPEECH", "ADA_TRANSCRIPTION"))
"""The prefixes of the settings of services: the sign-in, the language model, and speech."""

START_TIMEOUT = 120.0
"""Seconds for a child that others need: loading a large append-only file takes time."""

COURIER_START_TIMEOUT = 20.0
"""Seconds for a courier: a provider that is down must not delay the others. The sandbox is never down."""

STORE, PROVIDERS, API, COURIERS = range(4)
"""Stages: the order of the start, and in reverse of the stop."""

OTHER_COURIER = (
    "another Ada works on the server of ADA_REDIS_URL (courier {}), and no account is set up here: simulated channels "
    "would take its messages instead of sending them. Set up the accounts, or name another server or database"
)
QUIET_HOURS_ARE_OFF = "quiet hours are off, because the providers are simulated; ADA_QUIET_HOURS sets them"


@dataclass
class Installation:
    """A running installation. `environment` is given to the children that are started next.

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
    syncs: Sequence[Sequence[str]] = ()
    not_ready: Mapping[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict, repr=False)
    shares_processes: bool = False

    @property
    def has_bot(self) -> bool:
        """Return whether a bot answers: one of a folder, or the dialog of teachers."""
        return bool(self.scenarios or self.bots)

    @property
    def answers(self) -> bool:
        """Return whether what people write is answered: there is a bot, and its process is ready."""
        return self.has_bot and "scenarios" not in self.not_ready

    def child(self, name: str, stage: int, *args: str) -> ChildSpec:
        """Return a child that runs a verb of Ada."""
        return ada_child(name, stage, self.environment, *args)


@asynccontextmanager
async def start_everything(configuration: Configuration, print_line: PrintLine) -> AsyncIterator[Installation]:
    """Start all children, yield when they are ready, and stop them. Raises CommandFailed if a needed one fails."""
    settings = configuration.settings
    data = prepare_data_directory(settings.data)
    supervisor = Supervisor(print_line)
    try:
        with embedded_valkey.locked(data / "valkey") as lock:
            check_is_free(settings.http)  # before anything is started
            start_fork_server(libraries(configuration))
            fsync = asyncio.create_task(fsync_periodically(data / "valkey"))  # idle with ADA_REDIS_URL
            note = UpNoteWriter(data, lambda: supervisor.parts)
            take_requests(data)  # what was asked of an earlier `up` is forgotten
            beside = [asyncio.create_task(note.keep())]
            try:
                url, tools_url = await store_urls(settings, supervisor, lock)
                installation = Installation(tools_url, get_or_create_api_key(settings), data, supervisor)
                installation.environment["ADA_REDIS_URL"] = url
                installation.shares_processes = settings.processes is Processes.FEW
                names, other = await names_of_accounts(url, settings)
                configuration = configuration.with_raw({**names, **configuration.raw})
                if other and not channels_of(configuration):
                    raise CommandFailed(OTHER_COURIER.format(other), WRONG_USAGE)
                await start_after_store(configuration, supervisor, installation)
                await note.write()  # who waits for `up` finds all its parts
                starting = partial(start_asked, supervisor, installation)
                beside.append(asyncio.create_task(follow_requests(data, starting)))
                yield installation
            finally:
                await cancel_and_wait(*beside)
                await supervisor.stop()
                await cancel_and_wait(fsync)
    except DirectoryInUse as error:
        raise CommandFailed(str(error)) from error


async def names_of_accounts(url: str, settings: Settings) -> tuple[Mapping[str, RawSetting], str]:
    """Return the names of the accounts that the store has, and a courier that works already. A child reads them: `up`
    imports no client of the server.
    """
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(1, mp_context=context) as child:
        words = url, settings.shards, settings.durability
        return await asyncio.get_running_loop().run_in_executor(child, _read_names, *words)


def _read_names(url: str, shards: int, durability: Durability) -> tuple[Mapping[str, RawSetting], str]:
    from cli.services import accounts

    return asyncio.run(accounts.names_of_accounts(url, shards, durability))


async def store_urls(settings: Settings, supervisor: Supervisor, lock: int) -> tuple[str, str]:
    """Return the URL for Ada's own processes and the one for the user's tools."""
    if settings.redis_url:
        return settings.redis_url, settings.redis_url
    server = await start_valkey(supervisor, settings.data.absolute() / "valkey", lock)
    return server.url, server.tcp_url


async def start_valkey(supervisor: Supervisor, directory: Path, lock: int) -> EmbeddedValkey:
    """Start the embedded server. It is restarted after any exit."""
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
    installation.channels = channels_of(configuration)
    installation.bots = bots_of(configuration, installation.channels)
    installation.scenarios = configuration.settings.scenarios
    installation.jobs = configuration.settings.jobs
    installation.syncs = read_sync_lines(configuration.settings.syncs)
    if not installation.channels:
        await start_sandbox(configuration, supervisor, installation)
        if "ADA_QUIET_HOURS" not in configuration.raw:
            installation.environment["ADA_QUIET_HOURS"] = "off"
            installation.night = QUIET_HOURS_ARE_OFF
    serve = await start_required(supervisor, installation.child("serve", API, "serve"))
    installation.http = str(serve["http"])
    addresses = {one.api_address for one in all_channels().values()} - {"", *configuration.raw}
    installation.environment |= dict.fromkeys(addresses, installation.http)
    await start_couriers(supervisor, installation)


def channels_of(configuration: Configuration) -> Sequence[str]:
    """Return the channels that have an account; without any the sandbox simulates all."""
    own = channels_of_bots(bots_of_folders(configuration))
    return [channel for channel in all_channels() if configuration.has_channel(channel) or channel in own]


def libraries(configuration: Configuration) -> list[str]:
    """Return the modules that the forks import. An installed courier imports its own libraries by itself."""
    channels = channels_of(configuration) or simulated_channels()
    receivers = [one for channel, one in receiving().items() if channel in channels]
    return [
        "cli.main",
        "cli.commands.parts.serve",
        "cli.commands.parts.courier",
        "cli.commands.parts.bot",
        *(() if channels_of(configuration) else ("cli.commands.parts.sandbox",)),
        "cli.commands.bots.scenario_process",
        *(("cli.commands.installation.jobs",) if configuration.settings.jobs else ()),
        *(("cli.commands.directory.sync",) if configuration.settings.syncs else ()),
        *(all_channels()[channel].courier for channel in channels),
        *(module for one in receivers for module in one.imports),
    ]


def bots_of(configuration: Configuration, channels: Sequence[str]) -> Sequence[str]:
    """Return the bots for which there is an account."""
    own = channels_of_bots(bots_of_folders(configuration))
    found = {channel: one for channel, one in receiving().items() if channel in channels}
    return [
        one.process
        for channel, one in found.items()
        if not one.needs or one.needs & configuration.raw.keys() or channel in own
    ]


def bots_of_folders(configuration: Configuration) -> Sequence[BotFolder]:
    """Return the bots if ADA_SCENARIOS names a folder of bots: they are polled."""
    return [bot for bot in read_bots(configuration).values() if not bot.is_only]


async def start_sandbox(configuration: Configuration, supervisor: Supervisor, installation: Installation) -> None:
    """Start the sandbox. What people write may be posted to the API, which is started later, so its port is chosen
    here.
    """
    settings, channels = configuration.settings, {name: all_channels()[name] for name in simulated_channels()}
    posted = [one.inbound_secret for one in channels.values() if one.receiving and not one.receiving.receiver]
    http = settings.http if settings.http.port else replace(settings.http, port=free_port())
    reachable = replace(http, host=http.host or "127.0.0.1")
    installation.environment |= {
        "ADA_HTTP": str(http),
        **{secret: configuration.text(secret) or secrets.token_urlsafe(16) for secret in posted},
        "ADA_PUBLIC_URL": settings.public_url or f"http://{reachable}",
    }
    spec = installation.child("sandbox", PROVIDERS, "sandbox", "--json", "--inbound", f"http://{reachable}")
    sandbox = await start_required(supervisor, spec)
    installation.inbox = str(sandbox["page"])
    installation.environment |= simulated(sandbox["environment"], configuration.raw)
    for channel, names in sandbox["with_profile"].items():
        if channels[channel].has_profile(configuration.text):
            installation.environment |= names
    installation.channels = list(channels)
    installation.bots = [receiving()[channel].process for channel in installation.channels if channel in receiving()]


def simulated_channels() -> Sequence[str]:
    """Return the channels that the sandbox simulates: those of a usual installation."""
    return [name for name, one in all_channels().items() if one.is_simulated or one.simulator]


def simulated(environment: Mapping[str, str], own: Collection[str]) -> dict[str, str]:
    """Return the settings of the sandbox, without those of a service that the user's `own` settings set up."""
    kept = [names for names in SERVICES if any(name.startswith(names) for name in own)]
    return {name: value for name, value in environment.items() if not any(name.startswith(names) for names in kept)}


async def start_couriers(supervisor: Supervisor, installation: Installation) -> None:
    """Start all couriers and bots at once. A process that is late stays supervised and is in `not_ready`."""
    couriers = [installation.child(channel, COURIERS, "courier", channel) for channel in installation.channels]
    bots = [installation.child(f"bot {channel}", COURIERS, "bot", channel) for channel in installation.bots]
    if installation.shares_processes:
        groups = {"couriers": couriers, "bots": bots}
        specs = [shared_child(name, children) for name, children in groups.items() if children]
    else:
        specs = [*couriers, *bots]
    if installation.has_bot:
        specs.append(installation.child("scenarios", COURIERS, "scenarios"))
    if installation.jobs:
        specs.append(installation.child("jobs", COURIERS, "jobs"))
    calling = {**installation.environment, "ADA_HTTP": installation.http.removeprefix("http://")}
    specs += [ada_child(f"sync {words[0]}", COURIERS, calling, "sync", *words) for words in installation.syncs]
    timeout = START_TIMEOUT if installation.inbox else COURIER_START_TIMEOUT
    reasons = await asyncio.gather(*(start_optional(supervisor, spec, timeout) for spec in specs))
    installation.not_ready = {spec.name: reason for spec, reason in zip(specs, reasons, strict=True) if reason}


def start_asked(supervisor: Supervisor, installation: Installation, verb: str) -> None:
    """Start a process again that an operator has asked for. A channel that has got its first account at the console has
    no process yet; it gets its courier and its bot.
    """
    kind, _, channel = verb.partition(" ")
    if supervisor.start_again(verb) or kind != "courier" or channel not in all_channels():
        return
    supervisor.start(installation.child(channel, COURIERS, "courier", channel))
    found = receiving().get(channel)
    if found and (not found.needs or all_channels()[channel].account in found.needs):
        supervisor.start(installation.child(f"{BOT}{found.process}", COURIERS, "bot", found.process))
        if not installation.has_bot:
            supervisor.start(installation.child("scenarios", COURIERS, "scenarios"))
        installation.bots = [*installation.bots, found.process]


def ada_child(name: str, stage: int, environment: Mapping[str, str], *args: str) -> ChildSpec:
    """Return a child that runs a verb of Ada, with its own secrets only. It is a fork, and shares the memory of its
    libraries with others.

    The environment is copied: later changes are for later children.
    """
    process = name if name.startswith(BOT) else name.split()[0]  # one of several is "serve 2"
    return ChildSpec(name, ("cli", *args), stage, dict(environment), may_receive=receiver(process), forked=True)


def shared_child(name: str, children: Sequence[ChildSpec]) -> ChildSpec:
    """Return one child that runs the verbs of these children, with the secrets of all of them."""
    verbs = [" ".join(child.command[1:]) for child in children]
    return replace(
        children[0],
        name=name,
        command=("cli.shared_process", *verbs),
        may_receive=lambda setting: any(child.may_receive(setting) for child in children),
        announcements=len(children),
    )


async def start_required(supervisor: Supervisor, spec: ChildSpec) -> Announcement:
    """Start a child and wait until it is ready. Raises CommandFailed if the child does not become ready."""
    try:
        return await asyncio.wait_for(supervisor.start(replace(spec, needed=True)), START_TIMEOUT)
    except TimeoutError:
        raise CommandFailed(f"{spec.name} was not ready within {START_TIMEOUT:.0f} s; see its output above") from None
    except ProcessFailed as error:
        raise CommandFailed(f"{error}; see its output above") from None


async def start_optional(supervisor: Supervisor, spec: ChildSpec, timeout: float) -> str:
    """Return why the child is not ready after `timeout` seconds, or "" if it is."""
    try:
        await asyncio.wait_for(asyncio.shield(supervisor.start(spec)), timeout)
    except TimeoutError:
        return "not ready yet, keeps trying"
    except ProcessFailed as error:
        return str(error)
    return ""
