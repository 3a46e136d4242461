"""A webhook and its attempts: frozen values, stored as JSON. Pure."""

import base64
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import msgspec

TUBE = "webhooks"
"""The tube of the messages that wait to be sent."""

SECRET_BYTES = 32


class EventType(StrEnum):
    """The events that a webhook is notified of."""

    OUTCOME = "outcome"
    FINISHED = "finished"
    JOB = "job"
    ANSWER = "answer"
    CLOSED = "closed"
    REPLY = "reply"


@dataclass(frozen=True, slots=True)
class Webhook:
    """An address of a tenant. Times are the server's ms. `secret`: `whsec_…` as in Standard Webhooks; signing needs it,
    so it is stored readable. `disabled`: when the receiver answered 410 Gone, 0 if it did not.
    """

    id: str
    tenant: str
    url: str
    events: tuple[EventType, ...]
    created: int
    secret: str = field(repr=False)
    disabled: int = 0


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """One call of a webhook. `attempt`: 1 for the first call for this message. `status`: of the response. `error`: why
    the call counts as failed, "" if it did not.
    """

    message: str
    type: str
    attempt: int
    at: int
    duration_ms: int
    status: int | None = None
    error: str = ""

    @property
    def succeeded(self) -> bool:
        return not self.error


@dataclass(frozen=True, slots=True)
class WebhookState:
    """The messages that wait for a webhook. `waiting`: messages that are to be sent. `dead`: messages that were given
    up and wait for a replay. `attempts`: the latest first.
    """

    waiting: int
    dead: int
    attempts: Sequence[AttemptRecord]


def new_id() -> str:
    return f"wh_{secrets.token_hex(8)}"


def new_secret() -> str:
    """Return a random secret in the notation of Standard Webhooks."""
    return f"whsec_{base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()}"


def encode(value: Webhook | AttemptRecord) -> str:
    return msgspec.json.encode(value).decode()


def read_webhook(text: str) -> Webhook:
    return msgspec.json.decode(text, type=Webhook)


def read_attempt(text: str) -> AttemptRecord:
    return msgspec.json.decode(text, type=AttemptRecord)
