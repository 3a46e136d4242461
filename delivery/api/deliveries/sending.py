"""Sends one delivery: the request, the response, and a history key that is reserved for a later one."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, ValidationError, convert
from msgspec.structs import replace

from core.model import delivery
from core.model.clock import write_optional_time, write_time
from core.model.field_types import NOT_BLANK, IdField, Label, Name, ShortText
from core.model.history_key import HistoryKey
from core.model.people import Locale, canonical_id
from core.model.states import DeliveryState
from core.model.text.characters import nfc, refusal
from core.orders import Addressee, Order
from core.orders.order import RECIPIENT_PATTERN, read_recipient
from delivery.api.deliveries.chat_members import with_names_of_uninformed
from delivery.api.deliveries.content import ContentRequest
from delivery.api.deliveries.questions import ChannelNames, QuestionRequest
from delivery.http.context import Request, Response
from delivery.http.decoding import field_errors
from delivery.http.fields import DELIVERY_ID, DURATION, RequestModel, Time, read_duration, read_time
from delivery.http.idempotency import REPLAYED_HEADERS
from delivery.http.rate_limit import quota_headers
from delivery.http.responses.problems import (
    FieldError,
    InvalidFields,
    invalid_field,
)
from delivery.http.route import NoParameters, People, Repeats, Route, Routes

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


async def reserve(request: Request[HistoryKeyRequest, NoParameters]) -> Response:
    check_sender(request.body.sender)
    request.check_own(request.body.sender.id, "sender.id")
    key = await request.services.core.deliveries.reserve(
        request.tenant, canonical_id(request.body.sender.id), request.body.lane or ""
    )
    return Response(HistoryKeyResponse.of(key), 201)


def check_sender(sender: SenderRequest) -> None:
    """Check the id of a sender. Raises `InvalidFields` NOT_PRINTABLE: the id becomes a part of the key."""
    if isinstance(sender.id, str) and (refused := refusal(sender.id)):
        raise invalid_field("sender.id", "NOT_PRINTABLE", refused)


async def enqueue(request: Request[DeliveryRequest, NoParameters]) -> Response:
    order = request.body.order(request.tenant, request.options.max_days_ahead)
    accepted = await request.services.core.sending.send(order, request.caller, request.repeat)
    request.context.metrics.accepted.inc()
    if accepted.uninformed:
        accepted = replace(accepted, uninformed=await with_names_of_uninformed(request, accepted.uninformed))
    body = DeliveryAccepted.of(accepted)
    replayed = REPLAYED_HEADERS if accepted.repeated else {}
    quota = quota_headers(accepted.quota) if accepted.quota else {}
    return Response(body, 202, {"Location": f"/v1/deliveries/{body.id}", **replayed, **quota})


ACCEPTED_HEADERS = {
    "Location": "The address of the delivery.",
    "RateLimit": "What is left of the sender's quota, if it has one.",
    "RateLimit-Policy": "The sender's quota.",
}


ROUTES: Routes = (
    Route("POST", "/v1/history-keys", "Reserve a history key for a later delivery", "send", reserve, 201,
          HistoryKeyResponse, body=HistoryKeyRequest, repeats=Repeats.STORED, people=People.OWN),
    Route("POST", "/v1/deliveries", "Send one text to many recipients, now or at a set time", "send", enqueue, 202,
          DeliveryAccepted, body=DeliveryRequest, repeats=Repeats.OWN, headers=ACCEPTED_HEADERS, people=People.OWN),
)  # fmt: skip
