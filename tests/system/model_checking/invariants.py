"""Invariants of tasks: what must hold in every state, and of every step.

They repeat the invariants of the audit in other words. The audit is a part of the product and reads a live server;
these read a dump of one moment and the reply of a script.
"""

from collections.abc import Iterator
from typing import Any

from core.model.states import NEXT, TaskState
from tests.system.model_checking.many_shards import Call, PassTime, ShardState
from tests.system.model_checking.task_operations import CLIENT, TUBE, TubeVariant

NAMES = "CABD"
_ENDS = tuple(map(TaskState, ("done", "failed", "cancelled", "expired")))
_NEED_A_TOKEN = ("settle", "release", "extend")
# The replies of scripts that changed nothing.
_REJECTIONS = ("stale", ["stale"], ["known"], 0, [0, 0])
# Their TTL runs by the clock of the server, whatever a script does.
_VOLATILE = ("bell", "timer", "idle:", "puts:")


def task_state(state: ShardState, name: str) -> TaskState | None:
    facts = state.task(name)
    return TaskState(facts["state"]) if facts else None


def state_invariants(state: ShardState, variant: TubeVariant) -> Iterator[str]:
    """What is broken in a state."""
    for name in NAMES:
        yield from _one_place(state, name, variant)
        yield from _lane_index(state, name, variant)
        yield from _expiry_index(state, name)
    yield from _lane_moves(state, variant)
    yield from _end_reported_once(state)
    if state.members(f"queue:{{0}}:tenants:{TUBE}") and f"delivery:{{0}}:idle:{TUBE}" in state.keys:
        yield "a worker sleeps although there is work"


def _one_place(state: ShardState, name: str, variant: TubeVariant) -> Iterator[str]:
    """A task is in the place of its state, and in no other."""
    task = task_state(state, name)
    has_lane, is_first = bool((state.task(name) or {}).get("lane")), _first(state, variant) == name
    in_lane = {"first"} if is_first else {"behind"}
    expected: dict[TaskState | None, set[str]] = {
        None: set(),
        TaskState.READY: in_lane if has_lane else {"offered"},
        TaskState.WAITING: {"due", "first"} if is_first else {"due"},
        TaskState.TAKEN: {"lease", "first"} if has_lane else {"lease"},
        TaskState.BURIED: {"buried"},
        **{end: {"finished"} for end in _ENDS},
    }
    places = _places(state, name, variant)
    if places != expected[task]:
        yield f"{name} is {task} and in {sorted(places)}"


def _places(state: ShardState, name: str, variant: TubeVariant) -> set[str]:
    found = {index for index in ("due", "lease", "buried", "finished") if name in state.members(f"queue:{{0}}:{index}")}
    if name in _behind(state, variant):
        found.add("behind")
    if _first(state, variant) == name:
        found.add("first")
    if name in _offers(state):
        found.add("offered")
    return found


def _lane_index(state: ShardState, name: str, variant: TubeVariant) -> Iterator[str]:
    """A task of a lane that is neither first nor behind is found by its lane."""
    task, is_first = task_state(state, name), _first(state, variant) == name
    has_lane = bool((state.task(name) or {}).get("lane"))
    is_aside = name in state.members(f"queue:{{0}}:by:lane:{variant.lane}")
    if has_lane and not is_aside and (task is TaskState.BURIED or (task is TaskState.WAITING and not is_first)):
        yield f"{name} is {task}, and not found by its lane"
    if is_aside and (task is None or task in _ENDS):
        yield f"{name} is {task}, and found by its lane"


def _expiry_index(state: ShardState, name: str) -> Iterator[str]:
    """A task with an expiry is in the index of expiries exactly while it is ready or waiting."""
    task, facts = task_state(state, name), state.task(name) or {}
    is_indexed = name in state.members("queue:{0}:expires")
    if is_indexed != ("expires" in facts and task in (TaskState.READY, TaskState.WAITING)):
        yield f"{name} is {task}, expires {facts.get('expires')}, in the index: {is_indexed}"


def _offers(state: ShardState) -> set[str]:
    return {
        member
        for name, kept in state.keys.items()
        if name.startswith(f"queue:{{0}}:ready:{TUBE}:")
        for member in kept.value
    }


def _lane_moves(state: ShardState, variant: TubeVariant) -> Iterator[str]:
    """The first task of a lane is offered, or taken, or waits for its retry; nothing is behind an empty place."""
    if not variant.lane:
        return
    behind, first, is_offered = _behind(state, variant), _first(state, variant), f"@{variant.lane}" in _offers(state)
    if first is None:
        if behind or is_offered:
            yield f"no task is first in the lane, behind: {behind}, offered: {is_offered}"
    elif is_offered != (task_state(state, first) is TaskState.READY):
        yield f"the lane of {first} ({task_state(state, first)}) is stuck: offered: {is_offered}"


def _first(state: ShardState, variant: TubeVariant) -> str | None:
    kept = state.keys.get(f"queue:{{0}}:head:{TUBE}")
    return kept.value.get(variant.lane) if kept else None


def _behind(state: ShardState, variant: TubeVariant) -> list[str]:
    return list(state.members(f"queue:{{0}}:lane:{TUBE}:{variant.lane}"))


def _end_reported_once(state: ShardState) -> Iterator[str]:
    """The client that asked for it received one entry for the end of A."""
    kept = state.keys.get(f"reply:{{0}}:{CLIENT}")
    reported = len(kept.value) if kept else 0
    was_put = any(operation.startswith("put A") for operation in state.path)
    has_ended = was_put and task_state(state, "A") in (None, *_ENDS)
    if reported != int(has_ended):
        yield f"A is {task_state(state, 'A')} and its end was reported {reported} times"


def step_invariants(
    before: ShardState, step: Call | PassTime, reply: Any, after: ShardState, variant: TubeVariant
) -> Iterator[str]:
    """What one script broke."""
    if isinstance(step, PassTime):
        return
    is_rejected = reply in _REJECTIONS
    if step.script in _NEED_A_TOKEN:
        yield from token_decides(before, step, reply, is_rejected)
    if is_rejected and changed(before, after):
        yield f"it was rejected with {reply}, and something changed: {changed(before, after)}"
    yield from _transitions(before, step.script, after)
    if step.script in ("put", "kick") and not is_rejected and variant.lane:
        yield from _overtaken(after)
    if (
        step.script in ("settle", "release")
        and reply in ("waiting", ["waiting"])
        and variant.lane
        and not variant.parks
    ):
        name = str(step.arguments[0])
        if _first(after, variant) != name:
            yield f"{name} waits for its retry and lost its place in the lane"


def number_of(token: str) -> str:
    """Return the number of a token, which the task keeps; its owner is the same in all calls of the models."""
    return token.partition(" ")[0]


def token_decides(before: ShardState, call: Call, reply: Any, is_rejected: bool) -> Iterator[str]:
    """A call with the token of the current lease is accepted; with any other token it is rejected."""
    facts = before.task(str(call.arguments[0])) or {}
    is_valid = facts.get("state") == "taken" and facts.get("token") == number_of(str(call.arguments[1]))
    if is_rejected == is_valid:
        yield f"a token that is {'valid' if is_valid else 'stale'} got {reply}"


def _settled(state: ShardState) -> dict[str, Any]:
    return {name: kept.value for name, kept in state.keys.items() if not any(word in name for word in _VOLATILE)}


def changed(before: ShardState, after: ShardState) -> list[str]:
    """The keys that differ."""
    one, other = _settled(before), _settled(after)
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


def _overtaken(state: ShardState) -> Iterator[str]:
    """What fell due earlier enters its lane before what is put or kicked now."""
    for name, due in state.members("queue:{0}:due").items():
        if due <= state.now and (state.task(name) or {}).get("lane"):
            yield f"{name} was due and is overtaken"


_TIME = ("lease ends", "expire", "due")
_SCRIPT_VERBS: dict[str, tuple[str, ...]] = {
    "cancel_tasks": ("cancel",),
    **{script: (*_TIME, script) for script in ("claim", "put", "kick")},
}


def _transitions(before: ShardState, script: str, after: ShardState) -> Iterator[str]:
    """Every transition is in the table of states (`core.model.states.NEXT`)."""
    verbs = _SCRIPT_VERBS.get(script, (script,))
    for name in NAMES:
        old, new = task_state(before, name), task_state(after, name)
        if old is None or old == new:
            continue
        reachable = {old}
        for verb in verbs:
            reachable |= {later for earlier in reachable for later in NEXT.get(verb, {}).get(earlier, ())}
        if new is not None and new not in reachable:
            yield f"{name} went from {old} to {new} by {script}"
        if new is None and old not in _ENDS and not reachable & set(_ENDS):
            yield f"{name} was {old} and is gone by {script}"
