"""The verbs backup, restore and migrate: all data of Ada on its server, in one file or on another server.

A backup is taken while Ada runs, or from the data directory of an Ada that is stopped. A restore and a migration want
Ada stopped; they start the embedded server for the time they take, and audit the data at the end. `migrate` moves the
data of this installation's server to another one or a cluster.
"""

import asyncio
import os
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, nullcontext, redirect_stdout
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from cli.client.verbs import print_result, progress_line
from cli.command import SUCCESS, WRONG_USAGE, Command, CommandFailed
from cli.commands.installation import audit
from cli.commands.start.installation import start_valkey
from cli.files import STDOUT, written_whole
from cli.processes import embedded_valkey
from cli.processes.data_directory import prepare_data_directory
from cli.processes.embedded_valkey import DirectoryInUse, running_url
from cli.processes.supervisor import Supervisor
from cli.settings.settings import Configuration, Settings, load
from core.backup import (
    ArchiveFault,
    ArchiveHeader,
    ArchiveReader,
    ArchiveWriter,
    End,
    check_archive,
    restore,
    take_snapshot,
)
from core.backup.archive import FORMAT
from core.backup.key_space import KeySpace, open_cluster, open_server
from core.backup.migration import Migration
from core.errors import SetupError, StoreUnavailable
from core.model.text.characters import counted
from core.redis.cluster import ClusterNodes, ShardMap, is_cluster_url
from core.redis.connection import ServerAddress
from core.redis.keys import layout_of_shards
from core.redis.refusals import malformed_url
from core.redis.server_checks import check_layout, layout_of
from core.redis.store import Store
from core.redis.topology import PrimaryNotFound, SentinelSet, Topology

_IN_DATA = {
    "api_key": "the first API key",
    "sign_in/secret_key": "the key of the tokens of signed-in users: without it they are lost",
    "couriers": "the sessions of Telegram, and the key of the browsers' notifications",
    "bots": "the state of the bots' connections",
}

_INTERVAL = 1.0
"""Seconds between two lines of progress on a terminal."""

_WHAT_FOLLOWS = """
Start Ada when you want it to go on: what has become due since the backup is sent
then, and what was sent since the backup may be sent again."""


def files_beside(configuration: Configuration) -> Iterator[tuple[Path, str]]:
    """Emit each file or folder of the installation that a backup of the server does not contain, with what it is."""
    data = configuration.settings.data.absolute()
    for name, what in _IN_DATA.items():
        if (path := data / name).exists():
            yield path, what
    named = {name: f"what {setting} names" for setting, name in configuration.named_files()}
    named |= {one.source: "settings" for one in configuration.raw.values()}
    for name, what in named.items():
        # not Path.exists: it raises for a value that is too long for the name of a file
        if os.path.exists(name) and (path := Path(name).absolute()) != data:  # noqa: PTH110
            yield path, what


def declare_backup(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the file to write; - is standard output")


def declare_restore(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a file that `ada backup` has written")
    parser.add_argument(
        "--replace",
        action="store_true",
        help="remove the data that are on the server, in the step that restores others",
    )


# backup


async def back_up(configuration: Configuration, arguments: Namespace) -> int:
    settings = configuration.settings
    async with backed_up_server(settings) as url:
        shards = await stored_shards(url, settings)
        with written_whole(arguments.file) as file:
            archive = ArchiveWriter(
                file, ArchiveHeader(FORMAT, layout_of_shards(shards), shards, int(time.time() * 1000))
            )

            async def taken() -> str:
                return f"backup: {counted(archive.entries, 'key')}"

            async with progress_line(taken, _INTERVAL):
                end = await take_snapshot(source_of(url), archive)
    print_backup(end, configuration, arguments)
    return SUCCESS


def source_of(url: str) -> ServerAddress | SentinelSet | ClusterNodes:
    """Return what a backup is taken from."""
    return ShardMap(url, 1).cluster or server_of(url)


def server_of(url: str) -> ServerAddress | SentinelSet:
    topology = Topology(url)
    return topology.sentinels or topology.address


async def stored_shards(url: str, settings: Settings) -> int:
    """Return the number of shards. Raises SetupError if there are no data; LayoutUnknown, ShardsDiffer."""
    store = await Store.open(url, settings.shards)
    try:
        await check_layout(store)
        if await layout_of(store, 0) is not None:
            return store.shards
    finally:
        await store.close()
    raise SetupError(
        f"there are no data of Ada at {ShardMap(url, 1).cluster or Topology(url)}; set ADA_REDIS_URL or ADA_DATA"
    )


def print_backup(end: End, configuration: Configuration, arguments: Namespace) -> None:
    beside = [{"path": str(path), "what": what} for path, what in files_beside(configuration)]
    result = {"file": arguments.file, "keys": end.keys, "at": moment(end), "beside": beside}
    lines = [f"wrote {arguments.file}: {counted(end.keys, 'key')}, as of {moment(end)}"]
    if beside:
        lines += ["", "Not in it, because the server does not have them; save them too:"]
        lines += [f"  {one['path']}\n      {one['what']}" for one in beside]
    with redirect_stdout(sys.stderr) if arguments.file == STDOUT else nullcontext():
        print_result(arguments, result, "\n".join(lines))


# restore


async def put_back(configuration: Configuration, arguments: Namespace) -> int:
    """Exit code 1 if the audit finds something in the restored data."""
    settings = configuration.settings
    refuse_restore_to_cluster(settings.redis_url)
    with opened(arguments.file) as file:
        end = await check(file, settings, arguments)
        async with stopped_server(settings) as url:
            archive = ArchiveReader(file)

            async def restored() -> str:
                return f"restore: {archive.entries:,} of {counted(end.entries, 'entry', 'entries')}"

            async with progress_line(restored, _INTERVAL):
                await restore(archive, server_of(url), replaces=arguments.replace)
            result = {"file": arguments.file, "keys": end.keys, "at": moment(end)}
            text = f"restored {arguments.file}: {counted(end.keys, 'key')}, as of {moment(end)}"
            print_result(arguments, result, text)
            return await audit_restored(url, settings, arguments)


def refuse_restore_to_cluster(url: str | None) -> None:
    """A cluster cannot exchange all data in one step. Raises SetupError."""
    if url and is_cluster_url(url):
        raise SetupError(
            "nothing is restored: ADA_REDIS_URL names a cluster. Restore to one server, for example the embedded one, "
            "and move the data with `ada migrate --to` (docs/backup.md)"
        )


async def check(file: IO[bytes], settings: Settings, arguments: Namespace) -> End:
    """Read the whole file before anything is touched. Leaves it at its start. Raises CommandFailed."""
    try:
        return await asyncio.to_thread(check_archive, file, settings.shards)
    except ArchiveFault as fault:
        raise CommandFailed(f"{arguments.file} is not restored: {fault}") from None


async def audit_restored(url: str, settings: Settings, arguments: Namespace) -> int:
    store = await Store.open(url, settings.shards)
    try:
        code = await audit.report(store, settings, arguments.json)
    finally:
        await store.close()
    if not arguments.json:
        print(_WHAT_FOLLOWS)
    return code


@contextmanager
def opened(name: str) -> Iterator[IO[bytes]]:
    """Open a file that can be read twice, to check it before anything is written. Raises CommandFailed."""
    if not Path(name).is_file():
        raise CommandFailed(f"there is no file {name}", WRONG_USAGE)
    with Path(name).open("rb") as file:
        yield file


def moment(end: End) -> str:
    return f"{datetime.fromtimestamp(end.at / 1000, UTC):%FT%TZ}"


# the server


@asynccontextmanager
async def backed_up_server(settings: Settings) -> AsyncIterator[str]:
    """Yield the URL of the server of ADA_REDIS_URL, or of the embedded one, which is started if it does not run. Raises
    SetupError.
    """
    directory = settings.data.absolute() / "valkey"
    if url := settings.redis_url or running_url(directory):
        yield url
        return
    if not directory.exists():
        raise SetupError(f"there are no data of Ada in {settings.data.absolute()}; set ADA_DATA or ADA_REDIS_URL")
    async with started_server(directory) as url:
        yield url


@asynccontextmanager
async def stopped_server(settings: Settings) -> AsyncIterator[str]:
    """Yield the URL of the server of ADA_REDIS_URL, or of the embedded one of an Ada that does not run. Raises
    CommandFailed if it does.
    """
    if settings.redis_url:
        yield settings.redis_url
        return
    async with started_server(prepare_data_directory(settings.data) / "valkey") as url:
        yield url


@asynccontextmanager
async def started_server(directory: Path) -> AsyncIterator[str]:
    """Run the embedded server without the rest of Ada. All is on the disk when it has ended. Raises CommandFailed."""
    supervisor = Supervisor(lambda process, line: None)
    try:
        with embedded_valkey.locked(directory) as lock:
            try:
                yield (await start_valkey(supervisor, directory, lock)).url
            finally:
                await supervisor.stop()
    except DirectoryInUse as error:
        raise CommandFailed(str(error)) from error


_TO = "--to"


def declare_migrate(parser: ArgumentParser) -> None:
    parser.add_argument(
        _TO,
        required=True,
        metavar="URL",
        help="redis://, rediss://, redis+sentinel:// or redis+cluster://, as ADA_REDIS_URL",
    )


async def migrate(configuration: Configuration, arguments: Namespace) -> int:
    """Exit code 1 if the audit finds something in the data at the target."""
    settings = configuration.settings
    async with backed_up_server(settings) as url:
        if ShardMap(url, 1).cluster:
            raise SetupError(
                "ADA_REDIS_URL names a cluster; only the data of one server can be moved. Those of a cluster are moved "
                "by `ada backup` and `ada restore` (docs/backup.md)"
            )
        source = open_server(server_of(url), "ADA_REDIS_URL")
        async with source as old, opened_target(arguments.to) as new:
            migration = Migration(old, new)
            shards = await shown(migration)
    print_moved(migration, shards, arguments)
    store = await Store.open(arguments.to, shards)
    try:
        return await audit.report(store, settings, arguments.json)
    finally:
        await store.close()


async def shown(migration: Migration) -> int:
    size = await migration.source.size()

    async def moved() -> str:
        done = "compared" if migration.keys else "copied"
        count = sum(migration.keys.values()) or migration.read
        return f"migrate: {count:,} of {counted(size, 'key')} {done}"

    async with progress_line(moved, _INTERVAL):
        return await migration.run()


@asynccontextmanager
async def opened_target(url: str) -> AsyncIterator[KeySpace]:
    """Open the target until the end of the block. Raises SetupError, StoreUnavailable."""
    try:
        cluster = ShardMap(url, 1).cluster
        opened = open_cluster(cluster, _TO) if cluster else open_server(server_of(url), _TO)
    except ValueError as fault:
        raise SetupError(str(malformed_url(fault)).replace("ADA_REDIS_URL", _TO)) from None
    try:
        async with opened as target:
            yield target
    except PrimaryNotFound as fault:
        raise (SetupError if fault.is_wrong_name else StoreUnavailable)(str(fault)) from None


def print_moved(migration: Migration, shards: int, arguments: Namespace) -> None:
    keys = sum(migration.keys.values())
    target = migration.target.name
    result = {"to": target, "shards": shards, "keys": keys, "written": migration.written, "areas": migration.keys}
    areas = ", ".join(f"{area} {count:,}" for area, count in sorted(migration.keys.items()) if count)
    lines = [
        f"moved {counted(keys, 'key')} to {target}, compared each: {areas}",
        f"Set ADA_REDIS_URL to it and ADA_SHARDS={shards}, then start Ada. No process starts on the old server.",
    ]
    print_result(arguments, result, "\n".join(lines))


COMMANDS: Mapping[str, Command] = {
    "backup": Command(declare_backup, lambda arguments: asyncio.run(back_up(load(), arguments))),
    "restore": Command(declare_restore, lambda arguments: asyncio.run(put_back(load(), arguments))),
    "migrate": Command(declare_migrate, lambda arguments: asyncio.run(migrate(load(), arguments))),
}
