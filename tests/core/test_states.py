"""The table of states (core/words.py `NEXT`) is what the scripts do: every verb on a task in every state."""

from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from core.errors import Conflict, NotFound
from core.queue import Task
from core.words import NEXT, TaskState
from tests.core.house import HOUR, LEASE, House

pytestmark = pytest.mark.row("K-17")

TUBE = "t"
ENDS = ("done", "failed", "cancelled", "expired")


class Case:
    """One task, brought into a state, and the token it was last taken with."""

    def __init__(self, house: House) -> None:
        self.house, self.id = house, ""
        self.task: Task | None = None

    async def put(self, *, due_in: timedelta | None = None) -> None:
        now = self.house.now()
        due = now + due_in if due_in else None
        self.id = await self.house.queue.put(TUBE, "", lane="lane", due=due, expires=now + 3 * HOUR)

    async def take(self) -> None:
        (self.task,) = await self.house.take(TUBE)

    @property
    def held(self) -> Task:
        """The task as it was last taken; one that was never taken has a token that nobody was given."""
        if self.task is not None:
            return self.task
        return Task(0, self.id.partition(".")[2], "0", 1, 0, 0, "", "", 0, "", "", 0, "", "", "", False)

    async def state(self) -> TaskState:
        try:
            return TaskState((await self.house.queue.peek(self.id))["state"])
        except NotFound:
            counts = (await self.house.queue.stats())["tubes"][TUBE]
            return TaskState(next(end for end in ENDS if counts.get(end)))


async def waiting(case: Case) -> None:
    await case.put(due_in=HOUR)


async def ready(case: Case) -> None:
    await case.put()


async def taken(case: Case) -> None:
    await case.put()
    await case.take()


async def buried(case: Case) -> None:
    await case.put()
    await case.house.queue.bury(case.id)


STATES: dict[TaskState, Callable[[Case], Awaitable[None]]] = {
    TaskState.WAITING: waiting,
    TaskState.READY: ready,
    TaskState.TAKEN: taken,
    TaskState.BURIED: buried,
}


async def passes(case: Case, time: timedelta) -> None:
    case.house.passes(time)
    await case.house.tick()


def later(case: Case) -> int:
    return int((case.house.now() + HOUR).timestamp() * 1000)


VERBS: dict[str, list[Callable[[Case], Awaitable[object]]]] = {
    "due": [lambda case: passes(case, HOUR)],
    "claim": [lambda case: case.house.take(TUBE)],
    "extend": [lambda case: case.house.queue.extend(case.held, LEASE)],
    "settle": [
        lambda case: case.house.queue.settle(case.held),
        lambda case: case.house.queue.settle(case.held, result="failed"),
        lambda case: case.house.queue.settle(case.held, result="retry"),
        lambda case: case.house.queue.settle(case.held, result="retry", due=later(case)),
    ],
    "release": [
        lambda case: case.house.queue.release(case.held),
        lambda case: case.house.queue.release(case.held, later(case)),
    ],
    "lease over": [lambda case: passes(case, LEASE)],
    "expire": [lambda case: passes(case, 3 * HOUR)],
    "bury": [lambda case: case.house.queue.bury(case.id)],
    "kick": [lambda case: case.house.queue.kick(case.id)],
    "cancel": [lambda case: case.house.queue.cancel(case.id)],
}


# Time does several things at once; what it does is asked for the states in which the table lets it do something.
OF_TIME = ("due", "lease over", "expire")
CASES = [(verb, state) for verb in VERBS for state in STATES if verb not in OF_TIME or state in NEXT[verb]]


@pytest.mark.parametrize(("verb", "state"), CASES)
async def test_a_verb_leads_where_the_table_says_and_nowhere_else(house: House, verb: str, state: TaskState) -> None:
    for act in VERBS[verb]:
        case = Case(house)
        await STATES[state](case)
        try:
            await act(case)
        except Conflict:
            assert state not in NEXT[verb], "refused, although the table allows it"
        assert await case.state() in NEXT[verb].get(state, (state,))
        await house.redis.flushdb()


def test_every_verb_of_the_table_is_tried() -> None:
    assert set(VERBS) == set(NEXT) - {"put"}
