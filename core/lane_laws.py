"""The laws of lanes, of what is offered, of tenants and of indexes: I2, I3, I4, I6. Pure."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from core.keys import KEYS, Key
from core.laws import ENDS, Mend, Violation, score_of
from core.words import TaskState


class LaneSeen(NamedTuple):
    """A row of lua/audit_lanes.lua. `asked`: the score of its offer under the tenant that was asked about."""

    lane: str
    size: int
    head: str | None
    place: str | None
    holder: str | None
    holder_state: str | None
    tenant: str | None
    priority: str | None
    order: str | None
    state: str | None
    offered: str | None
    asked: str | None


def lane_laws(shard: int, tube: str, asked: str, seen: LaneSeen) -> Iterator[Violation]:
    """I2, I3, I9: the holder is the head; offered iff non-empty and unheld, once, with its head's score. `asked`: the
    tenant under whom it was found, "" for none.
    """
    key, mend = KEYS["lane"].at(shard, tube, seen.lane), Mend("mend_lane", (tube, seen.lane, ""))
    yield from _holding(key, seen, mend)
    if seen.head is not None and seen.state is not None:
        wanted = _wanted_offer(seen)
        if (None if seen.offered is None else float(seen.offered)) != wanted:
            yield Violation("I3", key, f"offered at {seen.offered}", f"offered at {wanted}", mend)
    if asked and seen.asked is not None and (seen.head is None or seen.tenant != asked):
        owner = f"under {seen.tenant}" if seen.head else "nowhere, it is empty"
        mend = Mend("mend_offer", (tube, asked, f"@{seen.lane}"))
        yield Violation(
            "I3", KEYS["ready"].at(shard, tube, asked), f"offers lane {seen.lane}", f"offered {owner}", mend
        )


def _holding(key: str, seen: LaneSeen, mend: Mend) -> Iterator[Violation]:
    if seen.holder is not None and seen.holder != seen.head:
        found = f"held by {seen.holder} ({seen.holder_state or 'no task'})"
        yield Violation("I2", key, found, f"held by its head, {seen.head}" if seen.head else "held by nobody", mend)
    elif seen.state is not None:
        is_held, is_at_work = seen.holder is not None, seen.state in (TaskState.TAKEN, TaskState.WAITING)
        if is_held != is_at_work:
            found = f"head {seen.head} is {seen.state}, held by {seen.holder}"
            yield Violation("I2", key, found, f"held by {seen.head if is_at_work else 'nobody'}", mend)


def _wanted_offer(seen: LaneSeen) -> float | None:
    if seen.holder is not None or seen.state != TaskState.READY:
        return None
    return float(score_of(seen.priority or "0", seen.order or "0"))


class TenantSeen(NamedTuple):
    """A row of lua/audit_tenants.lua."""

    tenant: str
    turn: str | None
    offered: int


def tenant_laws(shard: int, tube: str, seen: TenantSeen) -> Iterator[Violation]:
    """I4. In the ring iff it has something to be taken."""
    if (seen.turn is not None) != (seen.offered > 0):
        key, mend = KEYS["tenants"].at(shard, tube), Mend("mend_tenant", (tube, seen.tenant))
        found = f"{seen.tenant} {'is' if seen.turn is not None else 'is not'} in it with {seen.offered} to be taken"
        yield Violation("I4", key, found, "in it iff there is something", mend)


# Indexes


class MemberSeen(NamedTuple):
    """A row of lua/audit_index.lua. `score` None: it left meanwhile."""

    id: str
    score: str | None
    state: str | None
    tube: str | None = None
    tenant: str | None = None
    lane: str | None = None
    order: str | None = None


def index_laws(name: str, key: Key, parts: Sequence[str], seen: MemberSeen) -> Iterator[Violation]:
    """I6. An index names tasks that are, and are as it says. What a task's own laws see is left to them."""
    if seen.score is None:
        return
    is_kept = key.name == "finished"
    is_there = seen.state is not None and (seen.state in ENDS) == is_kept
    at_home = {
        "lane": (seen.tube, seen.lane) == tuple(parts),
        "ready": (seen.tube, seen.tenant, seen.lane) == (*parts, None),
    }.get(key.name, True)
    if not is_there or not at_home:
        found = f"names {seen.id} ({seen.state or 'no task'} in {seen.tube}, lane {seen.lane}, tenant {seen.tenant})"
        wanted = "only ended tasks" if is_kept else "only its own live tasks"
        yield Violation("I6", name, found, wanted, _index_mend(name, key, parts, seen.id))


def _index_mend(name: str, key: Key, parts: Sequence[str], task_id: str) -> Mend:
    if key.name == "lane":
        return Mend("mend_lane", (*parts, task_id))
    if key.name == "ready":
        return Mend("mend_offer", (*parts, task_id))
    return Mend("mend_index", (name, int(key.name == "finished"), task_id))


def kind_laws(shard: int, kind: str, listed: int, has_tasks: int) -> Iterator[Violation]:
    """I6. A kind can be found by its prefix iff a live task has it."""
    if listed != has_tasks:
        found = f"{kind} {'listed' if listed else 'not listed'}, {'tasks' if has_tasks else 'no tasks'}"
        yield Violation("I6", KEYS["kinds"].at(shard), found, "listed iff a task has it", Mend("mend_kind", (kind,)))
