"""The verb up: everything in one process tree, until Ctrl-C.

    embedded Valkey ─▶ sandbox ─▶ serve ─▶ couriers          started in this order, each when the one before is ready,
    (ADA_REDIS_URL)    (credentials)                         ended in the opposite one

What is set is not started: with ADA_REDIS_URL no embedded server, with credentials of any channel no sandbox, and then
only the channels that have some.
"""

import asyncio
import json
import sys
from argparse import Namespace
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cli.client import first_api_key as keys
from cli.command import GOOD, Command, NotDone, declare_nothing
from cli.processes import embedded_valkey as embedded
from cli.processes.aof_fsync import keep_synced
from cli.processes.startup import stop_requested
from cli.processes.supervisor import Facts, Part, PartEnded, Say, Supervisor
from cli.settings.settings import Configuration, Settings, load
from core.redis.cancel_and_wait import cancel_and_wait

CHANNELS = ("telegram", "vk", "sms")
"""The channels of a usual installation, which the sandbox plays."""

PATIENCE = 120.0
"""Seconds for a part that others need: a large append-only file takes time to load."""

PROVIDER_PATIENCE = 20.0
"""Seconds for a courier: a provider that is down must not keep the others from starting."""

STORE, PROVIDERS, API, COURIERS = range(4)


@dataclass
class Running:
    """What is up, for whoever wants to use it. `environment` is what every part is told."""

    redis_url: str
    api_key: str = field(repr=False)
    data: Path
    http: str = ""
    inbox: str | None = None
    channels: Sequence[str] = ()
    absent: Mapping[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict, repr=False)


@asynccontextmanager
async def everything(configuration: Configuration, say: Say) -> AsyncIterator[Running]:
    """Starts all parts, yields when all are ready, ends them. Raises NotDone when one that others need cannot start."""
    settings = configuration.settings
    data = settings.data.absolute()
    supervisor = Supervisor(say)
    try:
        with embedded.claimed(data / "valkey") as lock:
            syncing = asyncio.create_task(keep_synced(data / "valkey"))  # with ADA_REDIS_URL nothing grows there
            try:
                url, shown = await urls_of_store(settings, supervisor, lock)
                running = Running(shown, keys.made_or_kept(settings), data)
                running.environment["ADA_REDIS_URL"] = url
                await start_rest(configuration, supervisor, running)
                yield running
            finally:
                await supervisor.stop()
                await cancel_and_wait(syncing)
    except embedded.Busy as fault:
        raise NotDone(str(fault)) from fault


async def urls_of_store(settings: Settings, supervisor: Supervisor, lock: int) -> tuple[str, str]:
    """Where our processes reach it, and where tools do."""
    if settings.redis_url:
        return settings.redis_url, settings.redis_url
    server = await start_store(supervisor, settings.data.absolute() / "valkey", lock)
    return server.url, server.tcp_url


async def start_store(supervisor: Supervisor, directory: Path, lock: int) -> embedded.Embedded:
    """The embedded server; whatever ends it, it starts again."""
    server = embedded.prepare(directory)
    part = Part(
        "valkey",
        tuple(server.command()),
        STORE,
        embedded.ENVIRONMENT,
        is_ready=store_is_ready,
        inherited=(lock,),
        final=frozenset(),
        is_worth_saying=embedded.is_warning,
    )
    await needed(supervisor, part)
    return server


def store_is_ready(line: str) -> Facts | None:
    return {} if embedded.READY in line else None


async def start_rest(configuration: Configuration, supervisor: Supervisor, running: Running) -> None:
    running.environment |= {
        "ADA_DATA": str(running.data),
        "ADA_API_KEY": running.api_key,
    }
    running.channels = [channel for channel in CHANNELS if configuration.has_channel(channel)]
    if not running.channels:
        await start_sandbox(supervisor, running)
    served = await needed(supervisor, ours("serve", API, running.environment, "serve"))
    running.http = str(served["http"])
    if "ADA_SMS_CALLBACK_URL" not in configuration.given:
        running.environment["ADA_SMS_CALLBACK_URL"] = running.http
    await start_couriers(supervisor, running)


async def start_sandbox(supervisor: Supervisor, running: Running) -> None:
    played = await needed(supervisor, ours("sandbox", PROVIDERS, running.environment, "sandbox", "--json"))
    running.inbox = str(played["page"])
    running.environment |= played["environment"]
    running.channels = CHANNELS


async def start_couriers(supervisor: Supervisor, running: Running) -> None:
    """Side by side; one that is not ready is named in `absent` and goes on trying, unless it ended for good."""
    parts = [ours(channel, COURIERS, running.environment, "courier", channel) for channel in running.channels]
    complaints = await asyncio.gather(*(wished(supervisor, part) for part in parts))
    running.absent = {part.name: complaint for part, complaint in zip(parts, complaints, strict=True) if complaint}


def ours(name: str, rank: int, environment: Mapping[str, str], *words: str) -> Part:
    """A part that is a verb of ours. The environment is copied: what is learnt later is for later parts."""
    return Part(name, (sys.executable, "-P", "-m", "cli", *words), rank, dict(environment))


async def needed(supervisor: Supervisor, part: Part) -> Facts:
    """Raises NotDone when the part does not become ready."""
    try:
        return await asyncio.wait_for(supervisor.start(part), PATIENCE)
    except TimeoutError:
        raise NotDone(f"{part.name} was not ready within {PATIENCE:.0f} s; its own words are above") from None
    except PartEnded as fault:
        raise NotDone(f"{fault}; its own words are above") from None


async def wished(supervisor: Supervisor, part: Part) -> str:
    """Why it is not ready, "" if it is."""
    try:
        await asyncio.wait_for(asyncio.shield(supervisor.start(part)), PROVIDER_PATIENCE)
    except TimeoutError:
        return "not ready yet, goes on trying"
    except PartEnded as fault:
        return str(fault)
    return ""


def run(arguments: Namespace) -> int:
    return asyncio.run(up(load(), arguments.json))


async def up(configuration: Configuration, as_json: bool) -> int:
    return await until_stopped(stop_requested(), stay(configuration, as_json))


async def stay(configuration: Configuration, as_json: bool) -> int:
    async with everything(configuration, json_line if as_json else text_line) as running:
        tell(running, as_json)
        await asyncio.Event().wait()
    return GOOD


async def until_stopped(stop: asyncio.Event, work: Coroutine[Any, Any, int]) -> int:
    """Does the work; a request to stop ends it at any point, also half-way through the start."""
    doing, waiting = asyncio.create_task(work), asyncio.create_task(stop.wait())
    await asyncio.wait({doing, waiting}, return_when=asyncio.FIRST_COMPLETED)
    if doing.done():
        waiting.cancel()
        return doing.result()
    doing.cancel()
    with suppress(asyncio.CancelledError):
        await doing
    return GOOD


def text_line(part: str, line: str) -> None:
    print(f"{part:>8} | {line}", flush=True)


def json_line(part: str, line: str) -> None:
    print(json.dumps({"part": part, "line": line}, ensure_ascii=False), flush=True)


def tell(running: Running, as_json: bool) -> None:
    """The addresses and the key: all that a person needs to send the first message."""
    if as_json:
        print(json.dumps({"ready": facts_of(running)}, ensure_ascii=False), flush=True)
        return
    lines = [f"{name:<9} {value}" for name, value in facts_of(running).items() if value]
    lines += [f"{channel:<9} {complaint}" for channel, complaint in running.absent.items()]
    print("\n".join(["", "Ada is up. Ctrl-C ends it.", *(f"  {line}" for line in lines), ""]), flush=True)


def facts_of(running: Running) -> dict[str, str | None]:
    return {
        "api": running.http,
        "key": running.api_key,
        "inbox": running.inbox,
        "couriers": ", ".join(one for one in running.channels if one not in running.absent),
        "redis": running.redis_url,
        "data": str(running.data),
    }


COMMANDS: Mapping[str, Command] = {"up": Command(declare_nothing, run)}
