"""The scripts do what the table of states (`NEXT` in core/model/states.py) says: every verb, in every state."""

from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from core.errors import Conflict, NotFound
from core.model.states import NEXT, TaskState
from core.queue import NewTask, SettleResult, Task
from tests.support.stack import HOUR, LEASE, Stack

TUBE = "t"
ENDS = ("done", "failed", "cancelled", "expired")


class Case:
    """One task, brought into a state, and its last claim."""

    def __init__(self, stack: Stack) -> None:
        self.stack, self.id = stack, ""
        self.task: Task | None = None

    async def put(self, *, due_in: timedelta | None = None) -> None:
        now = self.stack.now()
        due = now + due_in if due_in else None
        self.id = await self.stack.queue.put(TUBE, NewTask("", lane="lane", due=due, expires=now + 3 * HOUR))

    async def take(self) -> None:
        (self.task,) = await self.stack.take(TUBE)

    @property
    def claimed(self) -> Task:
        """Return the task as it was last claimed; if it never was, with a token that was given to no worker."""
        if self.task is not None:
            return self.task
        return Task(0, self.id.partition(".")[2], "0", 1, 0, 0, "", "", 0, "", "", 0)

    async def state(self) -> TaskState:
        try:
            return (await self.stack.queue.inspector.peek(self.id)).state
        except NotFound:
            stats = (await self.stack.queue.inspector.stats()).tubes[TUBE]
            return TaskState(next(end for end in ENDS if getattr(stats, end)))


async def waiting(case: Case) -> None:
    await case.put(due_in=HOUR)


async def ready(case: Case) -> None:
    await case.put()


async def taken(case: Case) -> None:
    await case.put()
    await case.take()


async def buried(case: Case) -> None:
    await case.put()
    await case.stack.queue.bury(case.id)


STATES: dict[TaskState, Callable[[Case], Awaitable[None]]] = {
    TaskState.WAITING: waiting,
    TaskState.READY: ready,
    TaskState.TAKEN: taken,
    TaskState.BURIED: buried,
}


async def passes(case: Case, time: timedelta) -> None:
    case.stack.advance_clock(time)
    await case.stack.tick()


def later(case: Case) -> int:
    return int((case.stack.now() + HOUR).timestamp() * 1000)


async def woken_and_suspended(case: Case) -> None:
    if case.task is not None:
        await case.stack.queue.wake(case.id)
    await case.stack.queue.suspend(case.claimed, later(case))


VERBS: dict[str, list[Callable[[Case], Awaitable[object]]]] = {
    "due": [lambda case: passes(case, HOUR)],
    "claim": [lambda case: case.stack.take(TUBE)],
    "extend": [lambda case: case.stack.queue.extend(case.claimed, LEASE)],
    "settle": [
        lambda case: case.stack.queue.settle(case.claimed),
        lambda case: case.stack.queue.settle(case.claimed, result=SettleResult.FAILED),
        lambda case: case.stack.queue.settle(case.claimed, result=SettleResult.RETRY),
        lambda case: case.stack.queue.settle(case.claimed, result=SettleResult.RETRY, due=later(case)),
    ],
    "release": [
        lambda case: case.stack.queue.release(case.claimed),
        lambda case: case.stack.queue.release(case.claimed, later(case)),
    ],
    "suspend": [
        lambda case: case.stack.queue.suspend(case.claimed, later(case)),
        lambda case: case.stack.queue.suspend(case.claimed, later(case), leaves_lane=True),
        woken_and_suspended,
    ],
    "wake": [lambda case: case.stack.queue.wake(case.id)],
    "lease ends": [lambda case: passes(case, LEASE)],
    "expire": [lambda case: passes(case, 3 * HOUR)],
    "bury": [lambda case: case.stack.queue.bury(case.id)],
    "kick": [lambda case: case.stack.queue.kick(case.id)],
    "cancel": [lambda case: case.stack.queue.cancel(case.id)],
}


# Passing time does several of these at once, so they are tested only in the states in which the table has them.
BY_TIME = ("due", "lease ends", "expire")
CASES = [(verb, state) for verb in VERBS for state in STATES if verb not in BY_TIME or state in NEXT[verb]]


@pytest.mark.parametrize(("verb", "state"), CASES)
async def test_every_verb_leads_to_the_states_of_the_table_and_to_no_others(
    stack: Stack, verb: str, state: TaskState
) -> None:
    for act in VERBS[verb]:
        case = Case(stack)
        await STATES[state](case)
        try:
            await act(case)
        except Conflict:
            assert state not in NEXT[verb], "refused although the table allows it"
        assert await case.state() in NEXT[verb].get(state, (state,))
        await stack.redis.flushdb()


def test_every_verb_of_the_table_is_tested() -> None:
    assert set(VERBS) == set(NEXT) - {"put"}
