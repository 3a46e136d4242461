"""A delivery as what is explored: its moves, its laws, and the plain courier that drains it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.model.states import RANK, Status
from tests.model_checking.delivery_moves import (
    BOTH,
    CHANNEL,
    FIRST,
    HISTORY,
    SAID,
    SECOND,
    Move,
    Terms,
    status_of,
)  # fmt: skip
from tests.model_checking.invariants import changed
from tests.model_checking.many_shards import HOUR_MS, Call, Ground, Pass, World
from tests.model_checking.task_moves import FLOOR_MS, HOUR_AFTER
from tests.model_checking.tasks import with_tokens

_CLAIM = Call("claim", (CHANNEL, "drain", "ada", 10, 100, HOUR_AFTER, FLOOR_MS))
_OVER = ("finished", "cancelled", "expired")
# What each script answers that did nothing.
_REFUSED: Mapping[str, tuple[Any, ...]] = {
    "enqueue": ("repeated", "used", "foreign", "payload"),
    "reschedule": ("missing", "released", "expires"),
    "cancel": ("missing", "over"),
    "retry": ("missing", "changed", "scheduled", "cancelled"),
    **dict.fromkeys(("settle", "release", "extend"), ("stale",)),
    "report": (0, -1),
}


@dataclass(frozen=True)
class Deliveries:
    """See `tests.model_checking.explore.Subject`."""

    terms: Terms

    def moves(self) -> Mapping[str, Move]:
        return self.terms.moves()

    def learned(self, world: World, call: Call | Pass, reply: Any) -> World:
        return with_tokens(world, call, reply)

    def world_laws(self, world: World) -> Iterator[str]:
        state = _state(world)
        tasks = [task for task in (FIRST, SECOND) if world.task(task)]
        to_do = [task for task in tasks if _is_to_do(world.task(task) or {})]
        if state in _OVER and "finished" in world.keys[HISTORY].value and to_do:
            yield f"it is {state}, and there is something to be done that nobody does: {to_do}"
        if state in (*_OVER, "released") and HISTORY.replace("history", "delivery", 1) in world.keys:
            yield f"it is {state}, and its order is there"
        if state == "released" and not tasks:
            yield "it is released, nobody will ever attempt it, and it is not finished"
        if world.members(f"queue:{{0}}:tenants:{CHANNEL}") and f"delivery:{{0}}:idle:{CHANNEL}" in world.keys:
            yield "somebody sleeps beside work"

    def step_laws(self, before: World, call: Call | Pass, reply: Any, after: World) -> Iterator[str]:
        if isinstance(call, Pass):
            return
        said = reply[0] if isinstance(reply, list) and reply else reply
        refused = said in _REFUSED.get(call.script, ())
        if call.script in ("settle", "release", "extend"):
            facts = before.task(str(call.arguments[0])) or {}
            holds = facts.get("state") == "taken" and facts.get("token") == call.arguments[1]
            if refused == holds:
                yield f"a token that {'holds' if holds else 'is old'} was answered {reply}"
        if refused and changed(before, after):
            yield f"it was answered {reply}, and something changed: {changed(before, after)}"
        if call.script != "retry":
            yield from _later_evidence(before, after)
        yield from _told_in_order(before, after)

    async def drain(self, ground: Ground, worlds: Sequence[World]) -> list[World]:
        """Whatever waits is due and whoever held anything is gone; then everybody is sent to."""
        ground.pass_time(2 * HOUR_MS)
        for _ in range(2):
            replies = await ground.run([_CLAIM] * len(worlds))
            worlds = [with_tokens(world, _CLAIM, reply) for world, reply in zip(worlds, replies, strict=True)]
            for task in (FIRST, SECOND):
                await ground.run([_sent(world, task, reply) for world, reply in zip(worlds, replies, strict=True)])
        return await ground.look(worlds)


def _is_to_do(facts: Mapping[str, str]) -> bool:
    """Who has it will speak; where reports have closed all of it, its next holder finds nothing."""
    return facts.get("state") != "taken" and int(facts.get("left", 0)) > 0


def _state(world: World) -> str:
    return str(world.keys[HISTORY].value["state"]) if HISTORY in world.keys else ""


def _later_evidence(before: World, after: World) -> Iterator[str]:
    """An outcome gives way to a later one only; `sending` may be taken back."""
    for entry in BOTH:
        old, new = status_of(before, entry), status_of(after, entry)
        if RANK[new] < RANK[old] and (old, new) != (Status.SENDING, Status.QUEUED):
            yield f"{entry.address} went from {old} to {new}"


def _told_in_order(before: World, after: World) -> Iterator[str]:
    """Every change that is told has a version of its own, a later one. That a channel has reported is no change."""
    last = max((int(entry["version"]) for entry in _events(before)), default=0)
    for entry in _events(after)[len(_events(before)) :]:
        if entry["event"] == "reported":
            continue
        if int(entry["version"]) <= last:
            yield f"“{entry['event']}” was told as version {entry['version']} after {last}"
        last = int(entry["version"])


def _events(world: World) -> list[Mapping[str, str]]:
    kept = world.keys.get("events:{0}")
    return list(kept.value) if kept else []


def _sent(world: World, task: str, reply: Any) -> Call | None:
    given = any(name == task for name, *_ in reply[6:])
    return SAID["send"](world, task, world.tokens[task][-1]) if given else None
