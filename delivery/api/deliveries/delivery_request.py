"""The request and the response of sending one delivery."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from core.model import delivery
from core.model.clock import write_optional_time, write_time
from core.model.contacts import recipient_notation
from core.model.history_key import HistoryKey
from core.model.question import AnswerKind
from core.model.states import DeliveryState
from delivery.api.deliveries.content import UPLOAD_ID, ContentRequest
from delivery.http.fields.durations import DURATION
from delivery.http.fields.types import (
    DELIVERY_ID,
    PRINTABLE,
    Contacts,
    Encoding,
    IdField,
    Label,
    Name,
    Number,
    RequestModel,
    ShortText,
    Time,
)

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


Values = Annotated[
    dict[
        Annotated[str, Meta(min_length=1, max_length=64)],
        Annotated[str, Meta(max_length=4096)] | Number | float | None,
    ],
    Meta(max_length=256, description="field → value, for `{{field}}` in the text"),
]


class RecipientRequest(RequestModel, frozen=True):
    """One person by `id`: with `contacts`, or without the field, and then the directory knows the contacts. Or all
    members of a `group` or `supergroup`. Or the rows of a `table`: the id of an uploaded CSV or .xlsx file, with the
    `sheet` if several have values, and the `encoding` of CSV if it is not found out.
    """

    id: IdField | UnsetType = UNSET
    name: Label | UnsetType | None = UNSET
    contacts: Contacts | UnsetType = UNSET
    values: Values | UnsetType = UNSET
    group: Name | UnsetType = UNSET
    supergroup: Name | UnsetType = UNSET
    table: Annotated[str, Meta(pattern=UPLOAD_ID, description="the id of an uploaded file")] | UnsetType = UNSET
    sheet: Annotated[str, Meta(min_length=1, max_length=64)] | UnsetType = UNSET
    encoding: Encoding | UnsetType = UNSET


Text = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=4096,
        pattern=r"\S",
        description="1 to 4096 characters, not only white space; delivered unchanged",
        extra={"short": "TEXT_EMPTY", "long": "TEXT_TOO_LONG", "pattern": "TEXT_EMPTY"},
    ),
]
RecipientLine = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=8192,
        description="a recipient as on the command line: 7, 7=telegram:100001,sms:+79991112233, group:ИВТ-21",
        extra_json_schema={"pattern": recipient_notation.PATTERN},
    ),
]
Recipients = Annotated[
    list[RecipientRequest | RecipientLine],
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


OptionKey = Annotated[
    str, Meta(min_length=1, max_length=64, pattern=PRINTABLE, extra={"pattern": "NOT_PRINTABLE", "long": "TOO_LONG"})
]
OptionText = Annotated[
    str,
    Meta(min_length=1, max_length=100, pattern=r"\S", extra={"long": "OPTION_TOO_LONG", "pattern": "OPTION_MALFORMED"}),
]


class OptionRequest(RequestModel, frozen=True):
    """An option: `key` is counted, `text` is on the button."""

    key: OptionKey
    text: OptionText


class QuestionRequest(RequestModel, frozen=True):
    """What the delivery asks. `confirm`: one button, "I have read it"; `choice`: a button for each option. `until`:
    when it closes. `change`: until then the last answer counts. `late`: whether answers after it count.
    """

    kind: AnswerKind
    options: Annotated[list[OptionRequest], Meta(max_length=50, extra={"long": "TOO_MANY_OPTIONS"})] | UnsetType = UNSET
    until: Time | UnsetType | None = UNSET
    change: Annotated[bool, Meta(extra_json_schema={"default": True})] | UnsetType = UNSET
    late: Annotated[Literal["keep", "count"], Meta(extra_json_schema={"default": "keep"})] | UnsetType = UNSET


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
    answer: QuestionRequest | UnsetType = UNSET


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
    """A delivery was accepted. `moved_from`: the requested time, if `deliver_at` differs from it."""

    id: str
    history_key: str
    state: DeliveryState
    deliver_at: str
    moved_from: str | None
    recipients: int

    @classmethod
    def of(cls, accepted: delivery.Accepted) -> "DeliveryAccepted":
        key, moved_from = accepted.key, write_optional_time(accepted.moved_from)
        return cls(key.id, str(key), accepted.state, write_time(accepted.deliver_at), moved_from, accepted.recipients)
