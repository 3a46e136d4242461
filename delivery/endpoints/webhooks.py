"""Webhooks: create, list, delete, test, attempts, replay. A webhook of another tenant does not exist for the caller."""

from delivery.http.context import Request, Response
from delivery.http.route import NoParameters
from delivery.schemas import webhooks as schemas

PlainRequest = Request[None, NoParameters]


async def create(request: Request[schemas.WebhookRequest, NoParameters]) -> Response:
    """Return a new webhook, with its secret."""
    body = request.body
    webhook = await request.services.webhooks.create(request.tenant, body.url, body.events)
    return Response(schemas.WebhookCreated.of(webhook), 201)


async def list_all(request: PlainRequest) -> Response:
    """Return all webhooks of the tenant."""
    found = await request.services.webhooks.of_tenant(request.tenant)
    return Response(schemas.WebhookList([schemas.Webhook.of(one) for one in found]))


async def delete(request: PlainRequest) -> Response:
    """Delete a webhook and the messages that wait for it."""
    webhook_id = _id(request)
    dropped = await request.services.webhooks.delete(request.tenant, webhook_id)
    return Response(schemas.WebhookDeleted(webhook_id, dropped))


async def test(request: PlainRequest) -> Response:
    """Send a test message and report what the receiver answered."""
    return Response(schemas.WebhookAttempt.of(await request.services.webhooks.test(request.tenant, _id(request))))


async def attempts(request: PlainRequest) -> Response:
    """Return what waits, and the last attempts."""
    return Response(schemas.WebhookAttempts.of(await request.services.webhooks.state(request.tenant, _id(request))))


async def replay(request: PlainRequest) -> Response:
    """Send the dead letters again."""
    replayed = await request.services.webhooks.replay(request.tenant, _id(request))
    return Response(schemas.WebhookReplayed(replayed), 202)


def _id(request: PlainRequest) -> str:
    return request.http.match_info["id"]
