"""A webhook, its attempts, and the messages that it receives: frozen values, stored and sent as JSON. Pure.

The id of a message is derived from the webhook, the history and the version of the change, so a message that is made
again, also from the history instead of the event, has the same id.
"""

import base64
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from hashlib import blake2b
from typing import Any

import msgspec

from core.model.clock import from_ms
from core.model.history import History, HistoryChange
from core.model.history_key import HistoryKey
from core.model.states import OPEN

TUBE = "webhooks"
"""The tube of the messages that wait to be sent."""

SECRET_BYTES = 32
TEST = "test"


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

    @property
    def fault(self) -> str:
        """Return why the call failed, with the status of the response: `status 410`; "" if it did not."""
        return f"{self.error} {self.status or ''}".strip() if self.error else ""


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


@dataclass(frozen=True, slots=True)
class WebhookMessage:
    """`body`: the JSON that is sent, unchanged in each attempt. `subject`: messages about the same recipient of a
    delivery have the same one and are sent in their order; "" of a message that was read from a task.
    """

    id: str
    type: str
    body: str
    subject: str = ""

    @classmethod
    def make(cls, message_id: str, kind: str, at: datetime, data: object, subject: str = "") -> "WebhookMessage":
        content = {"type": kind, "id": message_id, "timestamp": at, "data": data}
        return cls(message_id, kind, msgspec.json.encode(content).decode(), subject)

    @classmethod
    def read(cls, body: str) -> "WebhookMessage":
        envelope = msgspec.json.decode(body, type=_Envelope)
        return cls(envelope.id, envelope.type, body)


class _Envelope(msgspec.Struct):
    type: str
    id: str


class OutcomeData(msgspec.Struct):
    """The outcome of one recipient in one channel. `delivery`: the id of the delivery. `not_shown`: what the channel
    could not show; absent if it showed everything. `reminder`: which reminder it is, from 1; absent for the first
    sending.
    """

    delivery: str
    history_key: str
    version: int
    state: str
    recipient: int | str
    channel: str
    status: str
    reason: str | None
    reference: str | None
    attempts: int
    at: datetime | None
    not_shown: Sequence[str] | msgspec.UnsetType = msgspec.UNSET
    reminder: int | msgspec.UnsetType = msgspec.UNSET
    detail: str | msgspec.UnsetType = msgspec.UNSET


class FinishedData(msgspec.Struct):
    """The end of a delivery. `counts`: recipients, reached, then one per status."""

    delivery: str
    history_key: str
    version: int
    state: str
    verdict: str
    counts: dict[str, int]
    sender: dict[str, Any]
    origin: str
    kind: str
    tags: list[str]
    finished_at: datetime | None


class AnswerData(msgspec.Struct):
    """An answer to the question of a delivery. `value`: the key of the option. `by`: press, number, text,
    mail, link or on_behalf.
    """

    delivery: str
    history_key: str
    version: int
    recipient: int | str
    state: str
    value: str
    by: str
    channel: str | None
    changes: int
    at: datetime


class ClosedData(msgspec.Struct):
    """The closing of a question. `answers`: how many recipients have each state; `options`: answers by option."""

    delivery: str
    history_key: str
    version: int
    answers: dict[str, int]
    options: dict[str, int]
    closed_at: datetime


class ReplyData(msgspec.Struct):
    """A message of a person to an inbox, without its words. `number`: of the message in the thread. `delivery`: the
    one that it replies to. `files`: how many files were not passed on; `attached`: how many were. `unverified`:
    somebody else may have written it.
    """

    thread: str
    inbox: str
    number: int
    person: int | str
    channel: str
    delivery: str | None
    files: int
    at: datetime
    attached: int = 0
    unverified: bool = False


def is_outcome(change: HistoryChange) -> bool:
    """Return whether a change is an outcome; `queued` and `sending` are steps towards one."""
    return change.outcome is not None and change.outcome.status not in OPEN


def message_id(webhook: Webhook, key: HistoryKey, version: int) -> str:
    text = f"{webhook.id} {key} {version}"
    return f"msg_{blake2b(text.encode(), digest_size=16).hexdigest()}"


def outcome_message(webhook: Webhook, key: HistoryKey, change: HistoryChange) -> WebhookMessage:
    """Return the message of an outcome. `change`: `is_outcome` is true of it."""
    outcome = change.outcome
    assert outcome is not None
    assert change.recipient is not None
    assert change.channel is not None
    data = OutcomeData(
        delivery=key.id,
        history_key=str(key),
        version=change.version,
        state=change.state,
        recipient=change.recipient,
        channel=change.channel,
        status=outcome.status,
        reason=outcome.reason,
        reference=outcome.reference,
        attempts=outcome.attempts,
        at=outcome.at,
        not_shown=outcome.not_shown or msgspec.UNSET,
        reminder=change.reminder or msgspec.UNSET,
        detail=outcome.detail or msgspec.UNSET,
    )
    at, subject = outcome.at or from_ms(0), f"{key} {change.recipient}"
    return WebhookMessage.make(message_id(webhook, key, change.version), EventType.OUTCOME, at, data, subject)


def finished_message(webhook: Webhook, history: History, version: int) -> WebhookMessage:
    """Return the message of the end of a delivery. `version`: of the change that ended it."""
    data = FinishedData(
        delivery=history.key.id,
        history_key=str(history.key),
        version=version,
        state=history.state,
        verdict=history.verdict,
        counts=dict(history.counts),
        sender=dict(history.sender),
        origin=history.origin,
        kind=history.kind,
        tags=list(history.tags),
        finished_at=history.finished_at,
    )
    at = history.finished_at or history.created_at
    return WebhookMessage.make(
        message_id(webhook, history.key, version), EventType.FINISHED, at, data, str(history.key)
    )


def answer_message(webhook: Webhook, key: HistoryKey, change: HistoryChange) -> WebhookMessage:
    """Return the message of an answer. It has the subject of the outcomes of its recipient."""
    row = change.answer
    assert row is not None
    assert change.recipient is not None
    data = AnswerData(
        delivery=key.id,
        history_key=str(key),
        version=change.version,
        recipient=change.recipient,
        state=row.state,
        value=row.value,
        by=row.by,
        channel=row.channel or None,
        changes=len(row.revisions),
        at=row.answered_at,
    )
    name, subject = message_id(webhook, key, change.version), f"{key} {change.recipient}"
    return WebhookMessage.make(name, EventType.ANSWER, row.answered_at, data, subject)


def closed_message(webhook: Webhook, history: History, version: int) -> WebhookMessage:
    answers = history.answers
    assert answers is not None
    closed_at = from_ms(answers.closed_at)
    data = ClosedData(
        delivery=history.key.id,
        history_key=str(history.key),
        version=version,
        answers={str(state): n for state, n in answers.states.items()},
        options=dict(answers.options),
        closed_at=closed_at,
    )
    name = message_id(webhook, history.key, version)
    return WebhookMessage.make(name, EventType.CLOSED, closed_at, data, str(history.key))


def test_message(webhook: Webhook, at: datetime) -> WebhookMessage:
    """Return a message without an event, to test a receiver."""
    return WebhookMessage.make(f"msg_{secrets.token_hex(16)}", TEST, at, {"webhook": webhook.id})
