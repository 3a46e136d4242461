"""Updates of channels of your own: each becomes an event for the scenarios of the tenant's bot.

A client only claims who the person is, so the event carries the scopes of the client's key: `core.updates.rights`.
"""

import secrets
from datetime import UTC, datetime
from typing import Any

from msgspec import to_builtins

from core.errors import NotFound
from core.updates import rights
from core.updates.events import Events, person_of
from delivery.http.context import Request, Response
from delivery.http.route import NoParameters
from delivery.schemas.bots.events import EventAccepted, EventRequest

SOURCE = "@api"
"""Ids of events are unique in it. No tenant has this name, and the source of Telegram's updates is the tenant's."""


async def receive(request: Request[EventRequest, NoParameters]) -> Response:
    """Put an event; 200 for one whose id was put before. Raises NotFound BOT_NOT_SET_UP, Invalid EVENT_TOO_LARGE."""
    event = rights.handed_in(event_of(request.body), request.key.scopes)
    is_new = await _events(request).put(SOURCE, event)
    return Response(EventAccepted(event["id"], person_of(event)), 202 if is_new else 200)


def event_of(body: EventRequest) -> dict[str, Any]:
    """Return the event, with what a client may leave out. Fields that are null are left out."""
    given = {name: value for name, value in to_builtins(body).items() if value is not None}
    defaults = {"id": secrets.token_hex(12), "chat_id": given["user_id"], "event_date": datetime.now(UTC).isoformat()}
    return {**defaults, **given}


def _events(request: Request[Any, Any]) -> Events:
    events = request.services.events(request.tenant)
    if events is None:
        raise NotFound("BOT_NOT_SET_UP", "This tenant has no bot with scenarios: see ADA_SCENARIOS and ADA_BOT_TENANT.")
    return events
