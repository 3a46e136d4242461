"""fsync of the append-only file, from a process beside the server: every changed file, and no other."""

import asyncio
import os
from contextlib import suppress
from pathlib import Path

import pytest
from redis import Redis

from cli.processes import embedded_valkey
from cli.processes.embedded_valkey import AppendOnlyFiles, fsync_periodically
from tests.support.servers import Server
from tests.support.waiting import until


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """The inodes that fsync was called on since this set was last cleared."""
    seen: set[int] = set()
    fsync = os.fsync

    def recording_fsync(number: int) -> None:
        seen.add(os.fstat(number).st_ino)
        fsync(number)

    monkeypatch.setattr(os, "fsync", recording_fsync)
    return seen


def inodes(server: Server) -> set[int]:
    return {file.stat().st_ino for file in (server.place.directory / "appendonlydir").iterdir()}


def incremental_file(server: Server) -> int:
    """The inode of the file that commands are appended to."""
    return max((server.place.directory / "appendonlydir").glob("*.incr.aof")).stat().st_ino


def test_fsync_is_called_on_changed_files_only(own_server: Server, synced: set[int]) -> None:
    files = AppendOnlyFiles(own_server.place.directory)
    files.fsync()
    assert synced == inodes(own_server)
    synced.clear()
    assert files.fsync() == 0
    with Redis.from_url(own_server.url) as client:
        client.set("a", 1)
    assert files.fsync() == 1
    assert synced == {incremental_file(own_server)}


async def test_fsync_is_called_on_the_files_of_a_rewrite(own_server: Server, synced: set[int]) -> None:
    files = AppendOnlyFiles(own_server.place.directory)
    files.fsync()
    before = incremental_file(own_server)
    with Redis.from_url(own_server.url) as client:
        client.set("a", 1)
        client.bgrewriteaof()
        await until(lambda: incremental_file(own_server) != before)
        await until(lambda: not client.info("persistence")["aof_rewrite_in_progress"])
    synced.clear()
    files.fsync()
    assert incremental_file(own_server) in synced


def test_there_is_nothing_to_do_before_the_server_has_written(tmp_path: Path) -> None:
    assert AppendOnlyFiles(tmp_path).fsync() == 0


async def test_a_failing_disk_is_logged_once_and_tried_again(
    own_server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tries: list[int] = []

    def failing(number: int) -> None:
        tries.append(number)
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", failing)
    monkeypatch.setattr(embedded_valkey, "_INTERVAL", 0.01)
    task = asyncio.create_task(fsync_periodically(own_server.place.directory))
    await until(lambda: len(tries) >= 3)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert [record.message for record in caplog.records].count(
        "fsync of the append-only file failed: [Errno 5] Input/output error"
    ) == 1


def test_the_server_writes_to_the_kernel_before_it_replies(own_server: Server) -> None:
    """`appendfsync no`: the server does not call fsync, but writes before it replies; `everysec` writes after it."""
    with Redis.from_url(own_server.url, decode_responses=True) as client:
        settings = client.config_get("append*")
    assert (settings["appendonly"], settings["appendfsync"]) == ("yes", "no")
