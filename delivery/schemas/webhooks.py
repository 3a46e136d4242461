"""Webhooks: the request that makes one, and what the API returns of them."""

from typing import Annotated

from msgspec import Meta, Struct

from core.model.clock import from_ms
from core.webhooks import webhook
from core.webhooks.webhook import EventType
from delivery.schemas.fields.timestamps import write_time
from delivery.schemas.requests import RequestModel


class WebhookRequest(RequestModel, frozen=True):
    """The address that is notified, and of what."""

    url: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=2048,
            description="http or https, with a public address",
            extra_json_schema={
                "pattern": '^[Hh][Tt][Tt][Pp][Ss]?://[A-Za-z0-9.-]+(:[0-9]{1,4})?([/?][!"$-\\[\\]^-~]*)?$'
            },
        ),
    ]
    events: Annotated[
        list[EventType],
        Meta(
            min_length=1,
            max_length=8,
            description="outcome: each outcome; finished: the end of each delivery; job: what becomes of jobs",
        ),
    ]


class Webhook(Struct):
    """A webhook. `disabled_at`: when its receiver answered 410 Gone; a replay enables it again."""

    id: str
    url: str
    events: list[webhook.EventType]
    created_at: str
    disabled_at: str | None

    @classmethod
    def of(cls, found: webhook.Webhook) -> "Webhook":
        disabled_at = write_time(from_ms(found.disabled)) if found.disabled else None
        return cls(found.id, found.url, list(found.events), write_time(from_ms(found.created)), disabled_at)


class WebhookCreated(Webhook):
    """A new webhook. `secret` verifies the signatures (Standard Webhooks); it is shown only here."""

    secret: str

    @classmethod
    def of(cls, found: webhook.Webhook) -> "WebhookCreated":
        shown = Webhook.of(found)
        return cls(shown.id, shown.url, shown.events, shown.created_at, shown.disabled_at, found.secret)


class WebhookList(Struct):
    """All webhooks of the tenant, the oldest first."""

    webhooks: list[Webhook]


class WebhookDeleted(Struct):
    """`dropped`: how many messages waited for the webhook and are not sent."""

    id: str
    dropped: int


class WebhookAttempt(Struct):
    """One call of a webhook. `status`: of the response, null if there was none. `error`: null if it succeeded, else
    status, redirect, timeout, connection, certificate or target_forbidden.
    """

    webhook_id: str
    type: str
    attempt: int
    at: str
    duration_ms: int
    succeeded: bool
    status: int | None
    error: str | None

    @classmethod
    def of(cls, made: webhook.AttemptRecord) -> "WebhookAttempt":
        at = write_time(from_ms(made.at))
        error = made.error or None
        return cls(made.message, made.type, made.attempt, at, made.duration_ms, made.succeeded, made.status, error)


class WebhookAttempts(Struct):
    """`waiting`: messages still to be sent; `dead_letters`: messages that were given up; the last attempts, the latest
    first.
    """

    waiting: int
    dead_letters: int
    attempts: list[WebhookAttempt]

    @classmethod
    def of(cls, state: webhook.WebhookState) -> "WebhookAttempts":
        return cls(state.waiting, state.dead, [WebhookAttempt.of(one) for one in state.attempts])


class WebhookReplayed(Struct):
    """How many messages are sent again."""

    replayed: int
