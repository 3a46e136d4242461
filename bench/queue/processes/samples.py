"""The tasks that `bench queue` puts, by the name of their shape."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

from core.queue import NewTask

TUBE = "bench"
BODY = ("There is no class with me today. " * 200)[:200]
USER = "42"
_TO_A_LANE = 10
_TENANTS = 4
_FAR_DAYS, _SOON_MS = 30, 100

Shape = Callable[[int, int, int], NewTask]
"""(number, total number of tasks, due time in Unix ms) → the task."""


def plain(n: int, total: int, due_ms: int) -> NewTask:
    return NewTask(BODY)


def own(n: int, total: int, due_ms: int) -> NewTask:
    """Return each in its own lane."""
    return NewTask(BODY, lane=f"user {n}")


def pairs(n: int, total: int, due_ms: int) -> NewTask:
    """Return a task of a lane with two; all first ones come before all second ones."""
    return NewTask(BODY, lane=f"user {n % max(1, total // 2)}")


def tens(n: int, total: int, due_ms: int) -> NewTask:
    """Return a task of a lane with ten; the lanes take turns."""
    return NewTask(BODY, lane=f"user {n % max(1, total // _TO_A_LANE)}")


def one(n: int, total: int, due_ms: int) -> NewTask:
    """Return all in one lane, of one user."""
    return NewTask(BODY, lane="one", user=USER)


def due(n: int, total: int, due_ms: int) -> NewTask:
    """Return all due at the same moment, each in its own lane (K-07)."""
    return NewTask(BODY, lane=f"user {n}", due=_due(due_ms))


def soon(n: int, total: int, due_ms: int) -> NewTask:
    return NewTask(BODY, lane=f"user {n}", due=datetime.now(UTC) + timedelta(milliseconds=_SOON_MS))


def far(n: int, total: int, due_ms: int) -> NewTask:
    """Return a task that is due in a month, no two at the same moment, all of one user."""
    return NewTask(BODY, lane=f"user {n}", user=USER, due=_due(due_ms, n))


def marked(n: int, total: int, due_ms: int) -> NewTask:
    """Return a task with every field by which a task can be found."""
    return NewTask(
        BODY, tenant=f"t{n % _TENANTS}", lane=f"user {n}", user=f"{n}", kind="message.text", tags=["mailing 7"]
    )


def mixed(n: int, total: int, due_ms: int) -> NewTask:
    """Return the shapes in turn; deferred tasks are due very soon."""
    shapes: tuple[Shape, ...] = (plain, own, tens, marked, soon)
    return shapes[n % len(shapes)](n, total, due_ms)


SHAPES: Mapping[str, Shape] = {
    shape.__name__: shape for shape in (plain, own, pairs, tens, one, due, far, marked, mixed)
}


def _due(due_ms: int, n: int = 0) -> datetime:
    if due_ms:
        return datetime.fromtimestamp(due_ms / 1000, UTC)
    return datetime.now(UTC) + timedelta(days=_FAR_DAYS, milliseconds=n)
