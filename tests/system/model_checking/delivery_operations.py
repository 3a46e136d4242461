"""Every script on one delivery as an operation on any state.

The delivery has two recipients in one channel and one parcel; a retry makes a second parcel.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from core.deliveries.histories.encoding import history_fields
from core.deliveries.histories.parcels import Entry, dump_parcel, load_parcel
from core.model.json_form import compact_json
from core.model.question import Question
from core.model.states import Status
from core.queue import Settlement
from tests.support.stack import TENANT, order, people
from tests.system.model_checking.many_shards import HOUR_MS, Call, PassTime, ShardState
from tests.system.model_checking.task_operations import (
    FLOOR_MS,
    HOUR_AFTER,
    NEXT_HOUR,
    Operation,
    TokenCall,
    task_with_token,
    token_operation,
)

CHANNEL = "echo"
NS = "1763712000000000000"
SUFFIX = f"7:{NS}"
HISTORY, OUTCOMES = f"history:{{0}}:{SUFFIX}", f"history:{{0}}:{SUFFIX}:outcomes"
FIRST, SECOND = f"{NS}.7.{CHANNEL}.0", f"{NS}.7.{CHANNEL}.1"
ANNA, BEN = (Entry(number + 1, number, 0, 1, f"p{number + 1}") for number in range(2))
BOTH = (ANNA, BEN)
_DAY_MS = 24 * HOUR_MS
UNLIMITED: tuple[int, tuple[int, ...]] = (0, ())
"""Arguments of enqueue: quiet hours have not moved it; the sender has no quota."""

LABEL = f"{CHANNEL}~1"
REMINDERS = tuple(f"{NS}.7.{CHANNEL}~{wave}.0" for wave in (1, 2, 3))

Ends = Mapping[Entry, Status]


def status_of(state: ShardState, entry: Entry, label: str = CHANNEL) -> Status:
    kept = state.keys.get(OUTCOMES)
    stored = kept.value.get(entry.field(label)) if kept else None
    return Status(stored.split("|")[0]) if stored else Status.QUEUED


@dataclass(frozen=True, slots=True)
class DeliveryVariant:
    """Options of the delivery."""

    lane: str | None = None
    expires: bool = False
    question: Question | None = None

    def enqueue(
        self, after: int = 0, *, repeat: str = "key", fingerprint: str = "print", request: str = "one"
    ) -> Operation:
        """`after`: in ms from now; 0 for at once."""

        def operation(state: ShardState) -> Call:
            wanted = order(*people(2), lane=self.lane, question=self.question)
            due, expires = state.now + after if after else 0, state.now + HOUR_AFTER if self.expires else 0
            call = (SUFFIX, TENANT, request, due, expires, *UNLIMITED, repeat, fingerprint, _DAY_MS)
            fields = history_fields(wanted, {CHANNEL: 100})
            return Call("enqueue", (*call, len(wanted.recipients), fields, self._asked, ()))

        return operation

    @property
    def _asked(self) -> tuple[str | int, ...]:
        return ("code", 0) if self.question else ()

    def operations(self) -> dict[str, Operation]:
        return {
            "enqueue again": self.enqueue(),
            "enqueue again by the same call": self.enqueue(repeat=""),
            "enqueue another by the same key": self.enqueue(fingerprint="another"),
            "enqueue another to the same history": self.enqueue(repeat="", request="another"),
            "reschedule to now": _reschedule(0),
            "reschedule for later": _reschedule(NEXT_HOUR),
            "cancel": _cancel(()),
            "cancel Anna": _cancel((ANNA,)),
            "claim": always(Call("claim", (CHANNEL, "one", "ada", 1, 100, NEXT_HOUR, FLOOR_MS))),
            "tick": always(Call("claim", ("empty", "clock", "", 0, 0, 0, FLOOR_MS))),
            "an hour passes": lambda state: PassTime(HOUR_MS),
            "retry the failed": _retry,
            "report Anna read": _report(ANNA, Status.READ),
            "report Ben failed": _report(BEN, Status.FAILED),
            **{name: token_operation(FIRST, -1, call) for name, call in TOKEN_CALLS.items()},
            **{f"{name}, first token": token_operation(FIRST, 0, TOKEN_CALLS[name]) for name in _FIRST_TOKEN_CALLS},
            "send again": token_operation(SECOND, -1, TOKEN_CALLS["send"]),
            "fail again": token_operation(SECOND, -1, TOKEN_CALLS["fail"]),
        }

    def sent(self, task: str) -> TokenCall:
        """Return what a courier records that has sent all of a parcel."""
        return settle(dict.fromkeys(BOTH, Status.SENT))

    def starts(self) -> Mapping[str, tuple[str, ...]]:
        """The paths to the states from which everything is tried."""
        return STARTS

    def start_operations(self) -> dict[str, Operation]:
        """The operations of these paths."""
        return {**self.operations(), "enqueue now": self.enqueue(), "enqueue for later": self.enqueue(NEXT_HOUR)}


def always(call: Call) -> Operation:
    return lambda state: call


def exists(state: ShardState) -> bool:
    return HISTORY in state.keys


def _reschedule(after: int) -> Operation:
    return lambda state: Call("reschedule", (SUFFIX, TENANT, state.now + after, 0)) if exists(state) else None


def _cancel(chosen: tuple[Entry, ...]) -> Operation:
    def operation(state: ShardState) -> Call | None:
        rows = [[CHANNEL, n, entry.item(Status.CANCELLED)] for n, entry in _entries(state) if entry in chosen]
        return Call("cancel", (SUFFIX, TENANT, int(not chosen), compact_json(rows))) if exists(state) else None

    return operation


def _entries(state: ShardState) -> list[tuple[int, Entry]]:
    """The entries of the parcels that exist, each with the number of its parcel."""
    facts = state.keys[HISTORY].value if exists(state) else {}
    texts = {n: facts.get(f"parcel:{CHANNEL}:{n}") for n in range(2)}
    return [(n, entry) for n, text in texts.items() if text for entry in load_parcel(text)[1]]


def latest_parcel_of(state: ShardState, entry: Entry) -> int:
    """The parcel of the entry's latest attempt."""
    return max((number for number, found in _entries(state) if found == entry), default=-1)


def _report(entry: Entry, status: Status) -> Operation:
    """A delivery report. It is possible once a worker had the parcel, which may have sent the message."""
    item = compact_json(entry.item(status, reference="ref"))
    return lambda state: Call("record_report", (SUFFIX, CHANNEL, 0, item)) if FIRST in state.tokens else None


def _retry(state: ShardState) -> Call | None:
    """Retries the failed entries; possible once."""
    failed = [entry for entry in BOTH if status_of(state, entry) is Status.FAILED]
    if not failed or f"parcel:{CHANNEL}:1" in state.keys[HISTORY].value:
        return None
    leg = [CHANNEL, dump_parcel(1, failed), [entry.item(Status.QUEUED) for entry in failed]]
    return Call("retry", (SUFFIX, TENANT, state.keys[HISTORY].value["version"], compact_json([leg])))


def _items(ends: Ends) -> list[list[object]]:
    return [entry.item(status, attempts=1) for entry, status in ends.items()]


def settle(ends: Ends, after: int = 0) -> TokenCall:
    def call(state: ShardState, task_id: str, token: str) -> Call:
        due = state.now + after if after else 0
        unclear = {entry: Status.UNKNOWN for entry, status in ends.items() if status is Status.SENDING}
        end = Settlement(outcomes=_items(ends), due=due, unclear=_items(unclear))
        return Call("settle", end.row(task_with_token(task_id, token)))

    return call


def extend(ends: Ends) -> TokenCall:
    return lambda state, task_id, token: Call("extend", (task_id, token, HOUR_AFTER, "", compact_json(_items(ends))))


def _release(after: int) -> TokenCall:
    return lambda state, task_id, token: Call("release", (task_id, token, state.now + after if after else 0, ""))


TOKEN_CALLS: Mapping[str, TokenCall] = {
    "send": settle(dict.fromkeys(BOTH, Status.SENT)),
    "send to Anna": settle({ANNA: Status.SENT}),
    "send to Anna, the rest later": settle({ANNA: Status.SENT, BEN: Status.SENDING}, NEXT_HOUR),
    "fail": settle(dict.fromkeys(BOTH, Status.FAILED)),
    "Anna is being sent to": extend({ANNA: Status.SENDING}),
    "Anna is sent": extend({ANNA: Status.SENT}),
    "release": _release(0),
    "release for later": _release(NEXT_HOUR),
}


_FIRST_TOKEN_CALLS = ("send", "send to Anna", "Anna is sent")

STARTS: Mapping[str, tuple[str, ...]] = {
    "absent": (),
    "scheduled": ("enqueue for later",),
    "scheduled, overdue": ("enqueue for later", "an hour passes"),
    "released": ("enqueue now",),
    "moved": ("enqueue for later", "reschedule for later"),
    "scheduled, one cancelled": ("enqueue for later", "cancel Anna"),
    "released, one cancelled": ("enqueue now", "cancel Anna"),
    "taken": ("enqueue now", "claim"),
    "taken and cancelled": ("enqueue now", "claim", "cancel"),
    "taken, one cancelled": ("enqueue now", "claim", "cancel Anna"),
    "taken, its lease over": ("enqueue now", "claim", "an hour passes"),
    "taken by a second worker": ("enqueue now", "claim", "an hour passes", "tick", "claim"),
    "half sent": ("enqueue now", "claim", "send to Anna"),
    "half sent, the rest later": ("enqueue now", "claim", "send to Anna, the rest later"),
    "sent": ("enqueue now", "claim", "send"),
    "failed": ("enqueue now", "claim", "fail"),
    "failed, to be retried": ("enqueue now", "claim", "fail", "retry the failed"),
    "failed, taken again": ("enqueue now", "claim", "fail", "retry the failed", "claim"),
    "cancelled": ("enqueue now", "cancel"),
    "reported before its end": ("enqueue now", "claim", "report Anna read"),
}
