"""Deliveries that ask, as variants of the model: reminders; places with a waiting list; a number of confirmations.

Each has the operations that concern its question. All of them close the question and open it again.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from core.deliveries.histories.parcels import Entry
from core.model.question import AnswerKind, Need, Option, Question, load_question, load_row
from core.model.states import Status
from tests.support.stack import TENANT
from tests.system.model_checking.delivery_operations import (
    ANNA,
    BEN,
    FIRST,
    HISTORY,
    REMINDERS,
    SECOND,
    SUFFIX,
    TOKEN_CALLS,
    DeliveryVariant,
    exists,
    extend,
    settle,
    status_of,
)
from tests.system.model_checking.many_shards import HOUR_MS, Call, ShardState
from tests.system.model_checking.task_operations import Operation, TokenCall, token_operation

_CONFIRMATION = Question(AnswerKind.CONFIRM, [Option("read", "Read")], "en")
_ONE_PLACE = Question(AnswerKind.CHOICE, [Option("yes", "Yes", places=1), Option("no", "No")], "en")
_ONE_NEEDED = Question(
    AnswerKind.CHOICE, [Option("yes", "Yes"), Option("no", "No")], "en", need=Need(1, every=HOUR_MS // 2)
)
CLOSE = Call("close_answers", (SUFFIX, TENANT, 0))


@dataclass(frozen=True, slots=True)
class Reminded(DeliveryVariant):
    """A confirmation, with reminders by hand."""

    question: Question | None = _CONFIRMATION

    def operations(self) -> dict[str, Operation]:
        return {**DeliveryVariant.operations(self), **_closing(), **_reminding(), "Anna answers": _answer(ANNA, "read")}

    def starts(self) -> Mapping[str, tuple[str, ...]]:
        reminded = ("enqueue now", "claim", "send", "remind")
        return {
            "asked": reminded[:-1],
            "reminded": reminded,
            "being reminded": (*reminded, "claim"),
            "answered while being reminded": (*reminded, "claim", "Anna answers"),
            "half reminded": (*reminded, "claim", "Anna is reminded, Ben later"),
            "closed while being reminded": (*reminded, "claim", "close"),
        }


@dataclass(frozen=True, slots=True)
class Placed(DeliveryVariant):
    """A choice of which one option has one place."""

    question: Question | None = _ONE_PLACE

    def operations(self) -> dict[str, Operation]:
        usual = DeliveryVariant.operations(self)
        kept = {name: usual[name] for name in ("claim", "send", "an hour passes", "tick", "cancel")}
        return {**kept, **_closing(), **_choosing()}

    def starts(self) -> Mapping[str, tuple[str, ...]]:
        asked = ("enqueue now", "claim", "send")
        waiting = (*asked, "Anna says yes", "Ben says yes")
        return {
            "asked": asked,
            "Ben waits for a place": waiting,
            "Ben has got the place": (*waiting, "Anna says no"),
            "Anna waits behind Ben": (*waiting, "Anna says no", "Anna says yes"),
            "closed while Ben waits": (*waiting, "close"),
            "opened again while Ben waits": (*waiting, "close", "open again"),
            "late": (*asked, "Anna says yes", "close", "Ben says yes"),
        }


@dataclass(frozen=True, slots=True)
class Needed(DeliveryVariant):
    """A choice that needs one person who says yes: Anna is asked first, Ben after her."""

    question: Question | None = _ONE_NEEDED

    def operations(self) -> dict[str, Operation]:
        usual = DeliveryVariant.operations(self)
        kept = {name: usual[name] for name in ("claim", "an hour passes", "tick", "cancel")}
        return {**kept, **_closing(), **_choosing(), **_asking()}

    def starts(self) -> Mapping[str, tuple[str, ...]]:
        asked = ("enqueue now", "claim", "Anna is being sent to", "Anna is sent")
        second = (*asked, "the next wave comes", "claim")
        return {
            "scheduled": ("enqueue for later",),
            "being asked": asked[:-1],
            "asked": asked,
            "declined": (*asked, "Anna says no"),
            "Ben is let go": second[:-1],
            "Ben is claimed": second,
            "Ben is being sent to": (*second, "Ben is being sent to"),
            "Anna has said yes before Ben is sent": (*second, "Anna says yes"),
            "closed before Ben is sent": (*second, "close"),
            "closed before Ben's turn": (*asked, "close"),
            "opened again": (*asked, "close", "open again"),
            "opened again when Ben was let go": (*asked, "close", "open again", "claim"),
        }

    def sent(self, task: str) -> TokenCall:
        return settle({ANNA if task == FIRST else BEN: Status.SENT})


def _fields(state: ShardState) -> Mapping[str, str]:
    return state.keys[HISTORY].value if exists(state) else {}


def _answer(entry: Entry, value: str) -> Operation:
    """A new event each time, so that a person may change its answer back; possible when the message may be there."""

    def operation(state: ShardState) -> Call | None:
        event = f"event{_fields(state).get('version', '')}"
        given = (f"i{entry.number + 1}", entry.number, event, value, "", "on_behalf", "anna", "", 0, "[]", -1)
        return Call("answer", (SUFFIX, TENANT, *given)) if exists(state) else None

    return operation


def _closing() -> dict[str, Operation]:
    return {
        "close": lambda state: CLOSE if exists(state) else None,
        "open again": _open_again(0),
        "open again for an hour": _open_again(HOUR_MS),
    }


def _open_again(lasts: int) -> Operation:
    def operation(state: ShardState) -> Call | None:
        until = state.now + lasts if lasts else 0
        return Call("reopen_answers", (SUFFIX, TENANT, until)) if exists(state) else None

    return operation


def _reminding() -> dict[str, Operation]:
    return {
        "remind": _remind(1),
        "remind again": _remind(2),
        "Anna is being reminded": token_operation(REMINDERS[0], -1, TOKEN_CALLS["Anna is being sent to"]),
        "both are reminded": token_operation(REMINDERS[0], -1, TOKEN_CALLS["send"]),
        "Anna is reminded, Ben later": token_operation(REMINDERS[0], -1, TOKEN_CALLS["send to Anna, the rest later"]),
        "the reminder is released": token_operation(REMINDERS[0], -1, TOKEN_CALLS["release"]),
    }


def _remind(wave: int) -> Operation:
    return lambda state: Call("remind", (SUFFIX, TENANT, wave, "")) if exists(state) else None


def _choosing() -> dict[str, Operation]:
    people = {"Anna": ANNA, "Ben": BEN}
    return {f"{name} says {value}": _answer(one, value) for name, one in people.items() for value in ("yes", "no")}


def _asking() -> dict[str, Operation]:
    """A courier announces a person (extend) before it sends, and sends only to whom that leaves in."""
    people = {"Anna": (ANNA, FIRST), "Ben": (BEN, SECOND)}
    begun = {
        f"{name} is being sent to": token_operation(task, -1, extend({entry: Status.SENDING}))
        for name, (entry, task) in people.items()
    }
    ended = {f"{name} is sent": _if_announced(entry, task) for name, (entry, task) in people.items()}
    return {**begun, **ended, "somebody has declined": _somebody_declined, "the next wave comes": _next_wave}


def _if_announced(entry: Entry, task: str) -> Operation:
    send = token_operation(task, -1, settle({entry: Status.SENT}))
    return lambda state: send(state) if status_of(state, entry) is Status.SENDING else None


def _somebody_declined(state: ShardState) -> Call | None:
    return Call("ask_wave", (SUFFIX, TENANT, 0)) if exists(state) else None


def _next_wave(state: ShardState) -> Call | None:
    wave = int(_fields(state).get("answers_waves", "0")) + 1
    return Call("ask_wave", (SUFFIX, TENANT, wave)) if exists(state) else None


def places_are_kept(state: ShardState) -> Iterator[str]:
    """I28: an option has no more people than places, and nobody waits while one is free."""
    fields, question = _fields(state), load_question(_fields(state).get("answer"))
    if question is None or not any(option.places for option in question.options):
        return
    rows = [load_row(fields.get(f"answer:{entry.number}")) for entry in (ANNA, BEN)]
    chosen = [row for row in rows if row and row.value == "yes" and row.state == "answered"]
    taken, waiting = sum(not row.waiting for row in chosen), sum(row.waiting > 0 for row in chosen)
    if taken > 1 or (waiting and not taken):
        yield f"{taken} people have the one place, and {waiting} wait for it"
    if any(row and row.waiting and row.value != "yes" for row in rows):
        yield "somebody waits for an option without places"


def only_reopening_opens(before: ShardState, call: Call, after: ShardState) -> Iterator[str]:
    """A press, a reminder or a wave never opens a closed question again."""
    if (
        call.script != "reopen_answers"
        and "answers_closed" in _fields(before)
        and "answers_closed" not in _fields(after)
    ):
        yield f"{call.script} opened a closed question"


def only_the_needed_are_asked(before: ShardState, call: Call, after: ShardState) -> Iterator[str]:
    """I29: a person is announced as being sent to in its turn only, and while it is needed."""
    fields = _fields(before)
    enough = fields.get("answers:option:yes", "0") != "0" or "answers_closed" in fields
    for entry in (ANNA, BEN):
        begins = status_of(before, entry) is not Status.SENDING is status_of(after, entry)
        if call.script == "extend" and begins and enough:
            yield f"{entry.address} is asked, although nobody is needed any more"
        if begins and int(fields.get("answers_asked", "0")) <= entry.number:
            yield f"{entry.address} is asked before its turn"
