"""The invariants of the queue: of a task I1, I2, I5, I6, I8 to I12; of lanes, offers, tenants and indexes I2 to I4 and
I6. Pure.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from core.audit.invariants.invariant import ENDS, LIVE, Repair, Violation, score_of
from core.model.states import TaskState
from core.redis.constants import TASK_FACTS
from core.redis.keys import KEYS, Key

_MAY_EXPIRE = (TaskState.WAITING, TaskState.READY)

_NEEDED = ("state", "tube", "tenant", "priority", "order")
_NUMBERS = ("priority", "order", "due", "expires")
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_FIRST_STATES = (TaskState.READY, TaskState.TAKEN, TaskState.WAITING)


class TaskSnapshot(NamedTuple):
    """A row of lua/audit/functions/audit_tasks.lua. Scores as text; None: not in that index. `unfound`: indexes that
    lack it."""

    id: str
    facts: Mapping[str, str]
    due: str | None
    lease: str | None
    expires: str | None
    buried: str | None
    finished: str | None
    ready: str | None
    lane: str | None
    aside: str | None
    first: str | None
    ttl: int
    unfound: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Numbers:
    """The limits for all tasks of a shard: the last order and token given out, and `now` in ms."""

    now: int
    order: int
    token: int


def task_snapshot(row: Sequence[Any]) -> TaskSnapshot | None:
    """Return the snapshot of a row; None if there is no such task."""
    if len(row) == 1:
        return None
    facts = {name: value for name, value in zip(TASK_FACTS, row[1], strict=True) if value is not None}
    return TaskSnapshot._make([row[0], facts, *row[2:12], tuple(row[12:])])


def task_violations(shard: int, seen: TaskSnapshot, numbers: Numbers) -> Iterator[Violation]:
    """Yield the violations of I1, I2, I5, I6, I8, I9, I10, I11, I12 by one task."""
    facts, key = seen.facts, KEYS["task"].at(shard, seen.id)
    broken = [name for name in _NEEDED if name not in facts]
    broken += [name for name in _NUMBERS if name in facts and not _NUMBER.fullmatch(facts[name])]
    if broken or facts["state"] not in (*LIVE, *ENDS):
        why, repair = "its work is unknown", None if facts else Repair("repair_damaged", (key, "string", seen.id))
        yield Violation(
            "I1",
            key,
            f"{facts or 'a text in the place of a record'}",
            f"a task ({', '.join(broken) or 'state'})",
            repair,
            why,
        )
        return
    repair = Repair("repair_task", (seen.id,))
    yield from _places(key, seen, facts, repair)
    if facts["state"] in ENDS:
        return
    yield from _scores(key, seen, facts, repair)
    yield from _numbers(key, facts, numbers)
    yield from _course(key, seen, facts, numbers)
    if seen.unfound:
        yield Violation("I6", key, f"not found by {', '.join(seen.unfound)}", "in these indexes", repair)


def _places(key: str, seen: TaskSnapshot, facts: Mapping[str, str], repair: Repair) -> Iterator[Violation]:
    wanted, actual = _wanted_places(seen, facts), _actual_places(seen, facts)
    state = facts["state"]
    if ("lease" in wanted) != ("lease" in actual):
        yield Violation("I5", key, _shown(state, actual), _shown(state, wanted), repair)
    if wanted - {"lease"} != actual - {"lease"}:
        yield Violation("I1", key, _shown(state, actual), _shown(state, wanted), repair)
    if (state in ENDS) != (seen.ttl >= 0):
        found = f"{state}, TTL {seen.ttl} ms" if seen.ttl >= 0 else f"{state}, without a TTL"
        yield Violation("I16", key, found, "a TTL if and only if it has ended", repair)


def _shown(state: str, places: set[str]) -> str:
    return f"{state}, in {', '.join(sorted(places)) or 'nothing'}"


def _wanted_places(seen: TaskSnapshot, facts: Mapping[str, str]) -> set[str]:
    state = facts["state"]
    expires = {"expires"} if "expires" in facts and state in _MAY_EXPIRE else set[str]()
    first = {"first"} if "lane" in facts else set[str]()
    match state:
        case TaskState.WAITING:
            # A task that is not in the index by lane backs off at its place. A parcel of a later channel (strategy
            # `first`) may wait outside its lane.
            is_aside = seen.aside is not None or int(facts.get("place", 1)) not in (0, 1)
            return {"due"} | expires | (first if _is_first(seen, facts) or not is_aside else set())
        case TaskState.READY:
            return ({"first" if _is_first(seen, facts) else "lane"} if first else {"ready"}) | expires
        case TaskState.TAKEN:
            return {"lease"} | first
        case TaskState.BURIED:
            return {"buried"}
    return {"finished"}


def _is_first(seen: TaskSnapshot, facts: Mapping[str, str]) -> bool:
    return "lane" in facts and seen.first == seen.id


def _actual_places(seen: TaskSnapshot, facts: Mapping[str, str]) -> set[str]:
    scores = {name: getattr(seen, name) for name in ("due", "lease", "expires", "buried", "finished", "ready")}
    scores["lane"] = seen.lane if "lane" in facts else None
    places = {name for name, score in scores.items() if score is not None}
    return places | ({"first"} if _is_first(seen, facts) else set())


def _scores(key: str, seen: TaskSnapshot, facts: Mapping[str, str], repair: Repair) -> Iterator[Violation]:
    """Yield the violations of I6: in each index a task has its own score."""
    score = str(score_of(facts["priority"], facts["order"]))
    for place, found, wanted in (
        ("due", seen.due, facts.get("due", "none")),
        ("expires", seen.expires, facts.get("expires", "none")),
        ("lane", seen.lane, facts["order"]),
        ("ready", seen.ready, score),
    ):
        if found is not None and wanted != "none" and float(found) != float(wanted):
            yield Violation("I6", key, f"in {place} at {found}", f"at {wanted}", repair)


def _numbers(key: str, facts: Mapping[str, str], numbers: Numbers) -> Iterator[Violation]:
    """Yield the violations of I8: a task has no number that was not given out yet; a taken task has a token."""
    why = "which of the two is wrong is unknown"
    for name, last in (("order", numbers.order), ("token", numbers.token)):
        if int(facts.get(name, "0").partition(" ")[0]) > last:  # the token ends with its owner
            yield Violation("I8", key, f"{name} {facts[name]}", f"at most {last}, the last given out", why=why)
    if facts["state"] == TaskState.TAKEN and "token" not in facts:
        why = "it is reclaimed when its lease ends"
        yield Violation("I8", key, "taken without a token", "a token", why=why)


def _course(key: str, seen: TaskSnapshot, facts: Mapping[str, str], numbers: Numbers) -> Iterator[Violation]:
    """Yield the violations of I2 and I9 to I12: no task ran that must not run."""
    state, why = facts["state"], "an attempt cannot be undone"
    if "lane" in facts and seen.first not in (None, seen.id):
        if state == TaskState.TAKEN:
            yield Violation("I2", key, f"taken behind {seen.first}", "the first of its lane", why=why)
        elif state == TaskState.READY and "started" in facts:
            yield Violation(
                "I9", key, f"started behind {seen.first}", "not started before the end of that task", why=why
            )
    if state == TaskState.TAKEN and int(facts.get("due", 0)) > numbers.now:
        yield Violation("I10", key, "taken", f"waiting until {facts['due']}", why=why)
    if state == TaskState.TAKEN and int(facts.get("started", 0)) >= int(facts.get("expires", 1 << 62)):
        yield Violation("I10", key, f"started at {facts['started']}", f"expired at {facts['expires']}", why=why)
    if state != TaskState.TAKEN and ("cancel" in facts or "skip" in facts):
        yield Violation("I11", key, f"cancelled while taken, and {state} again", "ended", why="cancel it again")
    attempts, allowed = int(facts.get("attempts", 0)), int(facts.get("allowed", 1))
    if attempts > allowed:
        yield Violation("I12", key, f"{attempts} attempts", f"at most {allowed}, the allowed number", why=why)


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
