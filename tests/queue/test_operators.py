"""What operators see and do: `./ada queue …` and `/v1/queue…`."""

import asyncio
import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from core.queue.tubes import Tube, Tubes
from core.redis.server_checks import sign_layout
from tests.support.servers import Server
from tests.support.stack import HOUR, Stack

pytestmark = pytest.mark.row("K-34", "K-35")

ROOT = Path(__file__).parents[2]
Done = subprocess.CompletedProcess[str]


class Desk:
    """The command line beside a stack."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack

    async def __call__(self, *words: str) -> Done:
        return await asyncio.to_thread(ada, self.stack.server, *words)

    async def told(self, *words: str) -> list[dict[str, object]]:
        """The lines of an answer in JSON."""
        done = await self(*words, "--json")
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]


def ada(server: Server, *words: str) -> Done:
    own = {name: value for name, value in os.environ.items() if not name.startswith("ADA_")}
    return subprocess.run(
        [sys.executable, "-m", "cli", "queue", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env=own | {"PYTHONPATH": str(ROOT), "ADA_REDIS_URL": server.url},
    )


@pytest.fixture
async def desk(stack: Stack) -> Desk:
    await sign_layout(stack.store)
    return Desk(stack)


async def test_stats_tell_counts_by_state_and_tube(desk: Desk) -> None:
    await desk.stack.queue.put("reports", "", lane="l")
    await desk.stack.queue.put("reports", "", lane="l")
    (told,) = await desk.told("stats")
    assert told["tubes"]["reports"]["states"]["locked"] == 1  # type: ignore[index]
    text = (await desk("stats", "reports")).stdout
    assert "reports" in text
    assert "locked" in text
    assert "reports" not in (await desk("stats", "other")).stdout


async def test_list_and_peek_show_tasks(desk: Desk) -> None:
    first = await desk.stack.queue.put("t", "body", user="u", lane="l", tags=["exam"])
    second = await desk.stack.queue.put("t", "", user="v", lane="l")
    assert [task["id"] for task in await desk.told("list", "--user", "u")] == [first]
    assert {str(task["id"]) for task in await desk.told("list", "--tube", "t")} == {first, second}
    assert (await desk("list", "--state", "locked", "--tag", "exam")).stdout == ""
    assert f"{second}  locked behind {first}" in (await desk("list", "--lane", "l")).stdout
    assert "exam" in (await desk("peek", first)).stdout
    assert (await desk("peek", "0.none")).returncode == 1


async def test_bury_kick_and_cancel_by_id(desk: Desk) -> None:
    one = await desk.stack.queue.put("t", "")
    assert "buried" in (await desk("bury", one)).stdout
    assert await desk.told("kick", one) == [{"kicked": 1}]
    assert (await desk("kick", one)).returncode == 1
    assert await desk.told("cancel", one) == [{"cancelled": 1, "flagged": 0}]


async def test_kick_n_of_a_tube_cancel_by_user_and_purge(desk: Desk) -> None:
    stack = desk.stack
    await Tubes(stack.store).create(Tube("t", keep=timedelta(minutes=30)))
    for _ in range(3):
        await stack.queue.bury(await stack.queue.put("t", "", user="u"))
    assert await desk.told("kick", "--tube", "t", "--count", "2") == [{"kicked": 2}]
    assert await desk.told("cancel", "--user", "u") == [{"cancelled": 3, "flagged": 0}]
    assert (await desk("cancel", "--user", "u")).returncode == 1
    assert await desk.told("purge", "--tube", "other") == [{"purged": 0}]
    assert await desk.told("purge") == [{"purged": 3}]


@pytest.mark.parametrize("words", [["kick"], ["cancel"], ["cancel", "--tube", "t"], ["kick", "0.1", "--tube", "t"]])
async def test_what_names_nothing_is_wrong_usage(desk: Desk, words: list[str]) -> None:
    assert (await desk(*words)).returncode == 2


async def test_it_says_so_if_nobody_looks_after_what_is_due(desk: Desk) -> None:
    await desk.stack.queue.put("t", "", due=desk.stack.now() + timedelta(milliseconds=10))
    await desk.stack.redis.zadd("queue:{0}:due", {"order:1:nobody": 1})
    assert "nobody has looked" in (await desk("stats")).stdout
    await desk.stack.redis.zrem("queue:{0}:due", "order:1:nobody")
    desk.stack.passes(HOUR)
    await desk.stack.tick()
