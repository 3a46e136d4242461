"""What holds in every world and after every step: said here once more, in other words than the audit's.

The audit is a part of the product and looks at a live server; these laws look at a dump of one moment and at what a
script answered.
"""

from collections.abc import Iterator
from typing import Any

from core.model.states import NEXT, TaskState
from tests.model_checking.many_shards import Call, Pass, World
from tests.model_checking.task_moves import CLIENT, TUBE, Ways

NAMES = "CABD"
_ENDS = ("done", "failed", "cancelled", "expired")
_SPEAKS_WITH_A_TOKEN = ("settle", "release", "extend")
# What a script answers that did nothing.
_REFUSALS = ("stale", ["stale"], ["known"], 0, [0, 0])
# These end or wake by the clock of the server, whatever the script does.
_VOLATILE = ("bell", "timer", "idle:", "puts:")


def state_of(world: World, name: str) -> TaskState | None:
    facts = world.task(name)
    return TaskState(facts["state"]) if facts else None


def world_laws(world: World, ways: Ways) -> Iterator[str]:
    """Of any world."""
    for name in NAMES:
        yield from _one_place(world, name, ways)
    yield from _lane(world, ways)
    yield from _told(world)
    if world.members(f"queue:{{0}}:tenants:{TUBE}") and f"delivery:{{0}}:idle:{TUBE}" in world.keys:
        yield "somebody sleeps beside work"


def _one_place(world: World, name: str, ways: Ways) -> Iterator[str]:
    """A task is where its state says, and nowhere else."""
    state, facts = state_of(world, name), world.task(name) or {}
    laned = bool(facts.get("lane"))
    is_first = _first(world, ways) == name
    places = {
        place for place in ("due", "lease", "buried", "finished") if name in world.members(f"queue:{{0}}:{place}")
    }
    places |= {"behind"} & {"behind" if name in _behind(world, ways) else ""}
    places |= {"first"} & {"first" if is_first else ""}
    places |= {"offered"} & {"offered" if name in _offers(world) else ""}
    stands = {"first"} if is_first else {"behind"}
    wanted: dict[TaskState | None, set[str]] = {
        None: set(),
        TaskState.READY: stands if laned else {"offered"},
        TaskState.WAITING: {"due", "first"} if is_first else {"due"},
        TaskState.TAKEN: {"lease", "first"} if laned else {"lease"},
        TaskState.BURIED: {"buried"},
        **{TaskState(end): {"finished"} for end in _ENDS},
    }
    if places != wanted[state]:
        yield f"{name} is {state} and in {sorted(places)}"
    is_aside = name in world.members(f"queue:{{0}}:by:lane:{ways.lane}")
    if laned and not is_aside and (state is TaskState.BURIED or (state is TaskState.WAITING and not is_first)):
        yield f"{name} is {state}, and not found by its lane"
    if is_aside and (state is None or state in map(TaskState, _ENDS)):
        yield f"{name} is {state}, and found by its lane"
    expiring = name in world.members("queue:{0}:expires")
    if expiring != ("expires" in facts and state in (TaskState.READY, TaskState.WAITING)):
        yield f"{name} is {state}, expires {facts.get('expires')}, armed: {expiring}"


def _offers(world: World) -> set[str]:
    return {
        member
        for name, kept in world.keys.items()
        if name.startswith(f"queue:{{0}}:ready:{TUBE}:")
        for member in kept.value
    }


def _lane(world: World, ways: Ways) -> Iterator[str]:
    """The lane moves: what stands first is offered, or at work, or backs off until it is called."""
    if not ways.lane:
        return
    behind, first, offered = _behind(world, ways), _first(world, ways), f"@{ways.lane}" in _offers(world)
    if first is None:
        if behind or offered:
            yield f"nobody stands first in the lane, behind: {behind}, offered: {offered}"
    elif offered != (state_of(world, first) is TaskState.READY):
        yield f"the lane of {first} ({state_of(world, first)}) is stuck: offered: {offered}"


def _first(world: World, ways: Ways) -> str | None:
    kept = world.keys.get(f"queue:{{0}}:front:{TUBE}")
    return kept.value.get(ways.lane) if kept else None


def _behind(world: World, ways: Ways) -> list[str]:
    return list(world.members(f"queue:{{0}}:lane:{TUBE}:{ways.lane}"))


def _told(world: World) -> Iterator[str]:
    """Who asked is told of A's end, once."""
    kept = world.keys.get(f"reply:{{0}}:{CLIENT}")
    told = len(kept.value) if kept else 0
    was_put = any(move.startswith("put A") for move in world.path)
    over = was_put and state_of(world, "A") in (None, *map(TaskState, _ENDS))
    if told != int(over):
        yield f"A is {state_of(world, 'A')} and its end was told {told} times"


def step_laws(before: World, step: Call | Pass, reply: Any, after: World, ways: Ways) -> Iterator[str]:
    """Of what one script did to one world."""
    if isinstance(step, Pass):
        return
    refused = reply in _REFUSALS
    if step.script in _SPEAKS_WITH_A_TOKEN:
        facts = before.task(str(step.arguments[0])) or {}
        holds = facts.get("state") == "taken" and facts.get("token") == step.arguments[1]
        if refused == holds:
            yield f"a token that {'holds' if holds else 'is old'} was answered {reply}"
    if refused and changed(before, after):
        yield f"it was answered {reply}, and something changed: {changed(before, after)}"
    yield from _moves(before, step.script, after)
    if step.script in ("put", "kick") and not refused and ways.lane:
        yield from _overtaken(after)
    if step.script in ("settle", "release") and reply in ("waiting", ["waiting"]) and ways.lane and not ways.parks:
        name = str(step.arguments[0])
        if _first(after, ways) != name:
            yield f"{name} waits and let its lane go"


def _settled(world: World) -> dict[str, Any]:
    return {name: kept.value for name, kept in world.keys.items() if not any(word in name for word in _VOLATILE)}


def changed(before: World, after: World) -> list[str]:
    """The keys that are not as they were."""
    one, other = _settled(before), _settled(after)
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


def _overtaken(world: World) -> Iterator[str]:
    """What was due before is in its lane before what was put, or kicked."""
    for name, due in world.members("queue:{0}:due").items():
        if due <= world.now and (world.task(name) or {}).get("lane"):
            yield f"{name} was due and is overtaken"


_TIME = ("lease over", "expire", "due")
_SCRIPT_VERBS: dict[str, tuple[str, ...]] = {
    "cancel_tasks": ("cancel",),
    **{script: (*_TIME, script) for script in ("claim", "put", "kick")},
}


def _moves(before: World, script: str, after: World) -> Iterator[str]:
    """States follow one another as the table of states says."""
    verbs = _SCRIPT_VERBS.get(script, (script,))
    for name in NAMES:
        old, new = state_of(before, name), state_of(after, name)
        if old is None or old == new:
            continue
        reached = {old}
        for verb in verbs:
            reached |= {later for earlier in reached for later in NEXT.get(verb, {}).get(earlier, ())}
        if new is not None and new not in reached:
            yield f"{name} went from {old} to {new} by {script}"
        if new is None and old not in map(TaskState, _ENDS) and not reached & set(map(TaskState, _ENDS)):
            yield f"{name} was {old} and is gone by {script}"
