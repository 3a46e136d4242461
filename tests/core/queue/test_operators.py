"""What operators see and do with `./ada queue …`."""

import asyncio
import json
import os
import subprocess
from collections.abc import Sequence
from datetime import timedelta

import pytest

from core.queue import NewTask, Tube, Tubes
from core.redis.server_checks import sign_layout
from tests.support.forked import run_ada
from tests.support.paths import ROOT
from tests.support.servers import Server
from tests.support.stack import HOUR, Stack

Completed = subprocess.CompletedProcess[str]


class CommandLine:
    """Runs `./ada queue` on the stack's server."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack

    async def __call__(self, *words: str) -> Completed:
        return await asyncio.to_thread(run_queue, self.stack.server, *words)

    async def json(self, *words: str) -> list[dict[str, object]]:
        """Return the JSON lines that a successful command printed."""
        done = await self(*words, "--json")
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]


def run_queue(server: Server, *words: str) -> Completed:
    own = {name: value for name, value in os.environ.items() if not name.startswith("ADA_")}
    return run_ada(("queue", *words), own | {"ADA_REDIS_URL": server.url}, ROOT)


@pytest.fixture
async def ada(stack: Stack) -> CommandLine:
    await sign_layout(stack.store)
    return CommandLine(stack)


async def test_stats_show_counts_by_state_and_tube(ada: CommandLine) -> None:
    await ada.stack.queue.put("reports", NewTask("", lane="l"))
    await ada.stack.queue.put("reports", NewTask("", lane="l"))
    (stats,) = await ada.json("stats")
    assert stats["tubes"]["reports"]["states"]["locked"] == 1  # type: ignore[index]
    text = (await ada("stats", "reports")).stdout
    assert "reports" in text
    assert "locked" in text
    assert "reports" not in (await ada("stats", "sms")).stdout


async def test_list_and_peek_show_tasks(ada: CommandLine) -> None:
    first = await ada.stack.queue.put("t", NewTask("body", user="u", lane="l", tags=["exam"]))
    second = await ada.stack.queue.put("t", NewTask("", user="v", lane="l"))
    assert [task["id"] for task in await ada.json("list", "--user", "u")] == [first]
    assert {str(task["id"]) for task in await ada.json("list", "--tube", "t")} == {first, second}
    assert (await ada("list", "--state", "locked", "--tag", "exam")).stdout == ""
    assert f"{second}  locked behind {first}" in (await ada("list", "--lane", "l")).stdout
    assert "exam" in (await ada("peek", first)).stdout
    assert (await ada("peek", "0.none")).returncode == 1


async def test_json_of_a_task_has_exactly_the_fields_that_it_has(ada: CommandLine) -> None:
    """A priority of 0 is shown; fields that were not given are absent."""
    task_id = await ada.stack.queue.put("t", NewTask("body", priority=0, tags=["b", "a"]))
    (task,) = await ada.json("peek", task_id)
    assert isinstance(task.pop("order"), int)
    assert task == {
        "id": task_id,
        "state": "ready",
        "tube": "t",
        "tenant": "default",
        "tags": ["b", "a"],
        "priority": 0,
        "body": "body",
    }


async def test_json_of_stats_has_exactly_the_counters_that_are_not_zero(ada: CommandLine) -> None:
    await ada.stack.queue.put("t", NewTask(""))
    await ada.stack.finish_all()
    (stats,) = await ada.json("stats")
    assert stats == {
        "matters": [],
        "due": 0,
        "taken": 0,
        "buried": 0,
        "finished": 0,
        "overdue_ms": 0,
        "tubes": {
            "t": {
                "put": 1,
                "claimed": 1,
                "done": 1,
                "live": 0,
                "states": {"waiting": 0, "ready": 0, "locked": 0, "taken": 0, "buried": 0},
                "lag_ms": 0.0,
                "oldest_ms": 0,
            }
        },
    }


async def test_bury_kick_and_cancel_by_id(ada: CommandLine) -> None:
    one = await ada.stack.queue.put("t", NewTask(""))
    assert "buried" in (await ada("bury", one)).stdout
    assert await ada.json("kick", one) == [{"kicked": 1}]
    assert (await ada("kick", one)).returncode == 1
    assert await ada.json("cancel", one) == [{"cancelled": 1, "flagged": 0}]


async def test_kick_some_of_a_tube_cancel_by_user_and_purge(ada: CommandLine) -> None:
    stack = ada.stack
    await Tubes(stack.store).create(Tube("t", keep=timedelta(minutes=30)))
    for _ in range(3):
        await stack.queue.bury(await stack.queue.put("t", NewTask("", user="u")))
    assert await ada.json("kick", "--tube", "t", "--count", "2") == [{"kicked": 2}]
    assert await ada.json("cancel", "--user", "u") == [{"cancelled": 3, "flagged": 0}]
    assert (await ada("cancel", "--user", "u")).returncode == 1
    assert await ada.json("purge", "--tube", "sms") == [{"purged": 0}]
    assert await ada.json("purge") == [{"purged": 3}]


@pytest.mark.parametrize("words", [["kick"], ["cancel"], ["cancel", "--tube", "sms"], ["kick", "0.1", "--tube", "sms"]])
async def test_a_command_that_selects_no_task_is_wrong_usage(ada: CommandLine, words: list[str]) -> None:
    assert (await ada(*words)).returncode == 2


async def test_stats_warn_if_no_worker_takes_due_tasks(ada: CommandLine) -> None:
    await ada.stack.queue.put("t", NewTask("", due=ada.stack.now() + timedelta(milliseconds=10)))
    await ada.stack.redis.zadd("queue:{0}:due", {"order:1:unknown": 90_000})
    assert "no worker takes due tasks since 1970-01-01 00:01:" in (await ada("stats")).stdout
    await ada.stack.redis.zrem("queue:{0}:due", "order:1:unknown")
    ada.stack.advance_clock(HOUR)
    await ada.stack.tick()


async def test_a_tube_is_paused_with_a_reason_and_resumed(ada: CommandLine) -> None:
    await ada.stack.queue.put("t", NewTask(""))
    assert (await ada("pause", "t", "--reason", "the provider is down")).stdout.endswith(": the provider is down\n")
    assert (await ada("pause", "t")).returncode == 1
    assert await ada.stack.take("t") == []
    assert (await ada("resume", "t")).stdout == "t is resumed\n"
    assert (await ada("resume", "t")).returncode == 1


@pytest.mark.parametrize(
    "words",
    [
        *(("pause",), ("resume",), ("stats",), ("lanes",), ("kick", "--tube"), ("purge", "--tube"), ("list", "--tube")),
        ("cancel", "--user", "u", "--tube"),
    ],
)
async def test_a_tube_that_is_not_known_is_refused(ada: CommandLine, words: Sequence[str]) -> None:
    await Tubes(ada.stack.store).create(Tube("reports"))
    for name, hint in (("smss", "sms"), ("report", "reports")):
        refused = await ada(*words, name)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert f"There is no tube {name}; did you mean {hint}?" in refused.stderr


async def test_a_tube_without_tasks_can_be_paused(ada: CommandLine) -> None:
    await Tubes(ada.stack.store).create(Tube("reports"))
    assert (await ada("pause", "sms")).returncode == (await ada("pause", "reports")).returncode == 0
    assert set(await Tubes(ada.stack.store).pauses()) == {"sms", "reports"}


async def test_the_longest_lanes_are_listed(stack: Stack, ada: CommandLine) -> None:
    tasks = [NewTask("", lane="short"), *(NewTask("", lane="long") for _ in range(3)), NewTask("", lane="short")]
    await stack.queue.put_many("t", tasks)
    assert [(lane["lane"], lane["tasks"]) for lane in await ada.json("lanes")] == [("long", 3), ("short", 2)]
    assert (await ada("lanes", "t", "--limit", "1")).stdout.split() == ["3", "t", "long"]
    assert await ada.json("lanes", "sms") == []
