"""The tasks that `bench queue` puts, by the name of their shape."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

from core.queue.task import NewTask

TUBE = "bench"
BODY = ("There is no class with me today. " * 200)[:200]
USER = "42"
_TO_A_LANE = 10
_TENANTS = 4
_FAR_DAYS, _SOON_MS = 30, 100

Shape = Callable[[int, int, int], NewTask]
"""(number, how many there are, moment in Unix ms) → the task."""


def plain(n: int, many: int, at: int) -> NewTask:
    return NewTask(BODY)


def own(n: int, many: int, at: int) -> NewTask:
    """A lane of its own."""
    return NewTask(BODY, lane=f"user {n}")


def pairs(n: int, many: int, at: int) -> NewTask:
    """Two to a lane, the second ones behind all first ones."""
    return NewTask(BODY, lane=f"user {n % max(1, many // 2)}")


def tens(n: int, many: int, at: int) -> NewTask:
    """Ten to a lane, the lanes in turn."""
    return NewTask(BODY, lane=f"user {n % max(1, many // _TO_A_LANE)}")


def one(n: int, many: int, at: int) -> NewTask:
    """All in one lane, of one user."""
    return NewTask(BODY, lane="one", user=USER)


def due(n: int, many: int, at: int) -> NewTask:
    """Everybody at the same moment, each in his lane (K-07)."""
    return NewTask(BODY, lane=f"user {n}", due=_moment(at))


def soon(n: int, many: int, at: int) -> NewTask:
    return NewTask(BODY, lane=f"user {n}", due=datetime.now(UTC) + timedelta(milliseconds=_SOON_MS))


def far(n: int, many: int, at: int) -> NewTask:
    """In a month, no two at the same moment, all of one user."""
    return NewTask(BODY, lane=f"user {n}", user=USER, due=_moment(at, n))


def marked(n: int, many: int, at: int) -> NewTask:
    """With everything a task can be found by."""
    return NewTask(
        BODY, tenant=f"t{n % _TENANTS}", lane=f"user {n}", user=f"{n}", kind="message.text", tags=["mailing 7"]
    )


def mixed(n: int, many: int, at: int) -> NewTask:
    """One of each kind in turn; the deferred are due very soon."""
    shapes: tuple[Shape, ...] = (plain, own, tens, marked, soon)
    return shapes[n % len(shapes)](n, many, at)


SHAPES: Mapping[str, Shape] = {
    shape.__name__: shape for shape in (plain, own, pairs, tens, one, due, far, marked, mixed)
}


def _moment(at: int, n: int = 0) -> datetime:
    if at:
        return datetime.fromtimestamp(at / 1000, UTC)
    return datetime.now(UTC) + timedelta(days=_FAR_DAYS, milliseconds=n)
