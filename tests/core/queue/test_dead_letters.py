"""The last error stays with a task; buried tasks are grouped by tube, kind and error."""

import pytest

from core.audit import Audit
from core.queue import NewTask, SettleResult, TaskFilter, Tube, Tubes
from core.queue.task_ids import split_id
from core.redis.keys import KEYS
from tests.support.servers import on_both_servers
from tests.support.stack import HOUR, Stack

pytestmark = on_both_servers


async def bury(stack: Stack, tube: str, error: str, kind: str = "") -> str:
    task_id = await stack.queue.put(tube, NewTask("", kind=kind))
    (task,) = await stack.take(tube)
    await stack.queue.settle(task, result=SettleResult.BURY, error=error)
    return task_id


async def groups(stack: Stack) -> dict[str, int]:
    found = await stack.store.command("ZRANGE", KEYS["dead_letters"].at(0), 0, -1, "WITHSCORES")
    return {name: int(size) for name, size in found}


async def test_the_last_error_of_a_task_is_shown_in_one_short_line(stack: Stack) -> None:
    task_id = await stack.queue.put("t", NewTask(""))
    for error in ("first", "Refused:\n  over\tthe limit " + "x" * 1000, ""):
        (task,) = await stack.take()
        await stack.queue.settle(task, result=SettleResult.RETRY, error=error)
    seen = await stack.queue.inspector.peek(task_id)
    assert seen.error is not None
    assert seen.error.startswith("Refused: over the limit xxx")
    assert len(seen.error) == 500
    assert seen.erred


@pytest.mark.parametrize(
    ("error", "group"),
    [
        ("its receiver answered 410 Gone", "its receiver answered 410 Gone"),
        ("redirect 302", "redirect 302"),
        ("HTTP 503 after 12 attempts", "HTTP 503 after # attempts"),
        ("Status: 404, row 404", "Status: 404, row #"),
        ("exit code 137 of 5021", "exit code 137 of #"),
        ("status 20000, code 7, 503", "status #, code #, #"),
        ("answered410 0badcafe00", "answered410 #"),
    ],
)
async def test_a_group_of_dead_letters_names_the_status_that_was_answered(stack: Stack, error: str, group: str) -> None:
    await bury(stack, "webhooks", error)
    assert await groups(stack) == {f"webhooks\t\t{group}": 1}
    await stack.audit()


async def test_a_task_whose_worker_was_lost_says_so(stack: Stack) -> None:
    task_id = await stack.queue.put("t", NewTask(""))
    await stack.take()
    stack.advance_clock(HOUR)
    await stack.tick()
    assert (await stack.queue.inspector.peek(task_id)).error == "the worker was lost"


async def test_buried_tasks_are_grouped_by_tube_kind_and_error_without_its_numbers(stack: Stack) -> None:
    first = await bury(stack, "t", "ValueError: row 17 of 20")
    await bury(stack, "t", "ValueError: row 3 of 4")
    await bury(stack, "t", "ValueError: row 3 of 4", "timer")
    last = await bury(stack, "u", "Ошибка" * 100)
    long = "u\t\t" + ("Ошибка" * 10)[:59]  # 120 bytes at most, no half characters
    assert await groups(stack) == {"t\t\tValueError: row # of #": 2, "t\ttimer\tValueError: row # of #": 1, long: 1}
    await stack.audit()
    await stack.queue.kick(first)
    await stack.queue.cancel(last)
    assert await groups(stack) == {"t\t\tValueError: row # of #": 1, "t\ttimer\tValueError: row # of #": 1}
    await stack.audit()
    await stack.queue.cancel_by(TaskFilter(tenant="default"))
    assert await groups(stack) == {}


async def test_a_task_that_an_operator_buries_or_that_has_had_all_attempts_is_a_dead_letter_too(stack: Stack) -> None:
    await Tubes(stack.store).create(Tube("t", attempts=1))
    await stack.queue.bury(await stack.queue.put("t", NewTask("")))
    await stack.queue.put("t", NewTask(""))
    await stack.take()
    stack.advance_clock(HOUR)
    await stack.tick()
    assert await groups(stack) == {"t\t\t": 1, "t\t\tthe worker was lost": 1}
    await stack.audit()


async def test_the_audit_repairs_a_group_that_has_lost_or_kept_a_task(stack: Stack) -> None:
    lost, kept = await bury(stack, "t", "lost"), await bury(stack, "t", "kept")
    await stack.queue.kick(kept)
    _, lost_name = split_id(lost)
    _, kept_name = split_id(kept)
    await stack.redis.zrem(KEYS["dead_letter"].at(0, "t\t\tlost"), lost_name)
    await stack.redis.zadd(KEYS["dead_letter"].at(0, "t\t\tkept"), {kept_name: 1})
    await stack.redis.zadd(KEYS["dead_letters"].at(0), {"t\t\tkept": 7})
    for _ in range(3):
        audit = Audit(stack.store)
        for violation in [one async for one in audit.find()]:
            await audit.repair(violation)
    await stack.audit()
    assert await groups(stack) == {"t\t\tlost": 1}
    assert await stack.redis.exists(KEYS["dead_letter"].at(0, "t\t\tkept")) == 0
