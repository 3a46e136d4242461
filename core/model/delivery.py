"""A delivery to be made, the quota of its sender, and the results of the methods that make and cancel it: frozen
values, no Redis, no HTTP.

They are msgspec structs, because one is created for each request and each recipient, and a frozen dataclass takes ten
times as long.

`delivery/` creates them from validated requests; `core.deliveries.deliveries` stores them.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

from core.model.content import Content
from core.model.history_key import HistoryKey, Id
from core.model.question import Question
from core.model.states import DeliveryState
from core.model.text.personal import Personal
from core.sentence import language_of, language_of_text


class Quota(Struct, frozen=True):
    """At most `limit` deliveries of one sender in any `period`."""

    limit: int
    period: timedelta


class QuotaState(Struct, frozen=True):
    """`used`: deliveries of the last period. `limit` None: there is no quota. `resets_in`: when `used` next falls, zero
    if it is 0. `period`: that of the quota, zero if there is none.
    """

    used: int
    limit: int | None
    resets_in: timedelta
    period: timedelta

    @property
    def is_used_up(self) -> bool:
        return self.limit is not None and self.used >= self.limit


NO_QUOTA = QuotaState(0, None, timedelta(), timedelta())


DEFAULT_ORIGIN = "api"
DEFAULT_PRIORITY = 5
DEFAULT_KIND = "message"
REPLIES_TO_SENDER, REPLIES_OFF = "sender", "off"
"""Values of `replies` besides the id of an office."""


class Strategy(StrEnum):
    """`all`: every channel at once. `first`: the channels in their order, until one reaches the recipient (D-36)."""

    ALL = "all"
    FIRST = "first"


class Sender(Struct, frozen=True, gc=False, omit_defaults=True):
    """The person or system in whose name a delivery is sent."""

    id: Id
    name: str | None = None
    role: str | None = None


class Audience(StrEnum):
    """The receivers of a delivery to people: they themselves, their guardians, or both."""

    STUDENTS = "students"
    GUARDIANS = "guardians"
    BOTH = "both"


class GuardedChild(NamedTuple):
    """A person about whom a guardian gets a message."""

    id: Id
    name: str | None


class Uninformed(Struct, frozen=True, omit_defaults=True):
    """A child about which no guardian gets a message, or not this one. `why`: no_guardian, or guardian_blocked: then
    `guardian` is the id of the one that is blocked for this child. `name`: of this guardian, else of the child, in the
    directory; never stored.
    """

    child: Id
    why: str
    guardian: str = ""
    name: str | None = None

    @property
    def who(self) -> str:
        """Return the id of the person that gets nothing, or has nobody who gets it."""
        return self.guardian or str(self.child)


Contact = tuple[Id, str, str]
"""A person with a channel and an address in it."""


class Recipient(Struct, frozen=True):
    """`contacts`: channel → addresses in the order of the request; no channel has an empty list. `opted_out`: channels
    in which the person wants no messages; `contacts` has none of them. `values`: those given for a personal text, by
    the name of the field; `place`: where they were given, such as `recipients.0`; `fields`: the person's own; `hours`:
    in which it wants messages; `children`: those about whom it gets the message, of a delivery to guardians.
    `blocked`: it gets none at all; `opted_out` has all its channels. `locale`: the language that it has stated, ""
    without one.
    """

    id: Id
    name: str | None = None
    contacts: Mapping[str, Sequence[str]] = {}
    origin: Sequence[str] = ()
    opted_out: Sequence[str] = ()
    values: Mapping[str, str] = {}
    place: str = ""
    fields: Mapping[str, str] = {}
    locale: str = ""
    hours: str = ""
    children: Sequence[GuardedChild] = ()
    blocked: bool = False


class Bound(StrEnum):
    """Says whether the groups of an order were checked against the rights of its sender, or, if the sender was signed
    in, all its people.
    """

    GROUPS = "groups"
    PEOPLE = "people"


class Following(StrEnum):
    """The recipients of another delivery to which a follow-up goes: `unreached`, or `unanswered`: without an answer to
    its question.
    """

    UNREACHED = "unreached"
    UNANSWERED = "unanswered"


class LeavesOut(NamedTuple):
    """A delivery whose recipients are left out of a follow-up if it has reached them, or they have answered it.
    `numbers`: of its recipients in that delivery, -1 for one that is none there.
    """

    suffix: str
    of: Following
    numbers: Sequence[int]


class FollowUp(Struct, frozen=True):
    """The delivery that a follow-up follows, in the same shard. `leaves_out`: of the delivery with this key first, then
    of others whose success counts as well.
    """

    key: HistoryKey
    of: Following
    leaves_out: Sequence[LeavesOut] = ()


NOTICES = "notices"
"""The sender of notices about replies, which Ada itself writes."""


class NewDelivery(Struct, frozen=True):
    """One text for many recipients, each of them once; with attachments in `content` the text may be empty. Times are
    aware; `deliver_at` None means now. `moved_from`: the requested time, if quiet hours have moved it to `deliver_at`.
    `quota`: what the sender is held to.

    `wait` (strategy `first`): how long after `sent` or `unknown` a recipient goes on to the next channel unless a
    delivery report comes. None: `sent` is enough, and `unknown` leads to no other channel.

    `follows`: None unless it is a follow-up. `texts`: language → the text for people of this language, in place of
    `text`.

    `personal`: the values with which the marks of the text are filled for each recipient; None if it has no marks.

    `replies`: where replies go: sender, off (those who reply are told so), or the id of an office; "": they are not
    looked at; `about:…` (core.deliveries.received): to another message. `thread`: the id of the thread that the
    delivery belongs to, and to which replies go. `uninformed`: of a delivery to guardians, those that get nothing.
    `unfilled`: the marks that everybody gets as they are written.
    `empty_office`: the office has no members, so only a program reads it. `bound`: None for a sender that may write to
    whomever the order names.
    """

    tenant: str
    sender: Sender
    text: str
    recipients: Sequence[Recipient]
    channels: Sequence[str]
    origin: str = DEFAULT_ORIGIN
    deliver_at: datetime | None = None
    expires_at: datetime | None = None
    history_key: HistoryKey | None = None
    lane: str | None = None
    priority: int = DEFAULT_PRIORITY
    kind: str = DEFAULT_KIND
    tags: Sequence[str] = ()
    strategy: Strategy = Strategy.ALL
    wait: timedelta | None = None
    moved_from: datetime | None = None
    quota: Quota | None = None
    content: Content | None = None
    personal: Personal | None = None
    question: Question | None = None
    replies: str = ""
    thread: str = ""
    follows: FollowUp | None = None
    texts: Mapping[str, str] = {}
    uninformed: Sequence[Uninformed] = ()
    unfilled: Sequence[str] = ()
    empty_office: bool = False
    bound: Bound | None = None

    @property
    def language(self) -> str:
        """The language of the text, in which Ada speaks to recipients that have stated none."""
        return self.question.locale if self.question else language_of(language_of_text(self.text))


class Repeat(Struct, frozen=True, gc=False):
    """An Idempotency-Key and the fingerprint of its request. `is_own`: Ada has made the key, for a delivery whose lane
    never changes, and no client uses it: so it is known only in the shard of the delivery.
    """

    key: str
    fingerprint: str
    is_own: bool = False


class Accepted(Struct, frozen=True):
    """The result of enqueuing or rescheduling. `moved_from`: the requested time, if it had passed or was in quiet
    hours. `repeated`: this is the first result again. `quota`: the sender's, if this delivery counts towards one.
    `uninformed`: guardians that get nothing; `unfilled`: marks of the text that nothing fills; `empty_office`: replies
    go to an office without members; all empty in a repeat.
    """

    key: HistoryKey
    state: DeliveryState
    deliver_at: datetime
    moved_from: datetime | None
    recipients: int
    repeated: bool = False
    quota: QuotaState | None = None
    uninformed: Sequence[Uninformed] = ()
    unfilled: Sequence[str] = ()
    empty_office: bool = False


class DeliveryCancelled(Struct, frozen=True):
    """`cancelled`: the number of cancelled recipients; `already_sent`: recipients it had been sent to before."""

    cancelled: int
    already_sent: Sequence[Id]
    # their attempt is still under way, or what became of it is unknown
    in_flight: Sequence[Id]
