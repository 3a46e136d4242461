"""The laws of lanes, of what is offered, of tenants and of indexes: I2, I3, I4, I6. Pure."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from core.audit.invariant import ENDS, Repair, Violation, score_of
from core.model.states import TaskState
from core.redis.keys import KEYS, Key


class LaneSnapshot(NamedTuple):
    """A row of lua/audit/audit_lanes.lua. `asked`: the score of its offer under the tenant that was asked about."""

    lane: str
    first: str | None
    behind: int
    first_tube: str | None
    first_lane: str | None
    tenant: str | None
    priority: str | None
    order: str | None
    state: str | None
    offered: str | None
    asked: str | None


_STAND_FIRST = (TaskState.READY, TaskState.TAKEN, TaskState.WAITING)


def lane_violations(shard: int, tube: str, asked: str, seen: LaneSnapshot) -> Iterator[Violation]:
    """I2, I3: somebody stands first if anybody stands in it, and is of this lane; it is offered iff the first is ready,
    once, with its score. `asked`: the tenant under whom it was found, "" for none.
    """
    key, mend = KEYS["lane"].at(shard, tube, seen.lane), Repair("repair_lane", (tube, seen.lane, ""))
    if seen.first is None and seen.behind:
        yield Violation("I2", key, f"{seen.behind} behind nobody", "the first of them stands first", mend)
    if seen.first is not None:
        yield from _first_laws(key, tube, seen, mend)
    if asked and seen.asked is not None and (seen.first is None or seen.tenant != asked):
        owner = f"under {seen.tenant}" if seen.first else "nowhere, it is empty"
        mend = Repair("repair_offer", (tube, asked, f"@{seen.lane}"))
        yield Violation(
            "I3", KEYS["ready"].at(shard, tube, asked), f"offers lane {seen.lane}", f"offered {owner}", mend
        )


def _first_laws(key: str, tube: str, seen: LaneSnapshot, mend: Repair) -> Iterator[Violation]:
    if seen.state not in _STAND_FIRST or (seen.first_tube, seen.first_lane) != (tube, seen.lane):
        found = f"{seen.first} ({seen.state or 'no task'} in {seen.first_tube}, lane {seen.first_lane}) stands first"
        yield Violation("I2", key, found, "one of its own live tasks, or nobody", mend)
        return
    wanted = float(score_of(seen.priority or "0", seen.order or "0")) if seen.state == TaskState.READY else None
    if (None if seen.offered is None else float(seen.offered)) != wanted:
        yield Violation("I3", key, f"offered at {seen.offered}", f"offered at {wanted}", mend)


class TenantSnapshot(NamedTuple):
    """A row of lua/audit/audit_tenants.lua."""

    tenant: str
    turn: str | None
    offered: int


def tenant_violations(shard: int, tube: str, seen: TenantSnapshot) -> Iterator[Violation]:
    """I4. In the ring iff it has something to be taken."""
    if (seen.turn is not None) != (seen.offered > 0):
        key, mend = KEYS["tenants"].at(shard, tube), Repair("repair_tenant", (tube, seen.tenant))
        found = f"{seen.tenant} {'is' if seen.turn is not None else 'is not'} in it with {seen.offered} to be taken"
        yield Violation("I4", key, found, "in it iff there is something", mend)


# Indexes


class MemberSnapshot(NamedTuple):
    """A row of lua/audit/audit_index.lua. `score` None: it left meanwhile."""

    id: str
    score: str | None
    state: str | None
    tube: str | None = None
    tenant: str | None = None
    lane: str | None = None
    order: str | None = None


def task_index_violations(name: str, key: Key, parts: Sequence[str], seen: MemberSnapshot) -> Iterator[Violation]:
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


def _index_mend(name: str, key: Key, parts: Sequence[str], task_id: str) -> Repair:
    if key.name == "lane":
        return Repair("repair_lane", (*parts, task_id))
    if key.name == "ready":
        return Repair("repair_offer", (*parts, task_id))
    return Repair("repair_index", (name, int(key.name == "finished"), task_id))


def kind_violations(shard: int, kind: str, listed: int, has_tasks: int) -> Iterator[Violation]:
    """I6. A kind can be found by its prefix iff a live task has it."""
    if listed != has_tasks:
        found = f"{kind} {'listed' if listed else 'not listed'}, {'tasks' if has_tasks else 'no tasks'}"
        yield Violation(
            "I6", KEYS["kinds"].at(shard), found, "listed iff a task has it", Repair("repair_kind", (kind,))
        )
