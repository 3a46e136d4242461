"""Calls and waiting: each caller gets its own answer, also after a restart."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any, cast

import pytest

from core.errors import Invalid, NotFound
from core.model.states import TaskState
from core.queue import Attempt, Bury, CallFailed, Failed, NewTask, QueueClient, TaskEnd, TaskFilter, Tube
from core.queue.task_ids import split_id
from tests.support.servers import Server, on_both_servers
from tests.support.stack import HOUR, Stack
from tests.support.stored_tasks import stored_facts
from tests.support.waiting import until
from tests.support.workshop import SOON, Workshop, echo, returning


@on_both_servers
async def test_concurrent_calls_each_get_their_own_answer(workshop: Workshop) -> None:
    await workshop.start_worker(echo)
    texts = [f"call {n}" for n in range(200)]
    assert await asyncio.gather(*(workshop.client.call("t", text, SOON) for text in texts)) == [
        text.upper() for text in texts
    ]
    assert not workshop.client.replies._unclaimed


async def test_a_call_whose_task_fails_raises_call_failed(workshop: Workshop) -> None:
    await workshop.start_worker(returning(Failed("no such thing")))
    with pytest.raises(CallFailed, match="failed: no such thing"):
        await workshop.client.call("t", "", SOON)


async def test_a_call_that_no_worker_takes_times_out_and_is_never_started(stack: Stack, workshop: Workshop) -> None:
    with pytest.raises(TimeoutError):
        await workshop.client.call("t", "late", timedelta(milliseconds=50))
    assert workshop.client.replies._waiting == {}
    stack.advance_clock(timedelta(seconds=1))
    assert await stack.finish_all() == []


async def test_an_answer_survives_a_restart_of_its_caller(stack: Stack, workshop: Workshop) -> None:
    before = QueueClient(stack.store, "caller")
    early, late = [await before.ask("t", text) for text in ("early", "late")]
    await before.close()
    (task, _) = await stack.take(limit=2, lease=HOUR)
    await stack.queue.settle(task, answer="EARLY")
    after = QueueClient(stack.store, "caller")
    assert await after.answer(early, SOON) == "EARLY"
    stack.advance_clock(2 * HOUR)
    await workshop.start_worker(echo)
    assert await after.answer(late, SOON) == "LATE"
    assert await stack.redis.xlen("reply:{0}:caller") == 0
    await after.close()


async def test_an_answer_survives_a_restart_of_the_server(own_server: Server) -> None:
    stack = await Stack.open(own_server)
    workshop = Workshop(stack.store)
    calling = asyncio.create_task(workshop.client.call("t", "text", timedelta(seconds=20)))
    await until(lambda: _put(stack))
    own_server.kill()
    own_server.start()
    await workshop.start_worker(echo)
    assert await calling == "TEXT"
    await workshop.close()
    await stack.close()


async def _put(stack: Stack) -> bool:
    return bool((await stack.queue.inspector.stats()).tubes.get("t"))


@on_both_servers
async def test_several_clients_wait_for_the_end_of_a_task_put_by_another(stack: Stack, workshop: Workshop) -> None:
    task_id = await stack.queue.put("t", NewTask("", lane="lane"))
    others = [QueueClient(stack.store) for _ in range(3)]
    waiting = [asyncio.create_task(client.wait(task_id, SOON)) for client in others]
    await until(lambda: _waits(stack, task_id, 3))
    (task,) = await stack.take()
    await stack.queue.settle(task, answer="x")
    assert {(await one).answer for one in waiting} == {"x"}
    for client in others:
        await client.close()


async def _waits(stack: Stack, task_id: str, count: int) -> bool:
    facts = await stored_facts(stack.redis, task_id.partition(".")[2])
    return len(facts.get("reply", "").split()) == count


@pytest.mark.parametrize("end", ["cancelled", "expired"])
async def test_a_waiting_client_is_notified_of_every_kind_of_end(stack: Stack, workshop: Workshop, end: str) -> None:
    task_id = await stack.queue.put("t", NewTask("", expires=stack.now() + timedelta(minutes=1)))
    waiting = asyncio.create_task(workshop.client.wait(task_id, SOON))
    await until(lambda: _waits(stack, task_id, 1))
    if end == "cancelled":
        await stack.queue.cancel(task_id)
    else:
        stack.advance_clock(HOUR)
        await stack.tick()
    assert (await waiting).state == end


async def test_waiting_for_an_ended_task_returns_at_once(stack: Stack, workshop: Workshop) -> None:
    await workshop.client.tubes.create(Tube("kept", keep=HOUR / 2))
    kept, gone = await stack.queue.put("kept", NewTask("")), await stack.queue.put("t", NewTask(""))
    await stack.finish_all("kept")
    await stack.finish_all("t")
    assert (await workshop.client.wait(kept, SOON)).state is TaskState.DONE
    with pytest.raises(NotFound):
        await workshop.client.wait(gone, SOON)
    with pytest.raises(TimeoutError):
        await workshop.client.wait(await stack.queue.put("t", NewTask("")), timedelta(milliseconds=30))


@pytest.mark.parametrize("name", ["two words", "\n"])
async def test_a_client_name_with_a_space_or_line_break_is_refused(stack: Stack, name: str) -> None:
    with pytest.raises(Invalid):
        QueueClient(stack.store, name)


async def test_any_number_of_coroutines_of_one_process_may_wait_for_the_same_task(workshop: Workshop) -> None:
    """Regression: only the last one of them got the end; the others timed out."""
    gate = asyncio.Event()

    async def handler(attempt: Attempt) -> str:
        await gate.wait()
        return "done"

    task_id = await workshop.client.put("t", "")
    waiting = [asyncio.create_task(workshop.client.wait(task_id, SOON)) for _ in range(3)]
    await workshop.start_worker(handler)
    await until(lambda: sum(map(len, workshop.client.replies._waiting.values())) == 3)
    gate.set()
    assert {end.answer for end in await asyncio.gather(*waiting)} == {"done"}
    assert workshop.client.replies._waiting == {}


async def test_a_coroutine_that_gives_up_waiting_takes_the_end_from_no_other(workshop: Workshop) -> None:
    task_id = await workshop.client.put("t", "a")
    patient = asyncio.create_task(workshop.client.wait(task_id, SOON))
    with pytest.raises(TimeoutError):
        await workshop.client.wait(task_id, timedelta(milliseconds=50))
    await workshop.start_worker(echo)
    assert (await patient).answer == "A"


@on_both_servers
async def test_a_caller_that_waits_after_the_end_gets_it_also_in_another_process(
    stack: Stack, workshop: Workshop
) -> None:
    """Regression: without `keep` in the tube `wait` raised NotFound if the task had ended before the call."""
    await workshop.start_worker(echo)
    ids = [await workshop.client.put("t", "one"), *await workshop.client.put_many("t", [NewTask("two")] * 600)]
    await until(lambda: _all_gone(stack, ids))
    other = QueueClient(stack.store)
    assert await workshop.client.wait(ids[0], SOON) == await other.wait(ids[0], SOON) == TaskEnd(TaskState.DONE, "ONE")
    assert await other.wait(ids[-1], SOON) == TaskEnd(TaskState.DONE, "TWO")
    with pytest.raises(NotFound, match="is not kept any more"):
        await other.wait("0.never", SOON)
    long = await workshop.client.put("t", "x" * 1025)
    await until(lambda: _all_gone(stack, [long]))
    with pytest.raises(NotFound):
        await other.wait(long, SOON)
    await other.close()


async def _all_gone(stack: Stack, ids: list[str]) -> bool:
    return not [task for task in await stack.queue.inspector.views(0, [split_id(one)[1] for one in ids]) if task]


async def test_a_call_of_a_buried_task_says_why_it_has_no_answer(stack: Stack, workshop: Workshop) -> None:
    await workshop.start_worker(returning(Bury("no such row")))
    with pytest.raises(TimeoutError, match=r"has not ended within 0:00:00.200000: it is buried \(no such row\)\."):
        await workshop.client.call("t", "", timedelta(milliseconds=200))
    with pytest.raises(TimeoutError, match="it is ready"):
        await workshop.client.wait(await workshop.client.put("nobody's", ""), timedelta(milliseconds=1))


async def test_an_end_that_ten_thousand_others_have_pushed_out_is_fetched(
    stack: Stack, workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And only once: what was fetched is in neither the memory nor the stream any more."""
    monkeypatch.setattr("core.queue.client._REMEMBERED", 3)
    client = QueueClient(stack.store, "caller")
    ids = [await client.ask("t", str(n)) for n in range(9)]
    await workshop.start_worker(echo)
    assert await client.answer(ids[8], SOON) == "8"
    await until(lambda: _remembers(client, ids[5:8]))
    for n in (0, 7, 4):
        assert await client.answer(ids[n], SOON) == str(n)
        with pytest.raises(TimeoutError, match="its end was not kept"):
            await client.answer(ids[n], timedelta(milliseconds=1))
    await client.close()


async def _remembers(client: QueueClient, ids: list[str]) -> bool:
    return [f"{shard}.{name}" for shard, name in client.replies._unclaimed] == ids


WRONG: dict[str, Callable[[Any], Awaitable[object]]] = {
    "timeout of a call must be a timedelta, for example timedelta(seconds=5), and not int.": lambda it: it.call(
        "t", "", 2
    ),
    "timeout of a call must be a timedelta, for example timedelta(seconds=5), and not float.": lambda it: it.wait(
        "0.x", 2.0
    ),
    "The due of a task must be a datetime with a time zone, and not int.": lambda it: it.put("t", "", due=5),
    "The expires of a task has no time zone: 0001-01-01": lambda it: it.put("t", "", expires=datetime.min),  # noqa: DTZ901
    "The body of a task must be a text (str), and not dict.": lambda it: it.put("t", {"a": 1}),
    "The tube of a task must be a text (str), and not int.": lambda it: it.put(5, ""),
    "The tags of a task must be a list of texts, and not str.": lambda it: it.put("t", "", tags="a"),
    "The tasks of a put_many must be a NewTask, and not str.": lambda it: it.put_many("t", ["a"]),
    "The expires of a tube must be a timedelta": lambda it: it.tubes.create(Tube("t", expires=cast(Any, 5))),
    "The lease of a worker must be a timedelta": lambda it: it.worker("t", echo, lease=5).run(),
    "The user of a filter must be a text (str), and not int.": lambda it: it.queue.cancel_by(TaskFilter(cast(Any, 42))),
    "The id of a task is the text that put has returned, and not int.": lambda it: it.wait(5),
}


@pytest.mark.parametrize("sentence", WRONG)
async def test_an_argument_of_the_wrong_type_is_a_type_error_with_a_sentence(workshop: Workshop, sentence: str) -> None:
    with pytest.raises(TypeError, match=re.escape(sentence)):
        await WRONG[sentence](workshop.client)
