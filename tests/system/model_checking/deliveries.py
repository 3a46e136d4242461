"""The model of a delivery: its operations, its invariants, and the plain courier that drains it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.model.states import OPEN, RANK, Status
from core.queue import Settlement
from core.redis.constants import ASKS_AGAIN
from tests.system.model_checking.delivery_operations import (
    BOTH,
    CHANNEL,
    FIRST,
    HISTORY,
    LABEL,
    REMINDERS,
    SECOND,
    DeliveryVariant,
    latest_parcel_of,
    status_of,
)
from tests.system.model_checking.invariants import changed, token_decides
from tests.system.model_checking.many_shards import HOUR_MS, Call, ManyShards, PassTime, ShardState
from tests.system.model_checking.questions import (
    CLOSE,
    only_reopening_opens,
    only_the_needed_are_asked,
    places_are_kept,
)
from tests.system.model_checking.task_operations import FLOOR_MS, HOUR_AFTER, Operation, TokenCall, task_with_token
from tests.system.model_checking.tasks import with_tokens

_CLAIM = Call("claim", (CHANNEL, "drain", "ada", 10, 100, HOUR_AFTER, FLOOR_MS))
_CLAIM_ANSWERS = Call("claim", ("answers", "drain", "ada", 10, 100, HOUR_AFTER, FLOOR_MS))
_OVER = ("finished", "cancelled", "expired")
# The replies of scripts that changed nothing.
_REJECTED: Mapping[str, tuple[Any, ...]] = {
    "enqueue": ("repeated", "used", "foreign", "payload"),
    "reschedule": ("missing", "released", "expires"),
    "cancel": ("missing", "over"),
    "retry": ("missing", "changed", "scheduled", "cancelled"),
    **dict.fromkeys(("settle", "release", "extend"), ("stale",)),
    "record_report": (0, -1),
}


@dataclass(frozen=True)
class Deliveries:
    """See `tests.system.model_checking.explore.Model`."""

    variant: DeliveryVariant

    def operations(self) -> Mapping[str, Operation]:
        return self.variant.operations()

    def with_reply(self, state: ShardState, call: Call | PassTime, reply: Any) -> ShardState:
        return with_tokens(state, call, reply)

    def state_invariants(self, state: ShardState) -> Iterator[str]:
        delivery = _delivery_state(state)
        tasks = [task for task in (FIRST, SECOND) if state.task(task)]
        unattended = [task for task in tasks if _is_unattended(state.task(task) or {})]
        if delivery in _OVER and "finished" in state.keys[HISTORY].value and unattended:
            yield f"it is {delivery}, and parcels are left that no worker has: {unattended}"
        if delivery in (*_OVER, "released") and HISTORY.replace("history", "delivery", 1) in state.keys:
            yield f"it is {delivery}, and its order key still exists"
        if delivery == "released" and not tasks:
            yield "it is released, has no parcel to attempt, and is not finished"
        if state.members(f"queue:{{0}}:tenants:{CHANNEL}") and f"delivery:{{0}}:idle:{CHANNEL}" in state.keys:
            yield "a worker sleeps although there is work"
        yield from places_are_kept(state)

    def step_invariants(
        self, before: ShardState, call: Call | PassTime, reply: Any, after: ShardState
    ) -> Iterator[str]:
        if isinstance(call, PassTime):
            return
        word = reply[0] if isinstance(reply, list) and reply else reply
        is_rejected = word in _REJECTED.get(call.script, ())
        if call.script in ("settle", "release", "extend"):
            yield from token_decides(before, call, reply, is_rejected)
        if is_rejected and changed(before, after):
            yield f"it was rejected with {reply}, and something changed: {changed(before, after)}"
        if call.script != "retry":
            yield from _later_evidence(before, after)
        yield from _versions_increase(before, after)
        yield from _lost_attempts_end_unknown(before, after)
        yield from _only_the_open_are_reminded(before, call, after)
        yield from only_reopening_opens(before, call, after)
        if self.variant.question and self.variant.question.need:
            yield from only_the_needed_are_asked(before, call, after)

    async def drain(self, shards: ManyShards, states: Sequence[ShardState]) -> list[ShardState]:
        """Time passes until everything is due and every lease is over; then a courier sends to every recipient."""
        if self.variant.question:  # who was never asked waits until nobody is needed any more
            await shards.run([CLOSE if HISTORY in state.keys else None for state in states])
        shards.pass_time(2 * HOUR_MS)
        for _ in range(2):
            replies = await shards.run([_CLAIM] * len(states))
            states = [with_tokens(state, _CLAIM, reply) for state, reply in zip(states, replies, strict=True)]
            for task in (FIRST, SECOND, *REMINDERS):
                sent = self.variant.sent(task)
                await shards.run([_end(state, task, reply, sent) for state, reply in zip(states, replies, strict=True)])
        replies = await shards.run([_CLAIM_ANSWERS] * len(states))
        states = [with_tokens(state, _CLAIM_ANSWERS, reply) for state, reply in zip(states, replies, strict=True)]
        await shards.run([_finish(state, reply) for state, reply in zip(states, replies, strict=True)])
        return await shards.read(states)


def _is_unattended(facts: Mapping[str, str]) -> bool:
    """A taken parcel is still settled by its worker; where delivery reports closed all of it, nothing is left to do."""
    return facts.get("state") != "taken" and int(facts.get("left", 0)) > 0


def _delivery_state(state: ShardState) -> str:
    return str(state.keys[HISTORY].value["state"]) if HISTORY in state.keys else ""


def _later_evidence(before: ShardState, after: ShardState) -> Iterator[str]:
    """An outcome gives way only to a later one; only `sending` may go back to `queued`."""
    for entry in BOTH:
        old, new = status_of(before, entry), status_of(after, entry)
        if RANK[new] < RANK[old] and (old, new) != (Status.SENDING, Status.QUEUED):
            yield f"{entry.address} went from {old} to {new}"


def _lost_attempts_end_unknown(before: ShardState, after: ShardState) -> Iterator[str]:
    """I18: a parcel whose worker was lost and that ends without another claim leaves its open entries unknown; one that
    asks again only those that were announced.
    """
    for number, task in enumerate((FIRST, SECOND)):
        facts = before.task(task) or {}
        if "lost" not in facts or facts["state"] == "taken" or after.task(task):
            continue
        for entry in BOTH:
            possible = (Status.SENDING,) if facts.get("place") == str(ASKS_AGAIN) else OPEN
            was_open = status_of(before, entry) in possible and latest_parcel_of(before, entry) == number
            if was_open and status_of(after, entry) is not Status.UNKNOWN:
                yield f"{entry.address} may have been sent to, and ended as {status_of(after, entry)}"


def _only_the_open_are_reminded(before: ShardState, call: Call, after: ShardState) -> Iterator[str]:
    """I27: who is announced as being sent to (couriers do it by extend) has an open question, and no reminder changes
    what became of the first sending.
    """
    facts = before.keys[HISTORY].value if HISTORY in before.keys else {}
    for entry in BOTH:
        is_open = f"answer:{entry.number}" not in facts and "answers_closed" not in facts
        begins = status_of(before, entry, LABEL) is not Status.SENDING is status_of(after, entry, LABEL)
        if call.script == "extend" and begins and not is_open:
            yield f"{entry.address} is being reminded, although its question is not open"
        if call.arguments[0] in REMINDERS and status_of(before, entry) is not status_of(after, entry):
            yield f"a reminder changed what became of the first sending to {entry.address}"


def _versions_increase(before: ShardState, after: ShardState) -> Iterator[str]:
    """Every event of a change has a higher version than the one before. `reported` is an event without a change."""
    last = max((int(entry["version"]) for entry in _events(before)), default=0)
    for entry in _events(after)[len(_events(before)) :]:
        if entry["event"] == "reported":
            continue
        if int(entry["version"]) <= last:
            yield f"event “{entry['event']}” has version {entry['version']} after {last}"
        last = int(entry["version"])


def _events(state: ShardState) -> list[Mapping[str, str]]:
    kept = state.keys.get("events:{0}")
    return list(kept.value) if kept else []


def _end(state: ShardState, task: str, reply: Any, sent: TokenCall) -> Call | None:
    is_claimed = any(name == task for name, *_ in reply[6:])
    return sent(state, task, state.tokens[task][-1]) if is_claimed else None


def _finish(state: ShardState, reply: Any) -> Call | None:
    """Ends the tasks of what follows from answers and from a closing."""
    claimed = [task_with_token(name, state.tokens[name][-1]) for name, *_ in reply[6:]]
    return Call("settle", tuple(word for task in claimed for word in Settlement().row(task))) if claimed else None
