"""Webhooks: create, list, delete, test, attempts, replay. A webhook of another tenant does not exist for the caller."""

from typing import Annotated

from msgspec import Meta, Struct

from core.model.clock import from_ms, write_time
from core.webhooks import webhook
from core.webhooks.webhook import EventType
from delivery.http.context import Request, Response
from delivery.http.fields import RequestModel
from delivery.http.route import NoParameters, PlainRequest, Repeats, Route, Routes


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
            description="outcome: each outcome; finished: the end of each delivery; job: what becomes of jobs; "
            "answer: each answer to a question; closed: the closing of each question",
        ),
    ]


class WebhookView(Struct):
    """A webhook. `disabled_at`: when its receiver answered 410 Gone; a replay enables it again."""

    id: str
    url: str
    events: list[webhook.EventType]
    created_at: str
    disabled_at: str | None

    @classmethod
    def of(cls, found: webhook.Webhook) -> "WebhookView":
        disabled_at = write_time(from_ms(found.disabled)) if found.disabled else None
        return cls(found.id, found.url, list(found.events), write_time(from_ms(found.created)), disabled_at)


class WebhookCreated(WebhookView):
    """A new webhook. `secret` verifies the signatures (Standard Webhooks); it is shown only here."""

    secret: str

    @classmethod
    def of(cls, found: webhook.Webhook) -> "WebhookCreated":
        shown = WebhookView.of(found)
        return cls(shown.id, shown.url, shown.events, shown.created_at, shown.disabled_at, found.secret)


class WebhookList(Struct):
    """All webhooks of the tenant, the oldest first."""

    webhooks: list[WebhookView]


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
    """The number of messages that are sent again."""

    replayed: int


async def create(request: Request[WebhookRequest, NoParameters]) -> Response:
    """Return a new webhook, with its secret."""
    body = request.body
    webhook = await request.services.webhooks.create(request.tenant, body.url, body.events)
    return Response(WebhookCreated.of(webhook), 201)


async def list_all(request: PlainRequest) -> Response:
    found = await request.services.webhooks.of_tenant(request.tenant)
    return Response(WebhookList([WebhookView.of(one) for one in found]))


async def delete(request: PlainRequest) -> Response:
    """Delete a webhook and the messages that wait for it."""
    webhook_id = _id(request)
    dropped = await request.services.webhooks.delete(request.tenant, webhook_id)
    return Response(WebhookDeleted(webhook_id, dropped))


async def test(request: PlainRequest) -> Response:
    """Send a test message and report what the receiver answered."""
    return Response(WebhookAttempt.of(await request.services.webhooks.test(request.tenant, _id(request))))


async def attempts(request: PlainRequest) -> Response:
    """Return what waits, and the last attempts."""
    return Response(WebhookAttempts.of(await request.services.webhooks.state(request.tenant, _id(request))))


async def replay(request: PlainRequest) -> Response:
    """Send the dead letters again."""
    replayed = await request.services.webhooks.replay(request.tenant, _id(request))
    return Response(WebhookReplayed(replayed), 202)


def _id(request: PlainRequest) -> str:
    return request.part("id")


ROUTES: Routes = (
    Route("POST", "/v1/webhooks", "Notify an HTTP address of outcomes and ends of deliveries", "manage", create, 201,
          WebhookCreated, body=WebhookRequest, repeats=Repeats.STORED),
    Route("GET", "/v1/webhooks", "List the webhooks", "manage", list_all, 200, WebhookList),
    Route("DELETE", "/v1/webhooks/{id}", "Delete a webhook and the messages that wait for it", "manage", delete, 200,
          WebhookDeleted, repeats=Repeats.STORED),
    Route("POST", "/v1/webhooks/{id}/test", "Send a test message to a webhook at once", "manage", test, 200,
          WebhookAttempt, repeats=Repeats.STORED),
    Route("GET", "/v1/webhooks/{id}/attempts", "What waits for a webhook, and the last attempts", "manage", attempts,
          200, WebhookAttempts),
    Route("POST", "/v1/webhooks/{id}/replay", "Send the messages again that were given up", "manage", replay, 202,
          WebhookReplayed, repeats=Repeats.STORED),
)  # fmt: skip
