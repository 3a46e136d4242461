"""The verb migrate: makes the data of the version before data of this version, while nothing else of Ada runs.

Without ADA_REDIS_URL it starts the embedded server for itself. Safe to interrupt and to repeat.
"""

import asyncio
import json
import sys
import time
from argparse import Namespace
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path

from cli.command import SUCCESS, Command, CommandFailed, no_arguments
from cli.commands.up import start_valkey
from cli.processes.embedded_valkey import DirectoryInUse, locked
from cli.processes.supervisor import Supervisor
from cli.settings.settings import Configuration, Settings, load
from core.errors import SetupError
from core.redis.keys import LAYOUT
from core.redis.migration import Migration, migrate
from core.redis.store import Store


def run(arguments: Namespace) -> int:
    return asyncio.run(migrate_data(load(), arguments.json))


async def migrate_data(configuration: Configuration, as_json: bool) -> int:
    settings = configuration.settings
    async with server_of(settings) as url:
        store = await Store.open(url, settings.shards)
        try:
            began = time.monotonic()
            print_done(await migrate(store), time.monotonic() - began, as_json)
        finally:
            await store.close()
    return SUCCESS


@asynccontextmanager
async def server_of(settings: Settings) -> AsyncIterator[str]:
    """The URL of the server: that of ADA_REDIS_URL, or the embedded one, which runs meanwhile.

    Raises SetupError if there is no data; CommandFailed if `./ada up` is running.
    """
    if settings.redis_url:
        yield settings.redis_url
        return
    directory = settings.data.absolute() / "valkey"
    if not directory.exists():
        raise SetupError(f"no data in {settings.data.absolute()}: set ADA_DATA, or ADA_REDIS_URL")
    try:
        async with embedded_server(directory) as url:
            yield url
    except DirectoryInUse as error:
        raise CommandFailed(str(error)) from error


@asynccontextmanager
async def embedded_server(directory: Path) -> AsyncIterator[str]:
    supervisor = Supervisor(print_warning)
    with locked(directory) as lock:
        try:
            yield (await start_valkey(supervisor, directory, lock)).url
        finally:
            await supervisor.stop()


def print_warning(name: str, line: str) -> None:
    if line != "ready":
        print(f"{name}: {line}", file=sys.stderr, flush=True)


def print_done(done: Migration | None, seconds: float, as_json: bool) -> None:
    if as_json:
        counts = asdict(done or Migration())
        print(json.dumps({"layout": LAYOUT, "migrated": done is not None, **counts, "seconds": round(seconds, 3)}))
    elif done is None:
        print(f"nothing to do: the data have layout {LAYOUT}")
    else:
        aside = f"; {done.damaged} damaged ones are set aside, see `./ada audit`" if done.damaged else ""
        print(f"migrated to layout {LAYOUT}: {done.tasks} tasks and {done.job_logs} logs in {seconds:.1f} s{aside}")


COMMANDS: Mapping[str, Command] = {"migrate": Command(no_arguments, run)}
