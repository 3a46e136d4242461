"""The invariants of a task: I1, I2, I5, I6, I8 to I12. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from core.audit.invariants.invariant import ENDS, LIVE, Repair, Violation, score_of
from core.model.states import TaskState
from core.redis.constants import TASK_FACTS
from core.redis.keys import KEYS

_MAY_EXPIRE = (TaskState.WAITING, TaskState.READY)


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


_NEEDED = ("state", "tube", "tenant", "priority", "order")
_NUMBERS = ("priority", "order", "due", "expires")
_NUMBER = re.compile(r"-?\d+(\.\d+)?")


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
