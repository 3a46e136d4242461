"""The question of a delivery, in requests and responses, and its answers, as responses show them."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from core.answers.values import answer_text
from core.model.clock import from_ms, to_ms, write_optional_time, write_time
from core.model.field_types import NOT_BLANK, PRINTABLE, ShortText
from core.model.history import Reminders
from core.model.hours import QuietHours
from core.model.question import (
    AnswerKind,
    AnswerRow,
    AnswerState,
    AnswerTotals,
    AnswerVisibility,
    Escalate,
    Late,
    Need,
    Option,
    Question,
    RecipientAnswer,
    Remind,
    Revision,
    Voice,
)
from core.model.text.characters import nfc
from core.orders.question_rules import MOST_REMINDERS, options_of
from core.sentence import language_of, language_of_text
from delivery.http.fields import DURATION, RequestModel, Time, read_duration, read_time, write_duration
from delivery.http.responses.problems import invalid_field

ChannelNames = Annotated[list[ShortText], Meta(min_length=1, max_length=32, description="default: every known channel")]
OptionKey = Annotated[
    str, Meta(min_length=1, max_length=64, pattern=PRINTABLE, extra={"pattern": "NOT_PRINTABLE", "long": "TOO_LONG"})
]
OptionText = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=100,
        pattern=NOT_BLANK,
        extra={"long": "OPTION_TOO_LONG", "pattern": "OPTION_MALFORMED"},
    ),
]


class OptionRequest(RequestModel, frozen=True):
    """An option: `key` is counted, `text` is on the button. `places`: how many people may have it; the others wait in a
    line, and who withdraws frees a place for the first of them.
    """

    key: OptionKey
    text: OptionText
    places: Annotated[int, Meta(ge=1, le=10_000)] | UnsetType | None = UNSET


AskAgainWait = Annotated[
    str,
    Meta(
        max_length=32,
        description="ISO 8601 duration, PT1M to P30D",
        extra_json_schema={"pattern": f"^{DURATION}$"},
    ),
]


class RemindRequest(RequestModel, frozen=True):
    """Reminders for recipients without an answer: `after` the sending, then `every` so often (default: `after`), `most`
    times.
    """

    after: AskAgainWait
    every: AskAgainWait | UnsetType = UNSET
    most: Annotated[int, Meta(ge=1, le=MOST_REMINDERS, extra_json_schema={"default": 1})] | UnsetType = UNSET

    def remind(self) -> Remind:
        after = _read_duration(self.after, "answer.remind.after")
        every = _read_duration(self.every, "answer.remind.every") if self.every else after
        return Remind(after, every, self.most or 1)


class EscalateRequest(RequestModel, frozen=True):
    """Further channels in which recipients without an answer are asked, `after` the sending."""

    after: AskAgainWait
    channels: ChannelNames

    def escalate(self) -> Escalate:
        return Escalate(_read_duration(self.after, "answer.escalate.after"), list(dict.fromkeys(self.channels)))


class QuestionRequest(RequestModel, frozen=True):
    """The question of a delivery. `confirm`: one button, "I have read it"; `choice`: a button for each option; `text`,
    `number`, `date`: people write it; `file`: they send it on the page of their link. `until`: when it closes.
    `change`: until then the last answer counts. `late`: whether answers after it count. `remind`, `escalate`: how those
    who do not answer are asked again. `need`: people are asked wave by wave, in their order, until this number chose
    the first option; `wave`: the time between two waves (default: PT1H). `visible`: who sees a person's answer: named,
    hidden (an administrator with a reason), anonymous (nobody). `consent`: of a choice with two options that goes to
    guardians: the second one refuses, and counts if two guardians of a child differ.
    """

    kind: AnswerKind
    options: Annotated[list[OptionRequest], Meta(max_length=50, extra={"long": "TOO_MANY_OPTIONS"})] | UnsetType = UNSET
    until: Time | UnsetType | None = UNSET
    change: Annotated[bool, Meta(extra_json_schema={"default": True})] | UnsetType = UNSET
    late: Annotated[Literal["keep", "count"], Meta(extra_json_schema={"default": "keep"})] | UnsetType = UNSET
    remind: RemindRequest | UnsetType | None = UNSET
    escalate: EscalateRequest | UnsetType | None = UNSET
    need: Annotated[int, Meta(ge=1, le=1000)] | UnsetType | None = UNSET
    wave: AskAgainWait | UnsetType = UNSET
    visible: (
        Annotated[Literal["named", "hidden", "anonymous"], Meta(extra_json_schema={"default": "named"})] | UnsetType
    ) = UNSET
    consent: Annotated[bool, Meta(extra_json_schema={"default": False})] | UnsetType = UNSET

    def question(self, text: str, max_days_ahead: int) -> Question:
        locale = language_of(language_of_text(text))
        until = read_time(self.until, "answer.until", max_days_ahead) if self.until else None
        options = [Option(nfc(one.key), one.text, one.places or 0) for one in self.options or ()]
        return Question(
            kind=self.kind,
            options=options_of(self.kind, options, locale),
            locale=locale,
            until=to_ms(until) if until else 0,
            change=self.change is not False and self.visible != "anonymous",
            visible=AnswerVisibility(self.visible or AnswerVisibility.NAMED),
            late=Late(self.late or Late.KEEP),
            consent=self.consent is True,
            remind=self.remind.remind() if self.remind else UNSET,
            escalate=self.escalate.escalate() if self.escalate else UNSET,
            need=Need(self.need, _read_duration(self.wave or "PT1H", "answer.wave")) if self.need else UNSET,
        )


def _read_duration(text: str, path: str) -> int:
    """Return milliseconds."""
    duration = read_duration(text)
    if duration is None:
        raise invalid_field(path, "WAIT_MALFORMED", "A wait is an ISO 8601 duration like PT12H or P1D.")
    return duration // timedelta(milliseconds=1)


class RemindView(Struct):
    """Times of reminders to people without an answer: `after` the sending, then `every` so often, `most` times."""

    after: str
    every: str
    most: int


class EscalateView(Struct):
    """Recipients who have not answered `after` the sending are asked in these channels as well."""

    after: str
    channels: Sequence[str]


class QuestionView(Struct):
    """The question of a delivery. `locale`: the language of replies to a press. `remind`, `escalate`, `need` with
    its `wave`: absent without them. `consent`: true if a refusal of one guardian counts; otherwise absent.
    """

    kind: AnswerKind
    options: list[Option]
    until: str | None
    change: bool
    late: Late
    locale: str
    remind: RemindView | UnsetType = UNSET
    escalate: EscalateView | UnsetType = UNSET
    need: int | UnsetType = UNSET
    wave: str | UnsetType = UNSET
    visible: AnswerVisibility = AnswerVisibility.NAMED
    consent: bool | UnsetType = UNSET

    @classmethod
    def of(cls, question: Question) -> "QuestionView":
        until = write_time(from_ms(question.until)) if question.until else None
        remind, escalate = question.remind, question.escalate
        view = cls(question.kind, list(question.options), until, question.change, question.late, question.locale)
        if remind:
            view.remind = RemindView(_duration(remind.after), _duration(remind.every), remind.most)
        if escalate:
            view.escalate = EscalateView(_duration(escalate.after), escalate.channels)
        view.visible, view.consent = question.visible, question.consent or UNSET
        if question.need:
            view.need, view.wave = question.need.people, _duration(question.need.every)
        return view


def _duration(ms: int) -> str:
    return write_duration(timedelta(milliseconds=ms))


class WaveView(Struct):
    """Reminders that were sent in one step. `people`: to how many. `by`: who wanted them, null if they were planned."""

    at: str
    people: int
    by: str | None


class RemindersView(Struct):
    """The reminders of a question. `next_at`: when the next one is planned, at the earliest: of a time in quiet hours
    their end, after which it may be a few minutes.
    """

    sent: list[WaveView]
    next_at: str | None

    @classmethod
    def of(cls, reminders: Reminders, quiet_hours: QuietHours | None) -> "RemindersView":
        planned = reminders.next_at
        moved = quiet_hours.moved(planned, timedelta()) if quiet_hours and planned else None
        waves = [WaveView(write_time(one.at), one.people, one.by or None) for one in reminders.sent]
        return cls(waves, write_optional_time(moved or planned))


class AnswerCounts(Struct):
    """The numbers of recipients by state of the question. `options`: key → answers that count. `waiting`: key → how
    many wait for a place, of options that have places; absent if none has. `sum`, `mean`: of the numbers that count;
    absent if the question asks for none. `withheld`: true while the options of an anonymous question are not shown.
    `conflicts`: how many children have guardians that differ; absent if none has.
    """

    not_asked: int
    open: int
    answered: int
    silent: int
    unreachable: int
    late: int
    options: dict[str, int]
    closed_at: str | None
    waiting: dict[str, int] | UnsetType = UNSET
    sum: float | UnsetType = UNSET
    mean: float | UnsetType = UNSET
    withheld: bool | UnsetType = UNSET
    conflicts: int | UnsetType = UNSET

    @classmethod
    def of(cls, totals: AnswerTotals) -> "AnswerCounts":
        closed_at = write_time(from_ms(totals.closed_at)) if totals.closed_at else None
        not_asked, is_open, answered, silent, unreachable, late = (totals.states[state] for state in _STATES)
        states = not_asked, is_open, answered, silent, unreachable, late
        view = cls(*states, dict(totals.options), closed_at, dict(totals.waiting) or UNSET)
        view.withheld, view.conflicts = totals.withheld or UNSET, totals.conflicts or UNSET
        if totals.sum is not None:
            view.sum = totals.sum / 100
            view.mean = round(view.sum / totals.counted, 2) if totals.counted else UNSET
        return view


_STATES = (
    *(AnswerState.NOT_ASKED, AnswerState.OPEN, AnswerState.ANSWERED),
    *(AnswerState.SILENT, AnswerState.UNREACHABLE, AnswerState.LATE),
)


class RevisionView(Struct):
    """An answer that a later one has replaced."""

    value: str
    at: str
    by: str
    channel: str | None
    text: str | UnsetType = UNSET

    @classmethod
    def of(cls, revision: Revision) -> "RevisionView":
        at, channel = write_time(from_ms(revision.at)), revision.channel or None
        return cls(revision.value, at, revision.by, channel, revision.text or UNSET)


class VoiceView(Struct):
    """The answer of one guardian for a child. `who`: its id, as text; `name`: null without one, or if
    it was deleted. `text`: of the option.
    """

    who: str
    name: str | None
    value: str
    text: str
    at: str

    @classmethod
    def of(cls, voice: Voice, question: Question | None) -> "VoiceView":
        option = question.option(voice.value) if question else None
        return cls(
            voice.who, voice.name, voice.value, option.text if option else voice.value, write_time(from_ms(voice.at))
        )


class AnswerView(Struct):
    """The state of the question for one recipient. `value`: the key of the option, a number, a date, or the id of a
    file; null for a text. `text`: the text of the option, the words, the name of the file. `by`: press,
    number, text, mail, link, or on_behalf, then `who` has entered it. `note`: what the person has added in its own
    words. `revisions`: earlier answers, the first one first. `waiting`: true while all places are taken; otherwise
    absent. `freed`: true if the place went to the next, because the person is blocked, wants no messages or was
    deleted; otherwise absent. `voices`: of a child, what each of its guardians has said last; `conflict`: true if they
    differ; absent for others.
    """

    state: AnswerState
    value: str | None = None
    text: str | None = None
    at: str | None = None
    by: str | None = None
    who: str | UnsetType = UNSET
    note: str | UnsetType = UNSET
    channel: str | None = None
    revisions: list[RevisionView] = []
    waiting: bool | UnsetType = UNSET
    freed: bool | UnsetType = UNSET
    voices: list[VoiceView] | UnsetType = UNSET
    conflict: bool | UnsetType = UNSET

    @classmethod
    def of(cls, answer: RecipientAnswer, question: Question) -> "AnswerView":
        return cls(answer.state) if answer.row is None else cls.of_row(answer.row, question)

    @classmethod
    def of_row(cls, row: AnswerRow, question: Question | None) -> "AnswerView":
        revisions = [RevisionView.of(one) for one in row.revisions]
        has_note = question.has_options if question else bool(row.value)
        text = answer_text(question, row) if question or not row.value else None
        at, note = write_time(row.answered_at) if row.at else None, (has_note and row.text) or UNSET
        entered, waiting = (row.who or UNSET, note), row.waiting > 0 or UNSET
        by, channel = row.by or None, row.channel or None
        voices = [VoiceView.of(one, question) for one in row.voices] or UNSET
        known = row.value or None, text or None, at, by, *entered, channel, revisions, waiting, row.freed or UNSET
        return cls(row.state, *known, voices, row.conflict or UNSET)
