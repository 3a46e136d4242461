"""`./ada audit` on the command line: exit codes, sentences, JSON, repair."""

import json
import os
import subprocess

import pytest
from redis import Redis

from cli.commands.installation.audit import shown_progress
from core.audit import Audit
from core.redis.store import Store
from tests.support.forked import run_ada
from tests.support.paths import ROOT
from tests.support.servers import Server
from tests.support.waiting import until


def audit(server: Server, *words: str) -> subprocess.CompletedProcess[str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("ADA_")}
    return run_ada(("audit", *words), own | {"ADA_REDIS_URL": server.url}, ROOT)


@pytest.fixture
def damaged(server: Server) -> Server:
    """A due entry without a task, and a key that is not ours."""
    with Redis.from_url(server.url) as client:
        client.zadd("queue:{0}:due", {"nothing": 9_999_999_999_999})
        client.set("foreign", "x")
    return server


def test_a_sound_server_exits_0_and_lists_what_is_not_checked(server: Server) -> None:
    done = audit(server)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("sound: 0 keys")
    assert all(rule in done.stdout for rule in ("I14", "I15", "I17"))


@pytest.mark.parametrize("words", [(), ("--json",), ("--repair",)])
def test_the_progress_is_shown_where_no_terminal_is(damaged: Server, words: tuple[str, ...]) -> None:
    done = audit(damaged, *words)
    assert done.stderr.startswith("audit: 0 of 2 keys, 0 tasks, 0 deliveries after 0 s\n")
    assert "audit:" not in done.stdout


async def test_a_long_audit_shows_its_progress_again_and_again(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    store = await Store.open(server.url)
    lines = ""

    def shown() -> int:
        nonlocal lines
        lines += capsys.readouterr().err
        return lines.count("audit: 0 of 0 keys")

    async with shown_progress(Audit(store), interval=0.05):
        await until(lambda: shown() >= 3)
    await store.close()


def test_a_violation_is_printed_with_its_remedy(damaged: Server) -> None:
    done = audit(damaged)
    assert done.returncode == 1
    assert "VIOLATED  I6 queue:{0}:due: names nothing" in done.stdout
    assert "--repair repairs it" in done.stdout
    assert "no safe repair: its owner is unknown" in done.stdout
    assert damaged.all_keys() == ["foreign", "queue:{0}:due"]


def test_repair_repairs_what_is_safe_and_checks_again(damaged: Server) -> None:
    done = audit(damaged, "--repair")
    assert done.returncode == 1
    assert "REPAIRED  I6 queue:{0}:due" in done.stdout
    assert damaged.all_keys() == ["foreign"]
    with Redis.from_url(damaged.url) as client:
        client.delete("foreign")
    assert audit(damaged).returncode == 0


def test_json_has_a_row_for_each_violation_and_a_summary(damaged: Server) -> None:
    done = audit(damaged, "--repair", "--json")
    repaired, foreign, total = [json.loads(line) for line in done.stdout.splitlines()]
    assert (repaired["rule"], repaired["repair"], repaired["changes"]) == (
        "I6",
        "repair_index",
        ["removed from the index"],
    )
    assert (foreign["rule"], foreign["key"], foreign["repair"]) == ("I16", "foreign", None)
    assert total["violations"] == 1
    assert set(total["unseen"]) == {"I14", "I15", "I17"}
