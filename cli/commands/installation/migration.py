"""The verb migrate: moves all data from the server of this installation to another one or a cluster. Ada is stopped."""

import asyncio
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from cli.client.verbs import print_result
from cli.command import Command
from cli.commands.installation import audit
from cli.commands.installation.backups import address_of, backed_up_server
from cli.progress_line import progress_line
from cli.settings.settings import Configuration, load
from core.backup.key_space import KeySpace, open_cluster, open_server
from core.backup.migration import Migration
from core.errors import SetupError, StoreUnavailable
from core.model.text.characters import counted
from core.redis.cluster import ShardMap
from core.redis.refusals import malformed_url
from core.redis.store import Store
from core.redis.topology import PrimaryNotFound

_INTERVAL = 1.0
"""Seconds between two lines of progress on a terminal."""
_TO = "--to"


def declare(parser: ArgumentParser) -> None:
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
        source = open_server(await address_of(url), "ADA_REDIS_URL")
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
        opened = open_cluster(cluster, _TO) if cluster else open_server(await address_of(url), _TO)
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
    "migrate": Command(declare, lambda arguments: asyncio.run(migrate(load(), arguments))),
}
