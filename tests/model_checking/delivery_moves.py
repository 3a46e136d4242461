"""Every script on one delivery, as a move from any world: two people in one channel, one parcel; another by a retry."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from core.history.parcels import Entry, dump_parcel, fields_of, load_parcel
from core.model.compact_json import compact_json
from core.model.states import Status
from core.queue.task import Settlement
from tests.model_checking.many_shards import HOUR_MS, Call, Pass, World
from tests.model_checking.task_moves import FLOOR_MS, HOUR_AFTER, NEXT_HOUR, held
from tests.support.stack import TENANT, order, people

CHANNEL = "echo"
NS = "1763712000000000000"
SUFFIX = f"7:{NS}"
HISTORY, OUTCOMES = f"history:{{0}}:{SUFFIX}", f"history:{{0}}:{SUFFIX}:outcomes"
FIRST, SECOND = f"{NS}.7.{CHANNEL}.0", f"{NS}.7.{CHANNEL}.1"
ANNA, BEN = (Entry(number + 1, number, 0, 1, f"p{number + 1}") for number in range(2))
BOTH = (ANNA, BEN)
_DAY_MS = 24 * HOUR_MS

Move = Callable[[World], Call | Pass | None]
Ends = Mapping[Entry, Status]


def status_of(world: World, entry: Entry) -> Status:
    kept = world.keys.get(OUTCOMES)
    stored = kept.value.get(entry.field(CHANNEL)) if kept else None
    return Status(stored.split("|")[0]) if stored else Status.QUEUED


@dataclass(frozen=True, slots=True)
class Terms:
    """How the delivery is ordered."""

    lane: str | None = None
    expires: bool = False

    def enqueue(self, after: int = 0, *, repeat: str = "key", fingerprint: str = "print", request: str = "one") -> Move:
        """`after`: ms from now on, 0: at once."""

        def move(world: World) -> Call:
            wanted = order(*people(2), lane=self.lane)
            due, expires = world.now + after if after else 0, world.now + HOUR_AFTER if self.expires else 0
            call = (SUFFIX, TENANT, request, due, expires, repeat, fingerprint, _DAY_MS, len(wanted.recipients))
            return Call("enqueue", (*call, fields_of(wanted, {CHANNEL: 100})))

        return move

    def moves(self) -> dict[str, Move]:
        return {
            "enqueue again": self.enqueue(),
            "enqueue again by the same call": self.enqueue(repeat=""),
            "enqueue another by the same key": self.enqueue(fingerprint="another"),
            "enqueue another to the same history": self.enqueue(repeat="", request="another"),
            "reschedule to now": _reschedule(0),
            "reschedule for later": _reschedule(NEXT_HOUR),
            "cancel": _cancel(()),
            "cancel Anna": _cancel((ANNA,)),
            "claim": _always(Call("claim", (CHANNEL, "one", "ada", 1, 100, NEXT_HOUR, FLOOR_MS))),
            "tick": _always(Call("claim", ("nobody's", "clock", "", 0, 0, 0, FLOOR_MS))),
            "an hour passes": _pass,
            "try the failed again": _retry,
            "report Anna read": _report(ANNA, Status.READ),
            "report Ben failed": _report(BEN, Status.FAILED),
            **{name: _with_token(FIRST, -1, said) for name, said in SAID.items()},
            **{f"{name}, old": _with_token(FIRST, 0, SAID[name]) for name in ("send", "send to Anna", "Anna is sent")},
            "send again": _with_token(SECOND, -1, SAID["send"]),
            "fail again": _with_token(SECOND, -1, SAID["fail"]),
        }


def _pass(world: World) -> Pass:
    return Pass(HOUR_MS)


def _always(call: Call) -> Move:
    return lambda world: call


def _there(world: World) -> bool:
    return HISTORY in world.keys


def _reschedule(after: int) -> Move:
    return lambda world: Call("reschedule", (SUFFIX, TENANT, world.now + after)) if _there(world) else None


def _cancel(chosen: tuple[Entry, ...]) -> Move:
    def move(world: World) -> Call | None:
        rows = [[CHANNEL, n, entry.item(Status.CANCELLED)] for n, entry in _entries(world) if entry in chosen]
        return Call("cancel", (SUFFIX, TENANT, int(not chosen), compact_json(rows))) if _there(world) else None

    return move


def _entries(world: World) -> list[tuple[int, Entry]]:
    """Of each parcel that was cut, with its number."""
    facts = world.keys[HISTORY].value if _there(world) else {}
    texts = {n: facts.get(f"parcel:{CHANNEL}:{n}") for n in range(2)}
    return [(n, entry) for n, text in texts.items() if text for entry in load_parcel(text)[1]]


def _report(entry: Entry, status: Status) -> Move:
    """Of a message that somebody may have sent: the receipt is made by who has the parcel."""
    item = compact_json(entry.item(status, reference="ref"))
    return lambda world: Call("record_report", (SUFFIX, CHANNEL, 0, item)) if FIRST in world.tokens else None


def _retry(world: World) -> Call | None:
    """Once, of those who failed."""
    failed = [entry for entry in BOTH if status_of(world, entry) is Status.FAILED]
    if not failed or f"parcel:{CHANNEL}:1" in world.keys[HISTORY].value:
        return None
    leg = [CHANNEL, dump_parcel(1, failed), [entry.item(Status.QUEUED) for entry in failed]]
    return Call("retry", (SUFFIX, TENANT, world.keys[HISTORY].value["version"], compact_json([leg])))


Said = Callable[[World, str, str], Call]


def _items(ends: Ends) -> list[list[object]]:
    return [entry.item(status, attempts=1) for entry, status in ends.items()]


def _settle(ends: Ends, after: int = 0) -> Said:
    def said(world: World, task_id: str, token: str) -> Call:
        due = world.now + after if after else 0
        unclear = {entry: Status.UNKNOWN for entry, status in ends.items() if status is Status.SENDING}
        end = Settlement(outcomes=_items(ends), due=due, unclear=_items(unclear))
        return Call("settle", end.row(held(task_id, token)))

    return said


def _extend(ends: Ends) -> Said:
    return lambda world, task_id, token: Call("extend", (task_id, token, HOUR_AFTER, "", compact_json(_items(ends))))


def _release(after: int) -> Said:
    return lambda world, task_id, token: Call("release", (task_id, token, world.now + after if after else 0, ""))


SAID: Mapping[str, Said] = {
    "send": _settle(dict.fromkeys(BOTH, Status.SENT)),
    "send to Anna": _settle({ANNA: Status.SENT}),
    "send to Anna, the rest later": _settle({ANNA: Status.SENT, BEN: Status.SENDING}, NEXT_HOUR),
    "fail": _settle(dict.fromkeys(BOTH, Status.FAILED)),
    "Anna is being sent to": _extend({ANNA: Status.SENDING}),
    "Anna is sent": _extend({ANNA: Status.SENT}),
    "release": _release(0),
    "release for later": _release(NEXT_HOUR),
}


def _with_token(task_id: str, which: int, said: Said) -> Move:
    def move(world: World) -> Call | None:
        given = world.tokens.get(task_id, ())
        if not given or (which == 0 and len(given) == 1):
            return None
        return said(world, task_id, given[which])

    return move


STARTS: Mapping[str, tuple[str, ...]] = {
    "not there": (),
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
    "failed, tried again": ("enqueue now", "claim", "fail", "try the failed again"),
    "failed, taken again": ("enqueue now", "claim", "fail", "try the failed again", "claim"),
    "cancelled": ("enqueue now", "cancel"),
    "reported before its end": ("enqueue now", "claim", "report Anna read"),
}


def start_moves(terms: Terms) -> dict[str, Move]:
    return {**terms.moves(), "enqueue now": terms.enqueue(), "enqueue for later": terms.enqueue(NEXT_HOUR)}
