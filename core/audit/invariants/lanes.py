"""The invariants of lanes, offers, tenants and indexes: I2, I3, I4, I6. Pure."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from core.audit.invariants.invariant import ENDS, Repair, Violation, score_of
from core.model.states import TaskState
from core.redis.keys import KEYS, Key


class LaneSnapshot(NamedTuple):
    """A row of lua/audit/functions/audit_lanes.lua. `asked`: the score of its offer under the tenant in question."""

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


_FIRST_STATES = (TaskState.READY, TaskState.TAKEN, TaskState.WAITING)


def lane_violations(shard: int, tube: str, asked: str, seen: LaneSnapshot) -> Iterator[Violation]:
    """Yield the violations of I2 and I3: a lane with tasks has a first task of its own; the lane is offered iff that
    task is ready, once, with its score. `asked`: the tenant under which the lane was found, "" for none.
    """
    key, repair = KEYS["lane"].at(shard, tube, seen.lane), Repair("repair_lane", (tube, seen.lane, ""))
    if seen.first is None and seen.behind:
        yield Violation("I2", key, f"{seen.behind} locked without a first task", "a first task", repair)
    if seen.first is not None:
        yield from _first_violations(key, tube, seen, repair)
    if asked and seen.asked is not None and (seen.first is None or seen.tenant != asked):
        owner = f"under {seen.tenant}" if seen.first else "nowhere, it is empty"
        repair = Repair("repair_offer", (tube, asked, f"@{seen.lane}"))
        yield Violation(
            "I3", KEYS["ready"].at(shard, tube, asked), f"offers lane {seen.lane}", f"offered {owner}", repair
        )


def _first_violations(key: str, tube: str, seen: LaneSnapshot, repair: Repair) -> Iterator[Violation]:
    if seen.state not in _FIRST_STATES or (seen.first_tube, seen.first_lane) != (tube, seen.lane):
        found = f"{seen.first} ({seen.state or 'no task'} in {seen.first_tube}, lane {seen.first_lane}) is first"
        yield Violation("I2", key, found, "one of its own live tasks, or none", repair)
        return
    wanted = float(score_of(seen.priority or "0", seen.order or "0")) if seen.state == TaskState.READY else None
    if (None if seen.offered is None else float(seen.offered)) != wanted:
        yield Violation("I3", key, f"offered at {seen.offered}", f"offered at {wanted}", repair)


class TenantSnapshot(NamedTuple):
    """A row of lua/audit/functions/audit_tenants.lua."""

    tenant: str
    turn: str | None
    offered: int


def tenant_violations(shard: int, tube: str, seen: TenantSnapshot) -> Iterator[Violation]:
    """Yield the violation of I4: a tenant is in the ring iff it has takeable work."""
    if (seen.turn is not None) != (seen.offered > 0):
        key, repair = KEYS["tenants"].at(shard, tube), Repair("repair_tenant", (tube, seen.tenant))
        found = f"{seen.tenant} {'is' if seen.turn is not None else 'is not'} in it with {seen.offered} offers"
        yield Violation("I4", key, found, "in it iff it has offers", repair)


class MemberSnapshot(NamedTuple):
    """A row of lua/audit/functions/audit_index.lua. `score` None: it has left the index."""

    id: str
    score: str | None
    state: str | None
    tube: str | None = None
    tenant: str | None = None
    lane: str | None = None
    order: str | None = None


def task_index_violations(name: str, key: Key, parts: Sequence[str], seen: MemberSnapshot) -> Iterator[Violation]:
    """Yield the violation of I6: an index names only existing tasks that belong there. All else is checked with the
    task itself.
    """
    if seen.score is None:
        return
    is_kept = key.name == "finished"
    exists = seen.state is not None and (seen.state in ENDS) == is_kept
    belongs = {
        "dead_letter": seen.state == TaskState.BURIED,
        "lane": (seen.tube, seen.lane) == tuple(parts),
        "ready": (seen.tube, seen.tenant, seen.lane) == (*parts, None),
    }.get(key.name, True)
    if not exists or not belongs:
        found = f"names {seen.id} ({seen.state or 'no task'} in {seen.tube}, lane {seen.lane}, tenant {seen.tenant})"
        wanted = "only ended tasks" if is_kept else "only its own live tasks"
        yield Violation("I6", name, found, wanted, _index_repair(name, key, parts, seen.id))


def _index_repair(name: str, key: Key, parts: Sequence[str], task_id: str) -> Repair:
    if key.name == "lane":
        return Repair("repair_lane", (*parts, task_id))
    if key.name == "ready":
        return Repair("repair_offer", (*parts, task_id))
    return Repair("repair_index", (name, int(key.name == "finished"), task_id))


def kind_violations(shard: int, kind: str, listed: int, has_tasks: int) -> Iterator[Violation]:
    """Yield the violation of I6: a kind is listed iff a live task has it."""
    if listed != has_tasks:
        found = f"{kind} {'listed' if listed else 'not listed'}, {'tasks' if has_tasks else 'no tasks'}"
        yield Violation(
            "I6", KEYS["kinds"].at(shard), found, "listed iff a task has it", Repair("repair_kind", (kind,))
        )


def dead_letter_violations(shard: int, group: str, listed: str | None, size: int) -> Iterator[Violation]:
    """Yield the violation of I6: a group of buried tasks is listed with its size."""
    if listed is not None and float(listed) != size:
        repair = Repair("repair_dead_letters", (group,))
        yield Violation("I6", KEYS["dead_letters"].at(shard), f"{group!r} with {listed} tasks", f"with {size}", repair)
