"""The types of all bodies and queries. Decoding, validation and the OpenAPI document use them.

An optional field is `… | UnsetType`, so null differs from a field that was not sent. `extra` of a bound names the code
of its error, where the general code would say too little.
"""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from core.deliveries.histories.recipient_search import RecipientFilter
from core.model.contacts import recipient_notation
from core.model.people import EMAIL
from core.model.states import DeliveryState, Reason, Status, Verdict
from core.model.text import unreserved
from delivery.schemas.fields import durations
from delivery.schemas.fields.content import ContentRequest

INT64 = 2**63

# Characters that are not printable; `str.isprintable` refuses some rare ones more. None above U+FFFF: generators of
# requests expand each range into its characters, and a million of them takes seconds for each name.
_NOT_PRINTED = (
    r"\u0000-\u001f\u007f-\u00a0\u00ad\u1680\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000"
    r"\ue000-\uf8ff\ufeff\ufff0-\ufffb"
)
PRINTABLE = rf"^[^{_NOT_PRINTED}]*$"
_NOT_PRINTABLE = {"pattern": "NOT_PRINTABLE"}
_DATE = (
    r"(?!1970-01-0[12])(19[7-9][0-9]|20[0-9]{2})-"
    r"((0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])|(0[469]|11)-(29|30)|(0[13578]|1[02])-(29|3[01])|02-29)"
)
"""From the second of January 1970, with which every zone is behind the epoch, to a year that is far enough."""
_TIME_OF_DAY = r"([01][0-9]|2[0-3]):[0-5][0-9](:([0-5][0-9]|60)(\.[0-9]+)?)?"
_ZONE = r"([Zz]|[+-]([01][0-9]|2[0-3]):?[0-5][0-9])"
DELIVERY_ID = r"^(history:\{[0-9]{1,5}\}:.+:[0-9]{19}|[0-9]{1,5}\..+\.[0-9]{19})$"
"""A history key, or the id of a delivery."""

Number = Annotated[int, Meta(ge=-INT64, le=INT64 - 1, description="64 bits, signed")]
Name = Annotated[
    str,
    Meta(min_length=1, max_length=128, pattern=PRINTABLE, description="printable characters", extra=_NOT_PRINTABLE),
]
Id = Number | Name
Label = Annotated[str, Meta(max_length=256)]
ShortText = Annotated[str, Meta(min_length=1, max_length=64, pattern=PRINTABLE, extra=_NOT_PRINTABLE)]
Time = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=64,
        description="RFC 3339, with a zone",
        extra_json_schema={"pattern": rf"^{_DATE}[Tt ]{_TIME_OF_DAY}{_ZONE}$"},
    ),
]
Address = Annotated[
    str, Meta(min_length=1, max_length=256, description="printable characters; invisible marks round it are removed")
]
Email = Annotated[str, Meta(min_length=1, max_length=254, extra_json_schema={"pattern": f"^(?=[^@]{{1,64}}@){EMAIL}$"})]


def _cursor(pattern: str) -> Meta:
    return Meta(min_length=1, max_length=4096, pattern=pattern, extra={"pattern": "CURSOR_MALFORMED"})


Cursor = Annotated[str, _cursor("^([A-Za-z0-9_.-]|~([2-689A-F][0-9A-F]|7[0-9A-E]))+$")]
Position = Annotated[str, _cursor("^[0-9]{1,9}$")]
ListCursor = Annotated[str, _cursor(f"^[0-9]{{1,15}}-[0-9]{{1,5}}-{unreserved.ONE}+$")]
TaskCursor = Annotated[str, _cursor(f"^[0-9]{{1,5}}-[0-9]{{1,16}}-{unreserved.ONE}*$")]
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
HistoryKeyText = Annotated[
    str, Meta(min_length=1, max_length=512, description="a history key, or the id of a delivery")
]


Contacts = Annotated[
    dict[ShortText, Address | Annotated[list[Address], Meta(max_length=16)]],
    Meta(max_length=32, description="channel → address or addresses"),
]


class RequestModel(Struct, forbid_unknown_fields=True, frozen=True):
    """Base of bodies and queries: unknown fields are refused."""


class Sender(RequestModel, frozen=True):
    """The sender."""

    id: Id
    name: Label | UnsetType | None = UNSET
    role: Label | UnsetType | None = UNSET


class Recipient(RequestModel, frozen=True):
    """One person by `id`: with `contacts`, or without the field, and then the directory knows the contacts. Or all
    members of a `group` or `supergroup`.
    """

    id: Id | UnsetType = UNSET
    name: Label | UnsetType | None = UNSET
    contacts: Contacts | UnsetType = UNSET
    group: Name | UnsetType = UNSET
    supergroup: Name | UnsetType = UNSET


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
    list[Recipient | RecipientLine],
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
        extra_json_schema={"pattern": f"^({durations.PATTERN})?$"},
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


class DeliveryRequest(RequestModel, frozen=True):
    """One text for many recipients. Without `text` only if `content` has attachments."""

    sender: Sender
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


class BulkLine(DeliveryRequest, frozen=True):
    """One line of a bulk request: a delivery with its Idempotency-Key."""

    idempotency_key: Annotated[str, Meta(min_length=1, max_length=255)] | UnsetType = UNSET


class HistoryKeyRequest(RequestModel, frozen=True):
    """The sender, and the lane if the delivery will have one, that the history key is for."""

    sender: Sender
    lane: Name | UnsetType = UNSET


class RescheduleRequest(RequestModel, frozen=True):
    """The new time."""

    deliver_at: Time
    urgent: Urgent | UnsetType = UNSET
    far: Far | UnsetType = UNSET


class RetryRequest(RequestModel, frozen=True):
    """The statuses of the outcomes to retry; default: both. `recipients`: default: all."""

    recipients: Annotated[list[Id], Meta(min_length=1, max_length=10_000)] | UnsetType = UNSET
    statuses: Annotated[list[Literal["failed", "unknown"]], Meta(min_length=1, max_length=2)] | UnsetType = UNSET
    urgent: Urgent | UnsetType = UNSET


class CancellationRequest(RequestModel, frozen=True):
    """Exactly one field: what the deliveries to cancel have in common."""

    sender: Id | UnsetType = UNSET
    user: Id | UnsetType = UNSET
    lane: Name | UnsetType = UNSET
    kind_prefix: ShortText | UnsetType = UNSET
    tag: ShortText | UnsetType = UNSET


Seconds = Annotated[float, Meta(ge=0, le=10, extra_json_schema={"default": 10})]


class TrackRequest(RequestModel, frozen=True):
    """The wait ends when `touch_count` channels have reported, or after `timeout` seconds."""

    history_key: HistoryKeyText
    touch_count: Annotated[int, Meta(ge=1, le=16, extra_json_schema={"default": 1})] | UnsetType = UNSET
    timeout: Seconds | UnsetType = UNSET


class HistoryQuery(RequestModel, frozen=True):
    """The page of recipients."""

    cursor: Position | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=10_000, extra_json_schema={"default": 100})] | UnsetType = UNSET


SentMessageName = Annotated[
    str,
    Meta(
        max_length=600,
        pattern="^[a-z0-9-]+:[^:]+:.+$",
        description="one message of the delivery: channel, address of the recipient and the provider's id, with colons",
    ),
]


class DeliveryQuery(RequestModel, frozen=True):
    """The filter and the page of a list of deliveries."""

    sender: Name | UnsetType = UNSET
    tag: ShortText | UnsetType = UNSET
    state: DeliveryState | UnsetType = UNSET
    verdict: Verdict | UnsetType = UNSET
    text: Annotated[Label, Meta(description="a part of the text")] | UnsetType = UNSET
    since: Time | UnsetType = UNSET
    until: Time | UnsetType = UNSET
    message: SentMessageName | UnsetType = UNSET
    cursor: ListCursor | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=1000, extra_json_schema={"default": 100})] | UnsetType = UNSET


class RecipientFilterQuery(RequestModel, frozen=True):
    """Which recipients. `status`, `reason` and `channel` are of one outcome; `q`: a part of the name or id; `why`: why
    a person was not reached, as the list says it.
    """

    status: Status | UnsetType = UNSET
    reason: Reason | UnsetType = UNSET
    channel: ShortText | UnsetType = UNSET
    q: Label | UnsetType = UNSET
    why: ShortText | UnsetType = UNSET
    reached: Literal["yes", "no"] | UnsetType = UNSET

    def wanted(self) -> RecipientFilter:
        reached = self.reached == "yes" if self.reached else None
        return RecipientFilter(
            self.status or None, self.reason or "", self.channel or "", self.q or "", self.why or "", reached
        )


class RecipientQuery(RecipientFilterQuery, frozen=True):
    """The filter and the page of a list of recipients."""

    cursor: Annotated[str, _cursor("^[nr][0-9]{1,9}$")] | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=1000, extra_json_schema={"default": 100})] | UnsetType = UNSET


class QuotaQuery(RequestModel, frozen=True):
    """The sender. `role`: of a sender that the directory does not know; default: as in its last delivery."""

    sender: Name
    role: Label | UnsetType = UNSET


class CancelQuery(RequestModel, frozen=True):
    """The recipients to cancel; default: all."""

    recipient: Annotated[list[Name], Meta(max_length=10_000)] | UnsetType = UNSET


class EventsQuery(RequestModel, frozen=True):
    """The version after which a stream resumes, for clients that cannot send Last-Event-ID."""

    after: Annotated[int, Meta(ge=0, le=INT64 - 1, extra_json_schema={"default": 0})] | UnsetType = UNSET
