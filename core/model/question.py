"""The question of a delivery, and the answers of its recipients. Frozen values, pure.

A history stores the question as JSON, and for each recipient who has answered a row (lua/answers/modules/answers.lua).
What became of the sending and what became of the question are two things: `answer_state` joins them for people.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from hashlib import blake2b

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from core.model.clock import from_ms
from core.model.history_key import HistoryKey, Id, code_of

MOST_REMINDERS_BY_HAND = 3
FEWEST_ANONYMOUS = 5
"""Answers of an anonymous question from which on its totals are shown."""
_LONGEST_CALLED = 30
"""Characters of a name on a button."""


class AnswerKind(StrEnum):
    """`confirm`: one button, "I have read it". `choice`: a button for each option. The others are written, or sent as a
    file.
    """

    CONFIRM = "confirm"
    CHOICE = "choice"
    TEXT = "text"
    NUMBER = "number"
    DATE = "date"
    FILE = "file"


class AnswerVisibility(StrEnum):
    """Visibility of a person's answer. `hidden`: to an administrator who gives a reason; others see the totals.
    `anonymous`: not visible; participants and answers are stored apart.
    """

    NAMED = "named"
    HIDDEN = "hidden"
    ANONYMOUS = "anonymous"


class Late(StrEnum):
    """Treatment of an answer after the closing: it is only kept, or counted as well."""

    KEEP = "keep"
    COUNT = "count"


class AnswerState(StrEnum):
    """`not_asked`: nothing has arrived yet. `silent`: closed without an answer. `unreachable`: the sending is over, and
    nothing is known to have arrived.
    """

    NOT_ASKED = "not_asked"
    OPEN = "open"
    ANSWERED = "answered"
    SILENT = "silent"
    UNREACHABLE = "unreachable"
    LATE = "late"


class Remind(Struct, frozen=True):
    """Reminders for recipients without an answer: `after` the release, then `every` so often, `most` times.
    Milliseconds.
    """

    after: int
    every: int
    most: int


class Escalate(Struct, frozen=True):
    """Further channels in which recipients without an answer are asked, `after` the release. Milliseconds."""

    after: int
    channels: Sequence[str]


class Need(Struct, frozen=True):
    """The number of people who have to confirm, that is, choose the first option. As many are asked at first. A refusal
    asks the next person at once; `every` so often (ms) as many more are asked as are missing.
    """

    people: int
    every: int


class Option(Struct, frozen=True, omit_defaults=True):
    """`key`: what is counted. `text`: of the button. `places`: how many people may have it, the others wait in a line;
    0 for any number.
    """

    key: str
    text: str
    places: int = 0


class Question(Struct, frozen=True, omit_defaults=False):
    """`until`: when it closes, Unix ms, 0 for never. `change`: until then the last answer counts; without it the first.
    `locale`: ru or en, the language of replies to a press. `consent`: if two guardians of a child differ, the second
    option counts, which refuses.
    """

    kind: AnswerKind
    options: Sequence[Option]
    locale: str
    until: int = 0
    change: bool = True
    late: Late = Late.KEEP
    remind: Remind | UnsetType = UNSET
    escalate: Escalate | UnsetType = UNSET
    need: Need | UnsetType = UNSET
    visible: AnswerVisibility = AnswerVisibility.NAMED
    consent: bool = False

    @property
    def is_anonymous(self) -> bool:
        return self.visible is AnswerVisibility.ANONYMOUS

    @property
    def is_hidden(self) -> bool:
        return self.visible is AnswerVisibility.HIDDEN

    @property
    def has_options(self) -> bool:
        """Return whether an answer is one of the options; otherwise people write it."""
        return self.kind in (AnswerKind.CONFIRM, AnswerKind.CHOICE)

    @property
    def most_reminders(self) -> int:
        """Return how many waves of reminders there are at most, planned ones and those by hand."""
        return self.remind.most if self.remind else MOST_REMINDERS_BY_HAND

    def planned_reminders(self, released: int) -> int:
        """Return how many reminders there are time for. `released`: Unix ms."""
        if not self.remind:
            return 0
        if not self.until:
            return self.remind.most
        return min(self.remind.most, 1 + (self.until - released - self.remind.after - 1) // self.remind.every)

    def option(self, key: str) -> Option | None:
        return next((one for one in self.options if one.key == key), None)


class Revision(Struct, frozen=True, omit_defaults=True):
    """An answer that another one has replaced. `by`: as of an AnswerRow. `channel`: "" if it came in none."""

    value: str
    at: int
    by: str
    channel: str = ""
    text: str = ""
    who: str = ""


class Voice(Struct, frozen=True):
    """The answer of one person for a child. `who`: its id, as text. `name`: not stored."""

    who: str
    value: str
    at: int
    name: str | None = None


class AskedChild(Struct, frozen=True, array_like=True):
    """A child for whom a recipient answers. `places`: the number of its row, none if nothing is asked."""

    id: Id
    places: Sequence[int]
    name: str | None

    @property
    def number(self) -> int:
        return self.places[0]


class AnswerRow(Struct, frozen=True):
    """The answer of a recipient, as the history stores it. `value`: the key of an option, a number, a date, the id
    of a file; "" for a text. `text`: the words of a text, the name of a file, a note. `at`: Unix ms. `by`: press,
    number, text, mail, link, or on_behalf, then `who` has entered it. `waiting`: its ticket in the line for a place; 0
    if it has one, or none is needed. `freed`: its place went to the next: its data were deleted, or it can be told
    nothing. `voices`: of a child, what each of its guardians has said last, the latest at the end; `conflict`: they
    differ.
    """

    state: AnswerState
    value: str
    at: int
    by: str
    version: int
    channel: str = ""
    text: str = ""
    who: str = ""
    revisions: Sequence[Revision] = ()
    waiting: int = 0
    voices: Sequence[Voice] = ()
    conflict: bool = False
    freed: bool = False

    @property
    def answered_at(self) -> datetime:
        return from_ms(self.at)


def shown_row(question: Question | None, row: AnswerRow | None) -> AnswerRow | None:
    """Return the row that everybody may see who sees the delivery."""
    if row is None or question is None or not question.is_hidden:
        return row
    return AnswerRow(row.state, "", row.at, row.by, row.version, row.channel)


def asked_for(question: Question, children: Sequence[AskedChild]) -> Question:
    """Return the question as one answers it who is asked about children: the options of each, with its name if there
    are several. A key is `<number of the child's row>:<key>`.
    """
    if not children or not question.has_options:
        return question
    options = [
        Option(f"{child.number}:{one.key}", f"{_called(child)}: {one.text}" if len(children) > 1 else one.text)
        for child in children
        for one in question.options
    ]
    return replace(question, options=options, kind=AnswerKind.CHOICE if len(options) > 1 else question.kind)


def _called(child: AskedChild) -> str:
    return (child.name or str(child.id))[:_LONGEST_CALLED]


class RecipientAnswer(Struct, frozen=True):
    """The state of the question for one recipient. `row`: None if it has not answered."""

    state: AnswerState
    row: AnswerRow | None = None


class AnswerTotals(Struct, frozen=True):
    """The numbers of recipients by state. `options`: key → answers that count. `closed_at`: Unix ms, 0 if open.
    `waiting`: key → how many wait for a place, of the options that have places. `sum`: of the numbers that count, in
    hundredths; None for other kinds. `counted`: how many answers count.
    `withheld`: `options` is empty, because an anonymous question is not closed yet, or has too few answers.
    `conflicts`: how many children have guardians that differ.
    """

    states: Mapping[AnswerState, int]
    options: Mapping[str, int]
    closed_at: int = 0
    waiting: Mapping[str, int] = {}
    sum: int | None = None
    counted: int = 0
    withheld: bool = False
    conflicts: int = 0


class Pressed(Struct, frozen=True):
    """The content of a button's token: an option of a question, for one entry of a parcel."""

    shard: int
    code: str
    number: int
    parcel: int
    contact: int
    option: int = 0
    is_anonymous: bool = False


class LinkPlace(Struct, frozen=True):
    """The content of a link's token: one entry of a parcel. `channel`: two bytes of the hash of its name."""

    shard: int
    code: str
    number: int
    channel: int
    parcel: int
    contact: int

    @classmethod
    def of(cls, key: HistoryKey, channel: str, number: int, parcel: int, contact: int) -> "LinkPlace":
        return cls(key.shard, code_of(key), number, channel_code(channel), parcel, contact)


class GivenAnswer(Struct, frozen=True):
    """An answer and what it led to. `result`: answered, changed, late; or same, closed, final, many: the answer that
    `row` has stays.
    """

    result: str
    key: HistoryKey
    recipient: Id
    question: Question
    row: AnswerRow


_decode_question = msgspec.json.Decoder(Question).decode
_decode_row = msgspec.json.Decoder(AnswerRow, strict=False).decode


def load_question(text: str | None) -> Question | None:
    return _decode_question(text) if text else None


def question_of(fields: Mapping[str, str | None]) -> Question | None:
    """Return the question of a history. `fields`: among them `answers_until`, which changes if it is opened again."""
    question = load_question(fields["answer"])
    return replace(question, until=int(fields["answers_until"] or 0)) if question else None


def load_row(text: str | None) -> AnswerRow | None:
    return _decode_row(text) if text else None


def row_field(number: int) -> str:
    """Return the field of the history in which the answer of its recipient with this number stands."""
    return f"answer:{number}"


def member_field(number: int) -> str:
    """Return the field of the history that names a member of a group chat, who is no recipient itself."""
    return f"answers_member:{number}"


def reached_field(number: int) -> str:
    """Return the field of the history that counts the people who were reached about the child with this number."""
    return f"answers_reached:{number}"


_COUNTED = ("answered", "late", "unreached", "conflict")


def counter_fields(question: Question | None) -> list[str]:
    if question is None:
        return []
    options = [f"answers:option:{one.key}" for one in question.options]
    waiting = [f"answers:waiting:{one.key}" for one in question.options if one.places]
    numbers = ["answers:sum"] if question.kind is AnswerKind.NUMBER else []
    return [*(f"answers:{name}" for name in _COUNTED), *options, *waiting, *numbers]


def channel_code(channel: str) -> int:
    return int.from_bytes(blake2b(channel.encode(), digest_size=2).digest(), "big")


def answer_state(row: AnswerRow | None, *, is_reached: bool, is_over: bool, is_closed: bool) -> AnswerState:
    """Return what became of the question for one recipient. `is_over`: of the sending."""
    if row is not None:
        return row.state
    if is_reached:
        return AnswerState.SILENT if is_closed else AnswerState.OPEN
    return AnswerState.UNREACHABLE if is_over else AnswerState.NOT_ASKED


def totals(
    question: Question,
    counters: Mapping[str, str | None],
    *,
    recipients: int,
    reached: int,
    is_over: bool,
    closed_at: int,
) -> AnswerTotals:
    """Return the totals. They add up to the recipients, as their states do. `counters`: `counter_fields`."""
    answered, late, unreached, conflicts = (int(counters.get(f"answers:{name}") or 0) for name in _COUNTED)
    waiting = reached - (answered + late - unreached)
    rest = recipients - answered - late - waiting
    states = {
        AnswerState.NOT_ASKED: 0 if is_over else rest,
        AnswerState.OPEN: 0 if closed_at else waiting,
        AnswerState.ANSWERED: answered,
        AnswerState.SILENT: waiting if closed_at else 0,
        AnswerState.UNREACHABLE: rest if is_over else 0,
        AnswerState.LATE: late,
    }
    options = {one.key: int(counters.get(f"answers:option:{one.key}") or 0) for one in question.options}
    line = {one.key: int(counters.get(f"answers:waiting:{one.key}") or 0) for one in question.options if one.places}
    numbers = int(counters.get("answers:sum") or 0) if question.kind is AnswerKind.NUMBER else None
    counted = answered + (late if question.late is Late.COUNT else 0)
    is_withheld = question.is_anonymous and not (closed_at and answered >= FEWEST_ANONYMOUS)
    return AnswerTotals(
        states, {} if is_withheld else options, closed_at, line, numbers, counted, is_withheld, conflicts
    )
