"""`./ada audit` on the command line: exit codes, sentences, JSON, repair."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from redis import Redis

from tests.support.servers import Server

pytestmark = pytest.mark.row("K-44")

ROOT = Path(__file__).parents[2]


def audit(server: Server, *words: str) -> subprocess.CompletedProcess[str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("ADA_")}
    return subprocess.run(
        [sys.executable, "-m", "cli", "audit", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env=own | {"PYTHONPATH": str(ROOT), "ADA_REDIS_URL": server.url},
    )


@pytest.fixture
def damaged(server: Server) -> Server:
    """A due entry without a task, and a key that is not ours."""
    with Redis.from_url(server.url) as client:
        client.zadd("queue:{0}:due", {"nothing": 9_999_999_999_999})
        client.set("stranger", "x")
    return server


def test_a_sound_server_is_good_and_says_what_is_not_seen(server: Server) -> None:
    done = audit(server)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("sound: 0 keys")
    assert all(rule in done.stdout for rule in ("I14", "I15", "I17"))


def test_what_is_broken_is_named_with_its_cure(damaged: Server) -> None:
    done = audit(damaged)
    assert done.returncode == 1
    assert "BROKEN  I6 queue:{0}:due: names nothing" in done.stdout
    assert "--repair mends it" in done.stdout
    assert "not mended: whose it is, is not known" in done.stdout
    assert damaged.all_keys() == ["queue:{0}:due", "stranger"]


def test_a_repair_mends_what_it_may_and_looks_again(damaged: Server) -> None:
    done = audit(damaged, "--repair")
    assert done.returncode == 1
    assert "mended  I6 queue:{0}:due" in done.stdout
    assert damaged.all_keys() == ["stranger"]
    with Redis.from_url(damaged.url) as client:
        client.delete("stranger")
    assert audit(damaged).returncode == 0


def test_programs_get_a_row_for_each_and_the_sum(damaged: Server) -> None:
    done = audit(damaged, "--repair", "--json")
    mended, stranger, total = [json.loads(line) for line in done.stdout.splitlines()]
    assert (mended["rule"], mended["mend"], mended["mended"]) == ("I6", "repair_index", ["taken out of the index"])
    assert (stranger["rule"], stranger["key"], stranger["mend"]) == ("I16", "stranger", None)
    assert total["violations"] == 1
    assert set(total["unseen"]) == {"I14", "I15", "I17"}
