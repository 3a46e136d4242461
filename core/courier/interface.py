"""The port: all that a courier sees of the house. `Message` in, one `Outcome` per message out.

    runtime ──attempt([Message, …])──▶ courier ──▶ provider
            ◀──[Outcome, …]─────────── (one attempt, no retry, no sleep, no limit, no log, no Redis)

A courier reads the provider's answer with one pure function, which is the document of that provider's answers, and
returns a value. Retrying, pacing, leases and the history are written once, in `core.courier.runtime`. Exceptions are
faults of
the courier itself: the runtime then treats every message of the attempt as `Unknown`.

Before: `core.courier.runtime` (claims parcels, makes messages). After: the provider; then `core.courier.runtime`
settles what came
back.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Protocol

from core.model.states import Reason

FOREVER = timedelta.max
NEVER = timedelta(0)


class Scope(StrEnum):
    """What a provider's wait applies to. Nobody else waits for it."""

    ACCOUNT = "account"  # everything this account sends through this channel
    METHOD = "method"  # this account and this method of the provider
    CHAT = "chat"  # this address, whoever writes to it
    RECIPIENT = "recipient"  # this one recipient's message


@dataclass(frozen=True, slots=True)
class Message:
    """One text for one address.

    `seed` names (delivery, channel, attempt group) and `recipient` (recipient, contact): the same message repeated
    after a crash has both the same, a retry asked for by a person has another seed.
    """

    address: str
    text: str
    seed: str
    recipient: str
    report: str = ""  # address for delivery reports, where the channel has them; "" if none are wanted

    def random_id(self, part: int = 0, bits: int = 63) -> int:
        """The provider's repeat key of this message alone: a positive number of at most `bits` bits.

        Guarantee: equal for equal message and part in every process and after every restart; never 0 (VK and Telegram
        refuse 0).
        """
        return _number(f"{self.seed}:{self.recipient}:{part}", bits)

    def shared_id(self, part: int = 0, bits: int = 31) -> int:
        """The repeat key that all recipients of one delivery have in common, for providers that remember it per dialog
        (VK).

        However the recipients are grouped into calls, before and after a bisection, each dialog sees the same number.
        """
        return _number(f"{self.seed}:{part}", bits)


def _number(name: str, bits: int) -> int:
    digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
    number: int = int.from_bytes(digest, "big") % (2**bits - 1) + 1
    return number


@dataclass(frozen=True, slots=True)
class Sent:
    """The provider has it. `reference` is the provider's number of it, "" where it is not known."""

    reference: str = ""


@dataclass(frozen=True, slots=True)
class Deferred:
    """Not sent, and known not to be; try again. `after` is the provider's own wait; None leaves it to the runtime's
    back-off.

    A wait named by the provider does not count against the attempts; an unnamed one does.
    """

    reason: Reason
    after: timedelta | None = None
    scope: Scope = Scope.RECIPIENT
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Rejected:
    """Not sent, and trying again would not help this recipient."""

    reason: Reason
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Unknown:
    """It may have been sent. The runtime repeats it with the same random id while the provider remembers it, else says
    `unknown`.
    """

    detail: str = ""


@dataclass(frozen=True, slots=True)
class Split:
    """The provider refused the batch as a whole because of its size or of one member: attempt each half on its own."""

    rejected: Rejected  # what it means when the batch is down to one message
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Halted:
    """The account cannot send until a person mends it. The courier stops with an alarm; its tasks stay queued."""

    detail: str


Outcome = Sent | Deferred | Rejected | Unknown | Split | Halted


class Courier(Protocol):
    """One channel. The module `couriers/<channel>.py` has `Settings` and `async def open(settings, directory) ->
    Courier`.
    """

    channel: str
    account: str  # who sends, for waits: processes with the same account share its waits. Never a secret
    batch: int  # most messages of one attempt
    parcel: int  # most recipients of one parcel; a multiple of `batch`
    remembers: timedelta  # how long the provider refuses to repeat a random id: FOREVER, an hour, or NEVER

    async def attempt(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        """Send once. As many outcomes as messages, in their order."""
        ...

    async def close(self) -> None: ...
