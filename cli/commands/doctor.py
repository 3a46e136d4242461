"""The verb doctor: looks at the settings, the server, the clock, the credentials; says what mends what is wrong."""

import asyncio
import json
import shutil
import time
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from cli.command import GOOD, NO, Command
from cli.processes.startup import redis_url
from cli.settings.settings import Configuration, channels, courier_module, load
from core.errors import LayoutUnknown, SetupError
from core.redis.keys import LAYOUT
from core.redis.server_checks import check, check_layout
from core.redis.store import Store

CLOCK_TOLERANCE = 1.0
"""Seconds between our clock and the server's: deliveries are due by the server's, people read ours."""

ROOM = 2**30


@dataclass(frozen=True)
class Finding:
    """One thing looked at. `is_good` None: not set up, which is no fault."""

    what: str
    is_good: bool | None
    said: str
    mend: str = ""

    def __str__(self) -> str:
        mark = {True: "good", False: "BAD ", None: "    "}[self.is_good]
        return f"{mark}  {self.what:<9} {self.said}" + (f"\n                {self.mend}" if self.mend else "")


def declare(parser: ArgumentParser) -> None:
    parser.add_argument("--sign-in", action="store_true", help="also sign in at the providers, as the couriers would")


def run(arguments: Namespace) -> int:
    return asyncio.run(examine(load(), arguments))


async def examine(configuration: Configuration, arguments: Namespace) -> int:
    worst = True
    async for finding in findings(configuration, arguments.sign_in):
        print(json.dumps(asdict(finding), ensure_ascii=False) if arguments.json else finding, flush=True)
        worst = worst and finding.is_good is not False
    return GOOD if worst else NO


async def findings(configuration: Configuration, signs_in: bool) -> AsyncIterator[Finding]:
    yield Finding("settings", True, f"{len(configuration.given)} set")
    yield of_data(configuration.settings.data.absolute())
    async for finding in of_server(configuration):
        yield finding
    for channel in channels():
        yield await of_channel(configuration, channel, signs_in)


def of_data(data: Path) -> Finding:
    try:
        data.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(data).free
    except OSError as fault:
        return Finding("data", False, f"{data} cannot be used: {fault}", "make it writable, or set ADA_DATA")
    if free < ROOM:
        return Finding("data", False, f"{data} has {free / 2**20:.0f} MiB left", "free some room, or set ADA_DATA")
    return Finding("data", True, f"{data}, {free / 2**30:.0f} GiB free")


async def of_server(configuration: Configuration) -> AsyncIterator[Finding]:
    try:
        url = redis_url(configuration.settings)
    except SetupError as fault:
        yield Finding("redis", None, str(fault))
        return
    try:
        store = await Store.open(url, configuration.settings.shards)
    except SetupError as fault:
        yield Finding("redis", False, str(fault))
        return
    try:
        yield await of_version(store)
        for complaint in await check(store):
            found = f"{complaint.setting} is {complaint.found or 'empty'}, not {complaint.wanted}: {complaint.why}"
            yield Finding("redis", False if complaint.fatal else None, found, complaint.mend)
        yield await of_layout(store)
        yield await of_clock(store)
    finally:
        await store.close()


async def of_version(store: Store) -> Finding:
    facts = await store.redis.info("server")
    name = facts.get("server_name", "redis")
    version = facts.get(f"{name}_version", facts.get("redis_version"))
    return Finding("redis", True, f"{name} {version}")


async def of_layout(store: Store) -> Finding:
    try:
        await check_layout(store)
    except LayoutUnknown as fault:
        return Finding("layout", False, str(fault))
    return Finding("layout", True, str(LAYOUT))


async def of_clock(store: Store) -> Finding:
    """The server's clock against ours, less half the way there and back."""
    began = time.time()
    seconds, micros = await store.redis.time()
    away = abs(seconds + micros / 1e6 - (began + time.time()) / 2)
    if away > CLOCK_TOLERANCE:
        return Finding(
            "clock", False, f"the server's is {away:.1f} s away from ours", "let both follow a time server (NTP)"
        )
    return Finding("clock", True, f"{away * 1000:.0f} ms away from the server's")


async def of_channel(configuration: Configuration, channel: str, signs_in: bool) -> Finding:
    if not configuration.has_channel(channel):
        return Finding(channel, None, "not set up")
    try:
        settings = configuration.channel(channel)
        if not signs_in:
            return Finding(channel, True, "settings are complete (--sign-in tries them)")
        directory = configuration.settings.data.absolute() / "couriers" / channel
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        courier = await courier_module(channel).open(settings, directory)
    except SetupError as fault:
        return Finding(channel, False, str(fault))
    await courier.close()
    return Finding(channel, True, f"signed in as {courier.account}")


COMMANDS: Mapping[str, Command] = {"doctor": Command(declare, run)}
