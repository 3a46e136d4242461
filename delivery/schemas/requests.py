"""What may be asked: bodies and queries, typed once. Decoding, diagnosis and the OpenAPI document come from here.

A field that may be left out is `… | UnsetType`: what was decoded has just the fields that were sent (see `reading`).
`extra` of a bound names the code of its fault, where a general one would say too little.
"""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from core.model.states import DeliveryState

INT64 = 2**63

Number = Annotated[int, Meta(ge=-INT64, le=INT64 - 1, description="64 bits, signed")]
Name = Annotated[str, Meta(min_length=1, max_length=128, description="printable characters")]
Id = Number | Name
Label = Annotated[str, Meta(max_length=256)]
Word = Annotated[str, Meta(min_length=1, max_length=64)]
Time = Annotated[
    str,
    Meta(min_length=1, max_length=64, description="RFC 3339, with a zone", extra_json_schema={"format": "date-time"}),
]
Address = Annotated[str, Meta(min_length=1, max_length=256)]
Cursor = Annotated[str, Meta(min_length=1, max_length=512)]
KeyText = Annotated[str, Meta(min_length=1, max_length=512, description="a history key, or the id of a delivery")]


class Body(Struct, forbid_unknown_fields=True, frozen=True):
    """Anything that is asked."""


class Sender(Body, frozen=True):
    """Who sends."""

    id: Id
    name: Label | UnsetType | None = UNSET
    role: Label | UnsetType | None = UNSET


class Recipient(Body, frozen=True):
    """One person by `id`, with contacts or without; or all members of a `group` or `supergroup`."""

    id: Id | UnsetType = UNSET
    name: Label | UnsetType | None = UNSET
    contacts: (
        Annotated[
            dict[Word, Address | Annotated[list[Address], Meta(max_length=16)]],
            Meta(max_length=32, description="channel → address or addresses"),
        ]
        | UnsetType
    ) = UNSET
    group: Name | UnsetType = UNSET
    supergroup: Name | UnsetType = UNSET


Text = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=4096,
        description="1 to 4096 characters, not only white space; delivered letter for letter",
        extra={"short": "TEXT_EMPTY", "long": "TEXT_TOO_LONG"},
    ),
]
Recipients = Annotated[
    list[Recipient],
    Meta(min_length=1, max_length=10_000, extra={"short": "NO_RECIPIENTS", "long": "TOO_MANY_RECIPIENTS"}),
]
ChannelNames = Annotated[list[Word], Meta(min_length=1, max_length=32, description="default: every channel there is")]
Strategy = Annotated[Literal["all", "first"], Meta(extra_json_schema={"default": "all"})]
Priority = Annotated[
    int, Meta(ge=0, le=9, description="0 goes first within a lane's waiting work", extra_json_schema={"default": 5})
]


class Delivery(Body, frozen=True):
    """One text for many people."""

    sender: Sender
    text: Text
    recipients: Recipients
    history_key: KeyText | UnsetType | None = UNSET
    origin: Annotated[Word, Meta(description="the way in", extra_json_schema={"default": "api"})] | UnsetType = UNSET
    deliver_at: Time | UnsetType | None = UNSET
    expires_at: Time | UnsetType | None = UNSET
    channels: ChannelNames | UnsetType = UNSET
    strategy: Strategy | UnsetType = UNSET
    wait: Annotated[str, Meta(max_length=32, description="ISO 8601 duration")] | UnsetType | None = UNSET
    lane: Name | UnsetType | None = UNSET
    priority: Priority | UnsetType = UNSET
    kind: Annotated[Word, Meta(extra_json_schema={"default": "message"})] | UnsetType = UNSET
    tags: Annotated[list[Word], Meta(max_length=16)] | UnsetType = UNSET


class BulkLine(Delivery, frozen=True):
    """One line of a bulk: a delivery, and the Idempotency-Key it would have had as a header."""

    idempotency_key: Annotated[str, Meta(min_length=1, max_length=255)] | UnsetType = UNSET


class KeyRequest(Body, frozen=True):
    """Whose history key is wanted."""

    sender: Sender


class Rescheduling(Body, frozen=True):
    """The new time."""

    deliver_at: Time


class Retrying(Body, frozen=True):
    """Which outcomes are to be attempted anew."""

    statuses: Annotated[list[Literal["failed", "unknown"]], Meta(min_length=1, max_length=2)] | UnsetType = UNSET


class Cancellation(Body, frozen=True):
    """Exactly one of these: what the deliveries to cancel have in common."""

    sender: Id | UnsetType = UNSET
    user: Id | UnsetType = UNSET
    lane: Name | UnsetType = UNSET
    kind_prefix: Word | UnsetType = UNSET
    tag: Word | UnsetType = UNSET


Seconds = Annotated[float, Meta(ge=0, le=10, extra_json_schema={"default": 10})]


class Tracking(Body, frozen=True):
    """What to wait for: as many channels to report, or so many seconds to pass."""

    history_key: KeyText
    touch_count: Annotated[int, Meta(ge=1, le=16, extra_json_schema={"default": 1})] | UnsetType = UNSET
    timeout: Seconds | UnsetType = UNSET


class Page(Body, frozen=True):
    """Which recipients of a history."""

    cursor: Cursor | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=10_000, extra_json_schema={"default": 100})] | UnsetType = UNSET


class Listing(Body, frozen=True):
    """Which deliveries."""

    sender: Name | UnsetType = UNSET
    state: DeliveryState | UnsetType = UNSET
    since: Time | UnsetType = UNSET
    cursor: Cursor | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=1000, extra_json_schema={"default": 100})] | UnsetType = UNSET


class Chosen(Body, frozen=True):
    """Whose copies to cancel; none named: everybody's."""

    recipient: Annotated[list[Name], Meta(max_length=10_000)] | UnsetType = UNSET


class Following(Body, frozen=True):
    """Where a stream resumes, for clients that can not send Last-Event-ID."""

    after: Annotated[int, Meta(ge=0, le=INT64 - 1, extra_json_schema={"default": 0})] | UnsetType = UNSET


class TaskListing(Body, frozen=True):
    """Which tasks."""

    tube: Name | UnsetType = UNSET
    state: Word | UnsetType = UNSET
    tenant: Name | UnsetType = UNSET
    user: Name | UnsetType = UNSET
    lane: Name | UnsetType = UNSET
    kind_prefix: Word | UnsetType = UNSET
    tag: Word | UnsetType = UNSET
    cursor: Cursor | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=1000, extra_json_schema={"default": 100})] | UnsetType = UNSET


class TaskCancellation(Body, frozen=True):
    """What the tasks to cancel have in common; at least one of user, tenant, lane, kind_prefix, tag."""

    user: Name | UnsetType = UNSET
    tenant: Name | UnsetType = UNSET
    lane: Name | UnsetType = UNSET
    kind_prefix: Word | UnsetType = UNSET
    tag: Word | UnsetType = UNSET
    tube: Name | UnsetType = UNSET
    state: Word | UnsetType = UNSET


class Report(Struct, frozen=True):
    """A gateway's delivery report. Gateways add parameters of their own: they are let through."""

    token: Annotated[str, Meta(min_length=1, max_length=1024)]
    status: Annotated[
        int, Meta(ge=0, le=INT64 - 1, description="bits: 1 delivered, 2 failed, 4 buffered, 8 accepted, 16 rejected")
    ]
    id: Annotated[str, Meta(max_length=256)] | UnsetType = UNSET
