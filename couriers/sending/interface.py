"""The interface of a courier: `Message` in, one `Outcome` per message out.

    runtime ──attempt([Message, …])──▶ courier ──▶ provider
            ◀──[Outcome, …]─────────── (one attempt, no retry, no sleep, no limit, no log, no Redis)

A courier maps the provider's response to an outcome with one pure function, which documents the responses of that
provider. Retries, throttles, leases and the history are implemented once, in the runtime. An exception is a fault of
the courier itself: the runtime then treats every message of the attempt as `Unknown`.

Called by `couriers.sending.parcel_executor`.
"""

import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal, Protocol, runtime_checkable

from core.model.contacts.subscription import Subscription
from core.model.content import Content, Feature, Limits
from core.model.states import Reason
from core.sentence import Text
from couriers.sending.known_ids import StoredIds

FOREVER = timedelta.max
NEVER = timedelta(0)


class Scope(StrEnum):
    """The scope of a wait that a provider demands."""

    ACCOUNT = "account"  # everything this account sends through this channel
    METHOD = "method"  # this account and this method of the provider
    CHAT = "chat"  # this address, in all deliveries
    RECIPIENT = "recipient"  # this one recipient's message


ACCOUNT_WIDE = frozenset({Scope.ACCOUNT, Scope.METHOD})
"""Scopes of a wait during which a courier attempts nothing."""


class NotWanted(Exception):
    """The message is not to be sent any more. Raised by `Message.announce`; a courier lets it through."""


async def _unannounced() -> None:
    """Do nothing: a repeat of this message does no harm, or the runtime has announced it."""


@dataclass(frozen=True, slots=True)
class Message:
    """One text for one address, and what it has besides the text, as far as the courier `shows` it.

    `seed` names (delivery, channel, attempt group), `recipient` names (recipient, contact). A repeat of the message
    after a crash has the same values; a retry that a person asked for has another seed. `report_url`: where the
    provider sends delivery reports, "" if they are not wanted. A text without attachments is never empty.
    `preferences_url`: the page on which the recipient chooses what it receives, "" if there is none; for couriers that
    link to it (`LinksPreferences`), and `language`, in which they write the line with it; "" if it is not known.
    `reply_to`: the e-mail address at which Ada receives a reply of this recipient, ""
    for none; `bounce_to`: at which it receives a report that the mail was not delivered. `is_notice`: Ada wrote
    it, not a person. `subscription`: the one behind the address, None if it is gone; for couriers that use it
    (`UsesSubscriptions`). `announce`: for couriers that announce (`Announces`); a second call returns at once.
    """

    address: str
    text: str
    seed: str
    recipient: str
    report_url: str = ""
    content: Content | None = None
    preferences_url: str = ""
    reply_to: str = ""
    bounce_to: str = ""
    is_notice: bool = False
    language: str = ""
    subscription: Subscription | None = field(default=None, repr=False)
    announce: Callable[[], Awaitable[None]] = field(default=_unannounced, compare=False, repr=False)

    def random_id(self, part: int = 0, bits: int = 63) -> int:
        """Return the id by which the provider recognises a repeat of this message: a positive number of at most `bits`
        bits.

        Guarantee: the same for the same message and part in every process and after every restart; never 0 (VK and
        Telegram refuse 0).
        """
        return _number(f"{self.seed}:{self.recipient}:{part}", bits)

    def shared_id(self, part: int = 0, bits: int = 31) -> int:
        """Return the random id shared by all recipients of one delivery, for providers that remember it per dialog
        (VK).

        Each dialog sees the same number, however the recipients are grouped into calls.
        """
        return _number(f"{self.seed}:{part}", bits)


def _number(name: str, bits: int) -> int:
    digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
    number: int = int.from_bytes(digest, "big") % (2**bits - 1) + 1
    return number


@dataclass(frozen=True, slots=True)
class Sent:
    """The provider has accepted the message. `reference`: the provider's id of it, "" if it is not known.

    If the provider reports reading: `peer` names the dialog, and `number` the last part of the message in it.
    `not_shown`: what only the attempt could find out: a feature, or a feature and the name of a file ("photo a.png").
    `in_day_message`: not as a message of its own (`couriers.sending.day_messages`).
    """

    reference: str = ""
    peer: str = ""
    number: int = 0
    not_shown: tuple[str, ...] = ()
    in_day_message: bool = field(default=False, repr=False)


@dataclass(frozen=True, slots=True)
class Deferred:
    """Certainly not sent; try again. `after`: the wait named by the provider; None leaves it to the back-off.

    An attempt with a wait named by the provider does not count, unless it triggered a throttle of the whole account;
    one without a wait does. `is_guess`: the wait is the courier's own, and the provider named none: the attempt counts,
    so that the message ends some day.
    """

    reason: Reason
    after: timedelta | None = None
    scope: Scope = Scope.RECIPIENT
    detail: str = ""
    is_guess: bool = False


@dataclass(frozen=True, slots=True)
class Rejected:
    """Not sent, and another attempt would not help. `is_gone`: the subscription exists no more, so it is removed with
    its contact.
    """

    reason: Reason
    detail: str = ""
    is_gone: bool = field(default=False, repr=False)


@dataclass(frozen=True, slots=True)
class Unknown:
    """It may have been sent. The runtime repeats it with the same random id while the provider remembers that id;
    otherwise its outcome is `unknown`.
    """

    detail: str = ""


@dataclass(frozen=True, slots=True)
class Partly:
    """The first parts of a long message were accepted, and `rest` is the outcome of the next part.

    The recipient has a part of the message, so its status is never `failed`. `reference`: the provider's ids of the
    accepted parts, "" if they are not known.
    """

    rest: "Outcome"  # Deferred, Rejected, Unknown or Halted
    reference: str = ""


@dataclass(frozen=True, slots=True)
class Split:
    """The provider refused the whole batch because of its size or of one message. The runtime attempts each half."""

    rejected: Rejected  # the outcome if the batch has only one message
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Halted:
    """The account cannot send until an operator acts. The courier process stops; its tasks stay queued. `said`: why."""

    said: Text

    @property
    def detail(self) -> str:
        return str(self.said)

    def __repr__(self) -> str:
        return f"Halted(detail={self.detail!r})"


Outcome = Sent | Deferred | Rejected | Unknown | Partly | Split | Halted
AnswerRow = tuple[str, str, Outcome]
"""Step, answer of the provider, outcome: a row of the page of answers."""


@dataclass(frozen=True, slots=True)
class ReadMark:
    """The provider reports that all messages of a dialog up to `number` were read (`Sent.peer`, `Sent.number`)."""

    peer: str
    number: int


class Courier(Protocol):
    """One channel. The module `couriers/<channel>.py` has `Settings` and `async def open(settings, directory) ->
    Courier`.
    """

    channel: str
    account: str  # names the sending account; processes with the same account share its throttles. Never a secret
    batch: int  # most messages of one attempt
    parcel: int  # most recipients of one parcel; a multiple of `batch`
    remembers: timedelta  # how long the provider recognises a random id: FOREVER, a time, or NEVER
    shows: frozenset[Feature]  # what the channel can show besides a plain text

    async def attempt(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        """Send each message once. Returns one outcome per message, in their order."""
        ...

    async def close(self) -> None: ...


@runtime_checkable
class Announces(Protocol):
    """A courier that sends one message at a time and whose provider recognises no repeat may have this attribute as
    well. It then awaits `Message.announce` itself: immediately before the first request that may send the message, and
    after everything that can wait, such as a connection. A courier that is killed before this has surely not sent it;
    afterwards it is unknown. For other couriers the runtime announces before the attempt.
    """

    announces: Literal[True]


@runtime_checkable
class LinksPreferences(Protocol):
    """A courier whose messages link to the page of their recipient may have this attribute as well."""

    links_preferences: Literal[True]


@runtime_checkable
class UsesSubscriptions(Protocol):
    """A courier whose addresses stand for subscriptions of browsers may have these as well. `subscribe_key`: the public
    key with which they subscribe; `push_service`: the address of the only one that it uses, "" for any.
    """

    subscribe_key: str
    push_service: str


@runtime_checkable
class KeepsIds(Protocol):
    """A courier that makes things at its provider under names may have this attribute as well. The runtime sets it."""

    ids: StoredIds | None


@runtime_checkable
class WritesAsText(Protocol):
    """A courier whose channel shows some features as text may have this method as well."""

    def as_text(self, content: Content) -> Collection[Feature]:
        """Return the features that the text shows in this content: buttons as numbered choices, files with an address
        as links. Pure.
        """
        ...


@runtime_checkable
class SharesTexts(Protocol):
    """A courier that sends one text to many recipients in one call, and only so many texts in one attempt, may have
    this attribute as well: `most_texts`, the most different messages of one attempt.
    """

    most_texts: int


@runtime_checkable
class HasLimits(Protocol):
    """A courier whose channel limits texts, keyboards or files may have this attribute as well, so that a preview shows
    what will be cut, split or written as text. Its `as_text` follows from `Display.written_as_text` then.
    """

    limits: Limits


@runtime_checkable
class ReadMarkSource(Protocol):
    """A courier whose provider reports reading over the courier's own connection may have this method as well."""

    def read_marks(self) -> AsyncIterator[ReadMark]:
        """Emit the marks as they come, in any order, until cancelled. A lost connection is made again."""
        ...


@dataclass(frozen=True, slots=True)
class ReceivedText:
    """A message of a person to the account of a courier. `id`: of the message, unique in the account. `quoted`: the
    id of the message that it replies to, "" for none.
    """

    address: str
    id: str
    text: str
    quoted: str
    files: int
    at: datetime


@runtime_checkable
class TextSource(Protocol):
    """A courier that gets what people write over its own connection may have this method as well."""

    def received_texts(self) -> AsyncIterator[ReceivedText]:
        """Emit the private messages that come while it runs, until cancelled."""
        ...


@runtime_checkable
class HasTest(Protocol):
    """A courier whose account can be signed in only once at a time may have this method as well. Others are opened a
    second time to test the account.
    """

    async def test(self) -> None:
        """Ask the provider whether it still accepts the account. Raises SetupError if it does not."""
        ...


@runtime_checkable
class HasBalance(Protocol):
    """A courier whose account is paid in advance may have these as well. `balance`: what was left when it was asked
    for, None if that is not known; below `low_balance` operators are warned.
    """

    balance: float | None
    low_balance: float

    async def check(self) -> float | None:
        """Return what is left on the account. Raises SetupError if the provider does not say it."""
        ...
