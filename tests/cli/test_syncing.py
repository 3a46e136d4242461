"""The append-only file is brought to the disk from beside the server: all of it, and only what has grown."""

import asyncio
import os
from contextlib import suppress
from pathlib import Path

import pytest
from redis import Redis

from cli.processes import aof_fsync as syncing
from cli.processes.aof_fsync import Syncing, keep_synced
from tests.support.servers import Server
from tests.support.waiting import until


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """The inodes of what was brought to the disk since it was last emptied."""
    seen: set[int] = set()
    fsync = os.fsync

    def noting(number: int) -> None:
        seen.add(os.fstat(number).st_ino)
        fsync(number)

    monkeypatch.setattr(os, "fsync", noting)
    return seen


def inodes(server: Server) -> set[int]:
    return {file.stat().st_ino for file in (server.place.directory / "appendonlydir").iterdir()}


def growing(server: Server) -> int:
    """The file that commands are appended to."""
    return max((server.place.directory / "appendonlydir").glob("*.incr.aof")).stat().st_ino


def test_what_has_grown_is_brought_to_the_disk_and_nothing_else(own_server: Server, synced: set[int]) -> None:
    bringing = Syncing(own_server.place.directory)
    bringing.sync()
    assert synced == inodes(own_server)
    synced.clear()
    assert bringing.sync() == 0
    with Redis.from_url(own_server.url) as client:
        client.set("a", 1)
    assert bringing.sync() == 1
    assert synced == {growing(own_server)}


async def test_the_files_of_a_rewrite_are_brought_to_the_disk_too(own_server: Server, synced: set[int]) -> None:
    bringing = Syncing(own_server.place.directory)
    bringing.sync()
    before = growing(own_server)
    with Redis.from_url(own_server.url) as client:
        client.set("a", 1)
        client.bgrewriteaof()
        await until(lambda: growing(own_server) != before)
        await until(lambda: not client.info("persistence")["aof_rewrite_in_progress"])
    synced.clear()
    bringing.sync()
    assert growing(own_server) in synced


def test_before_the_server_has_written_anything_there_is_nothing_to_do(tmp_path: Path) -> None:
    assert Syncing(tmp_path).sync() == 0


async def test_a_disk_that_fails_is_told_once_and_tried_again(
    own_server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tries: list[int] = []

    def failing(number: int) -> None:
        tries.append(number)
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", failing)
    monkeypatch.setattr(syncing, "_EVERY", 0.01)
    keeping = asyncio.create_task(keep_synced(own_server.place.directory))
    await until(lambda: len(tries) >= 3)
    keeping.cancel()
    with suppress(asyncio.CancelledError):
        await keeping
    assert [record.message for record in caplog.records].count(
        "the append-only file cannot be brought to the disk: [Errno 5] Input/output error"
    ) == 1


def test_the_server_hands_everything_to_the_kernel_before_it_answers(own_server: Server) -> None:
    """`no` of appendfsync means that the server does not sync by itself; `everysec` would answer before it writes."""
    with Redis.from_url(own_server.url, decode_responses=True) as client:
        settings = client.config_get("append*")
    assert (settings["appendonly"], settings["appendfsync"]) == ("yes", "no")
