"""The request and the response of sending one delivery."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, ValidationError, convert

from core.model import delivery
from core.model.clock import to_ms, write_optional_time, write_time
from core.model.field_types import NOT_BLANK, PRINTABLE, IdField, Label, Name, ShortText
from core.model.history_key import HistoryKey
from core.model.people import Locale, canonical_id
from core.model.question import AnswerKind, AnswerVisibility, Escalate, Late, Need, Option, Question, Remind
from core.model.states import DeliveryState
from core.model.text.characters import nfc
from core.orders import Addressee, Order
from core.orders.order import RECIPIENT_PATTERN, read_recipient
from core.orders.question_rules import MOST_REMINDERS, locale_of, options_of
from delivery.api.deliveries.content import ContentRequest
from delivery.http.fields import DELIVERY_ID, DURATION, RequestModel, Time, read_duration, read_time
from delivery.http.input.validation import field_errors
from delivery.http.responses.problems import FieldError, InvalidFields, invalid_field

NewHistoryKey = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=512,
        pattern=DELIVERY_ID,
        description="a history key of this sender",
        extra={"pattern": "HISTORY_KEY_MALFORMED"},
    ),
]


class SenderRequest(RequestModel, frozen=True):
    """The sender."""

    id: IdField
    name: Label | UnsetType | None = UNSET
    role: Label | UnsetType | None = UNSET


Text = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=4096,
        pattern=NOT_BLANK,
        description="1 to 4096 characters, not only white space; delivered unchanged",
        extra={"short": "TEXT_EMPTY", "long": "TEXT_TOO_LONG", "pattern": "TEXT_EMPTY"},
    ),
]
Texts = Annotated[
    dict[Locale, Text],
    Meta(min_length=1, max_length=2, description="language → the text for people of this language, in place of `text`"),
]
RecipientLine = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=8192,
        description="a recipient as on the command line: 7, 7=telegram:100001,sms:+79991112233, group:ИВТ-21",
        extra_json_schema={"pattern": RECIPIENT_PATTERN},
    ),
]
Recipients = Annotated[
    list[Addressee | RecipientLine],
    Meta(min_length=1, max_length=10_000, extra={"short": "NO_RECIPIENTS", "long": "TOO_MANY_RECIPIENTS"}),
]
ChannelNames = Annotated[list[ShortText], Meta(min_length=1, max_length=32, description="default: every known channel")]
Strategy = Annotated[
    Literal["all", "first"],
    Meta(
        description="all: every channel. first: the channels in their order; the next one after a failure or the wait",
        extra_json_schema={"default": "all"},
    ),
]
Wait = Annotated[
    str,
    Meta(
        max_length=32,
        description="strategy first: ISO 8601 duration, PT1S to P30D, after which the next channel is tried unless a "
        "delivery report came; without it sent is enough",
        extra_json_schema={"pattern": f"^({DURATION})?$"},
    ),
]
Priority = Annotated[
    int, Meta(ge=0, le=9, description="0 is first among the waiting tasks of a lane", extra_json_schema={"default": 5})
]
Urgent = Annotated[
    bool,
    Meta(description="send also in quiet hours; needs the scope urgent", extra_json_schema={"default": False}),
]
Far = Annotated[
    bool, Meta(description="deliver_at may be more than a year ahead", extra_json_schema={"default": False})
]

Personal = Annotated[
    bool,
    Meta(
        description="`{{field}}` in the text and the buttons stands for a value of each recipient; default: whether a"
        " recipient has `values`",
    ),
]


Replies = Annotated[
    Name,
    Meta(
        description="where replies go: sender, off, or the id of a group whose members read them together (an office);"
        " default: sender if a signed-in person sends, otherwise replies are not looked at",
    ),
]
AudienceName = Literal["students", "guardians", "both"]
Audience = Annotated[
    AudienceName,
    Meta(
        description="who gets it: the recipients themselves, their guardians in the directory, or both",
        extra_json_schema={"default": "students"},
    ),
]
To = Annotated[AudienceName, Meta(description="another name of `audience`; only one of them is given")]
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
        locale = locale_of(text)
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


class DeliveryRequest(RequestModel, frozen=True):
    """One text for many recipients. Without `text` only if `content` has attachments."""

    sender: SenderRequest
    recipients: Recipients
    text: Text | UnsetType = UNSET
    content: ContentRequest | UnsetType = UNSET
    history_key: NewHistoryKey | UnsetType | None = UNSET
    origin: Annotated[ShortText, Meta(description="the source", extra_json_schema={"default": "api"})] | UnsetType = (
        UNSET
    )
    deliver_at: Time | UnsetType | None = UNSET
    expires_at: Time | UnsetType | None = UNSET
    channels: ChannelNames | UnsetType = UNSET
    strategy: Strategy | UnsetType = UNSET
    wait: Wait | UnsetType | None = UNSET
    lane: Name | UnsetType | None = UNSET
    priority: Priority | UnsetType = UNSET
    kind: Annotated[ShortText, Meta(extra_json_schema={"default": "message"})] | UnsetType = UNSET
    tags: Annotated[list[ShortText], Meta(max_length=16)] | UnsetType = UNSET
    urgent: Urgent | UnsetType = UNSET
    far: Far | UnsetType = UNSET
    personal: Personal | UnsetType = UNSET
    texts: Texts | UnsetType = UNSET
    answer: QuestionRequest | UnsetType = UNSET
    replies: Replies | UnsetType = UNSET
    audience: Audience | UnsetType = UNSET
    to: To | UnsetType = UNSET

    def order(self, tenant: str, max_days_ahead: int) -> Order:
        """Return the order, whose rules core checks. Raises `InvalidFields` for what cannot be read."""
        sender, content = self.sender, self.content.content() if self.content else None
        if not self.text and (content is None or self.texts):
            raise invalid_field("text", "REQUIRED", "text is missing.")
        new = delivery.NewDelivery(
            tenant=tenant,
            sender=delivery.Sender(canonical_id(sender.id), sender.name or None, sender.role or None),
            text=self.text or "",
            texts={str(language): text for language, text in (self.texts or {}).items()},
            recipients=(),
            channels=self.channels or (),
            origin=self.origin or delivery.DEFAULT_ORIGIN,
            deliver_at=read_time(self.deliver_at, "deliver_at", max_days_ahead) if self.deliver_at else None,
            expires_at=read_time(self.expires_at, "expires_at", max_days_ahead) if self.expires_at else None,
            history_key=HistoryKey.parse(self.history_key) if self.history_key else None,
            lane=nfc(self.lane) if self.lane else None,
            priority=delivery.DEFAULT_PRIORITY if isinstance(self.priority, UnsetType) else self.priority,
            kind=self.kind or delivery.DEFAULT_KIND,
            tags=tuple(dict.fromkeys(map(nfc, self.tags))) if self.tags else (),
            strategy=delivery.Strategy(self.strategy or delivery.Strategy.ALL),
            wait=_read_wait(self.wait) if self.wait else None,
            content=content,
            question=self.answer.question(self.text or "", max_days_ahead) if self.answer else None,
            replies=nfc(self.replies) if self.replies else "",
        )
        recipients = [_read_line(one, n) if isinstance(one, str) else one for n, one in enumerate(self.recipients)]
        personal = None if isinstance(self.personal, UnsetType) else self.personal
        if self.audience and self.to:
            raise invalid_field("to", "ONE_FIELD_WANTED", "audience and to are two names of one field: give one.")
        audience = delivery.Audience(self.audience or self.to or delivery.Audience.STUDENTS)
        return Order(new, recipients, self.urgent is True, self.far is True, personal, audience)


def _read_wait(text: str) -> timedelta:
    wait = read_duration(text)
    if wait is None:
        raise invalid_field("wait", "WAIT_MALFORMED", "A wait is an ISO 8601 duration like PT2M or P1D.")
    return wait


def _read_duration(text: str, path: str) -> int:
    """Return milliseconds."""
    duration = read_duration(text)
    if duration is None:
        raise invalid_field(path, "WAIT_MALFORMED", "A wait is an ISO 8601 duration like PT12H or P1D.")
    return duration // timedelta(milliseconds=1)


def _read_line(line: str, number: int) -> Addressee:
    """Return a recipient that is written as a line of text. Raises `InvalidFields` RECIPIENT_MALFORMED, and the errors
    of its parts.
    """
    path = f"recipients.{number}"
    try:
        value = read_recipient(line)
    except ValueError as error:
        raise invalid_field(path, "RECIPIENT_MALFORMED", str(error)) from None
    try:
        return convert(value, Addressee)
    except ValidationError:
        errors = field_errors(value, Addressee)
        raise InvalidFields([FieldError(f"{path}.{one.path}", one.code, one.message) for one in errors]) from None


class HistoryKeyRequest(RequestModel, frozen=True):
    """The sender, and the lane if the delivery will have one, that the history key is for."""

    sender: SenderRequest
    lane: Name | UnsetType = UNSET


class HistoryKeyResponse(Struct):
    """A history key for a later delivery."""

    history_key: str
    id: str

    @classmethod
    def of(cls, key: HistoryKey) -> "HistoryKeyResponse":
        return cls(str(key), key.id)


class DeliveryAccepted(Struct):
    """A delivery was accepted. `moved_from`: the requested time, if `deliver_at` differs from it. `uninformed`: of a
    delivery to guardians, those that get nothing. `unfilled`: the marks of the text and the buttons that are sent as
    they are written, because nothing says whether the text is `personal`. `empty_office`: replies go to an office
    without members, which only a program reads. Each is absent if there is none, and in a repeat.
    """

    id: str
    history_key: str
    state: DeliveryState
    deliver_at: str
    moved_from: str | None
    recipients: int
    uninformed: Sequence[delivery.Uninformed] | UnsetType = UNSET
    unfilled: Sequence[str] | UnsetType = UNSET
    empty_office: bool | UnsetType = UNSET

    @classmethod
    def of(cls, accepted: delivery.Accepted) -> "DeliveryAccepted":
        key, moved_from = accepted.key, write_optional_time(accepted.moved_from)
        at = write_time(accepted.deliver_at)
        named = accepted.uninformed or UNSET, accepted.unfilled or UNSET, accepted.empty_office or UNSET
        return cls(key.id, str(key), accepted.state, at, moved_from, accepted.recipients, *named)
