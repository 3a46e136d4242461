"""A migration may be killed at any moment, repeated, and run twice at once; the command says what it did."""

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from cli.main import main
from core.errors import LayoutUnknown
from core.redis.keys import LAYOUT, MIGRATED, MIGRATING
from core.redis.migration import PAGE, Migration, migrate
from core.redis.server_checks import sign_layout
from core.redis.store import Argument, Store
from tests.crash.cuttable_link import CuttableLink
from tests.crash.process import AdaProcess
from tests.migration.stored_data import layout_2, load
from tests.support.audited import dump
from tests.support.servers import Server
from tests.support.waiting import until

TASKS = len(layout_2()["views"]["tasks"])


class KilledError(Exception):
    """The process of the store is gone."""


class MortalStore(Store):
    """A store whose process is killed after `calls` calls."""

    calls = 0

    async def run(self, name: str, shard: int, *arguments: Argument) -> Any:
        self._live()
        return await super().run(name, shard, *arguments)

    async def command(self, *command: str | int | float | bytes) -> Any:
        self._live()
        return await super().command(*command)

    def _live(self) -> None:
        if self.calls == 0:
            raise KilledError
        self.calls -= 1


async def killed_after(server: Server, calls: int) -> bool:
    """Whether the migration was killed after `calls` calls; False if it had ended before."""
    store = await MortalStore.open(server.url)
    store.calls = calls
    try:
        await migrate(store)
    except KilledError:
        return True
    finally:
        await store.close()
    return False


async def content(server: Server) -> dict[str, Any]:
    """All that is stored, without the times to live."""
    return {name: (key.kind, key.value) for name, key in (await dump(server.url)).items()}


async def migrated(server: Server) -> Migration | None:
    store = await Store.open(server.url)
    try:
        return await migrate(store)
    finally:
        await store.close()


async def is_refused(server: Server) -> bool:
    store = await Store.open(server.url)
    try:
        await sign_layout(store)
    except LayoutUnknown as error:
        return "./ada migrate" in str(error)
    finally:
        await store.close()
    return False


async def test_after_a_kill_at_any_call_data_are_refused_and_the_next_migration_ends_it(server: Server) -> None:
    load(server.url)
    await migrated(server)
    wanted, calls = await content(server), 0
    while True:
        server.empty()
        load(server.url)
        if not await killed_after(server, calls):
            break
        assert await is_refused(server), calls
        await migrated(server)
        assert await content(server) == wanted, calls
        calls += 1
    assert calls >= 9


async def test_a_migration_that_is_killed_with_kill_9_goes_on(server: Server, tmp_path: Path) -> None:
    load(server.url)
    await migrated(server)  # the functions are loaded from now on: the link blocks the reply to the first page
    wanted = await content(server)
    server.empty()
    load(server.url)
    link = CuttableLink(server.place.port)
    await link.start()
    link.block_replies(b"_migrate_tasks")
    process = AdaProcess(("migrate",), {"ADA_REDIS_URL": server.url_through(link.port)}, tmp_path / "log")
    try:
        await until(lambda: link.blocked > 0, within=60)
    finally:
        process.kill()
        await link.stop()
    with Redis.from_url(server.url, decode_responses=True) as client:
        assert client.get("layout:{0}") == MIGRATING
        kinds = [str(client.type(name)) for name in server.all_keys() if ":task:" in name]
    assert Counter(kinds) == {"string": PAGE, "hash": TASKS - PAGE}
    assert await is_refused(server)
    assert await migrated(server) == Migration(tasks=TASKS - PAGE, job_logs=2)
    assert await content(server) == wanted


async def test_the_version_before_reads_no_number_while_data_are_converted() -> None:
    assert not MIGRATING.isdecimal()


async def test_two_migrations_at_once_convert_each_task_once(server: Server) -> None:
    load(server.url)
    await migrated(server)
    wanted = await content(server)
    server.empty()
    load(server.url)
    done = [one for one in await asyncio.gather(migrated(server), migrated(server)) if one]
    assert sum(one.tasks for one in done) == TASKS
    assert await content(server) == wanted


async def test_a_migration_that_is_late_does_not_mark_data_that_another_has_converted(server: Server) -> None:
    load(server.url)
    store = await Store.open(server.url)
    await migrate(store)
    assert await store.run("migrate_layout", 0, str(MIGRATED), MIGRATING) == str(LAYOUT)
    assert not await is_refused(server)
    await store.close()


def run_ada(monkeypatch: pytest.MonkeyPatch, data: Path, url: str, *args: str) -> int:
    monkeypatch.setenv("ADA_DATA", str(data))
    monkeypatch.setenv("ADA_REDIS_URL", url)
    monkeypatch.chdir(data)
    return main(["migrate", *args])


def test_the_command_prints_in_one_line_what_it_did(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    load(server.url)
    assert run_ada(monkeypatch, tmp_path, server.url) == 0
    assert capsys.readouterr().out.startswith(f"migrated to layout {LAYOUT}: {TASKS} tasks and 2 logs in ")
    assert run_ada(monkeypatch, tmp_path, server.url) == 0
    assert capsys.readouterr().out == f"nothing to do: the data have layout {LAYOUT}\n"


def test_the_command_prints_json(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    load(server.url)
    assert run_ada(monkeypatch, tmp_path, server.url, "--json") == 0
    done = json.loads(capsys.readouterr().out)
    seconds = done.pop("seconds")
    assert done == {"layout": LAYOUT, "migrated": True, "tasks": TASKS, "damaged": 0, "job_logs": 2}
    assert seconds > 0


def test_the_command_starts_the_embedded_server_for_itself(
    own_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    load(own_server.url)
    own_server.stop()
    assert run_ada(monkeypatch, tmp_path, "") == 0
    printed = capsys.readouterr()
    assert f"{TASKS} tasks" in printed.out
    assert printed.err == ""
    own_server.start()
    with Redis.from_url(own_server.url, decode_responses=True) as client:
        assert client.get("layout:{0}") == str(LAYOUT)


def test_without_data_the_command_says_where_it_looked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_ada(monkeypatch, tmp_path, "") == 2
    assert f"no data in {tmp_path}" in capsys.readouterr().err
