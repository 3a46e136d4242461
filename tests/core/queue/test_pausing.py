"""An operator pauses a tube: no task is claimed, what is due still happens, and resuming wakes the workers at once."""

import asyncio
from datetime import timedelta

from core.monitoring.bulk_changes import ChangedLetters, DeadLetters
from core.queue import NewTask, QueueClient, Settlement, TaskFilter, Tubes, Worker, WorkerOptions
from tests.support.servers import on_both_servers
from tests.support.stack import HOUR, Stack
from tests.support.waiting import until

pytestmark = on_both_servers


async def test_a_paused_tube_gives_no_task_and_others_go_on(stack: Stack) -> None:
    tubes = Tubes(stack.store)
    await stack.queue.put("t", NewTask("held back"))
    gone = await stack.queue.put("t", NewTask("late", expires=stack.now() + HOUR))
    await stack.queue.put("u", NewTask("other"))
    assert await tubes.pause("t", "Anna", "the provider is down")
    assert not await tubes.pause("t", "Boris", "again")
    paused = (await tubes.pauses())["t"]
    assert (paused.by, paused.reason) == ("Anna", "the provider is down")
    assert await stack.take("t") == []
    assert [task.body for task in await stack.take("u")] == ["other"]
    stack.advance_clock(2 * HOUR)
    await stack.tick("t")
    assert (await stack.queue.inspector.list(TaskFilter(tube="t"), None, 10)).tasks[0].id != gone
    assert await tubes.resume("t")
    assert not await tubes.resume("t")
    assert [task.body for task in await stack.take("t")] == ["held back"]
    assert await tubes.pauses() == {}
    await stack.audit()


async def test_resuming_wakes_a_sleeping_worker_at_once_and_puts_meanwhile_wake_none(stack: Stack) -> None:
    done: list[str] = []

    async def handle(task: object, claim: object) -> Settlement:
        done.append("task")
        return Settlement()

    tubes, client = Tubes(stack.store), QueueClient(stack.store)
    await tubes.pause("t", "Anna", "a test")
    worker = Worker(stack.store, "t", handle, options=WorkerOptions(max_sleep=timedelta(minutes=5)))
    running = asyncio.create_task(worker.run())
    await until(lambda: worker.claims >= 2)
    claims = worker.claims
    for _ in range(20):
        await client.put("t", "")
    await tubes.resume("t")
    await until(lambda: len(done) == 20)
    assert worker.claims - claims < 20
    worker.stop()
    await running


async def test_a_group_is_kicked_up_to_a_moment_and_to_the_number_that_was_seen(stack: Stack) -> None:
    letters = DeadLetters(stack.store)
    for _ in range(5):
        await stack.queue.bury(await stack.queue.put("t", NewTask("", kind="k")))
    (group,) = await letters.groups()
    assert (group.tube, group.kind, group.error, group.size) == ("t", "k", "", 5)
    before = int(stack.now().timestamp() * 1000)
    stack.advance_clock(HOUR)
    later = await stack.queue.put("t", NewTask("", kind="k"))
    await stack.queue.bury(later)
    assert await letters.kick(group.name, before, 2) == ChangedLetters(2, 0)
    assert await letters.drop(group.name, before, 10) == ChangedLetters(3, 0)
    assert [one.size for one in await letters.groups()] == [1]
    assert await stack.state(later) == "buried"
    await stack.audit()
