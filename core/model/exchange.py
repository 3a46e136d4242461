"""The exchange with a provider about one message: what was called, and what the provider said (D-48)."""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct


class ProviderCall(Struct, frozen=True, array_like=True):
    """One call. `status`: the provider's number, 0 without an answer. `words`: the provider's own, "" of a success.
    `after_ms`: since the attempt began. `took_ms`: with the waits for a connection and for the announcement.
    """

    method: str
    status: int
    words: str
    after_ms: int
    took_ms: int


class ExchangedAttempt(NamedTuple):
    """One attempt. `at`: when it began, Unix ms. `outcome`: "sent", "rejected", "deferred", "unknown", "halted",
    "partly". `detail`: the provider's words for this message. `calls`: those of all messages of the attempt, if a call
    carries several. Neither has a secret, an address or a text.
    """

    at: int
    outcome: str
    reason: str
    detail: str
    calls: Sequence[ProviderCall]
