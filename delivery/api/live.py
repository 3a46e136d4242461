"""GET /v1/live: what changes while a console is open, as server-sent events."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Annotated

from aiohttp import web
from msgspec import Meta, json

from core.deliveries.live import REREAD, TOPICS, LiveChange
from core.errors import Forbidden, StoreError
from core.threads import Inbox
from delivery.api.deliveries.tracking import forced_end
from delivery.http.context import Request
from delivery.http.fields import RequestModel
from delivery.http.responses import sse
from delivery.http.responses.problems import invalid_field
from delivery.http.route import People, Route, Routes

_TOPICS = "deliveries|queue|jobs|processes|runs|reply"


class LiveQuery(RequestModel, frozen=True):
    """The topics to follow, separated by commas."""

    topics: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=64,
            description="deliveries, queue, jobs, processes, runs, reply, separated by commas",
            extra_json_schema={"pattern": f"^({_TOPICS})(,({_TOPICS}))*$"},
        ),
    ]


LiveRequest = Request[None, LiveQuery]
_SCOPES = {
    "deliveries": "read",
    "queue": "admin",
    "jobs": "read",
    "processes": "operator",
    "runs": "read",
    "reply": "manage",  # as for a webhook with the event reply
}
_SCOPES_OF_PEOPLE = {"deliveries": "read", "reply": "read"}
"""The topics that are open to people."""


async def follow(request: LiveRequest) -> web.StreamResponse:
    """Stream the changes of the topics; Last-Event-ID resumes, `reread` says that changes were missed. The response
    begins when no change is missed any more: a console reads again what it shows at that moment.
    """
    topics, last = _topics(request), request.http.headers.get("Last-Event-ID")
    response = web.StreamResponse(headers=sse.HEADERS)
    async with request.services.core.live.follow(topics, _sees(request), last) as changes:
        await response.prepare(request.http)
        await response.write(sse.HEARTBEAT)
        with request.context.metrics.streams.track_inprogress():
            await _stream(changes, request, response)
    return response


async def _stream(
    changes: AsyncGenerator[tuple[str, LiveChange], None], request: LiveRequest, response: web.StreamResponse
) -> None:
    shown = _shown(changes, request)
    async for item in sse.with_heartbeats(shown, request.options.heartbeat, forced_end(request)):
        await response.write(sse.HEARTBEAT if item is None else _event(*item))


async def _shown(
    changes: AsyncGenerator[tuple[str, LiveChange], None], request: LiveRequest
) -> AsyncGenerator[tuple[str, LiveChange], None]:
    """Leave out the messages of inboxes that the person does not read at this moment."""
    person, relay = request.identity.person, request.services.core.relay
    async with aclosing(changes):
        async for event_id, change in changes:
            inbox = Inbox.parse(change.message.inbox) if change.message else None
            try:
                if person is None or inbox is None or await relay.readers.reads(request.tenant, inbox, person):
                    yield event_id, change
            except StoreError:
                yield event_id, LiveChange(change.number, REREAD)


def _event(event_id: str, change: LiveChange) -> bytes:
    data: object = change.message or {}
    if change.key:
        data = {"id": change.key.id, "state": change.state, "version": change.version}
    return sse.encode_event(event_id, change.topic, json.encode(data))


def _topics(request: LiveRequest) -> list[str]:
    """Read the topics of a stream. Raises InvalidFields WRONG_VALUE, Forbidden NOT_FOR_PEOPLE, SCOPE_MISSING."""
    topics = request.query.topics.split(",")
    scopes = _SCOPES_OF_PEOPLE if request.identity.person else _SCOPES
    for topic in topics:
        if topic not in TOPICS:
            raise invalid_field("topics", "WRONG_VALUE", f"Topics are {', '.join(TOPICS)}, separated by commas.")
        if topic not in scopes:
            raise Forbidden("NOT_FOR_PEOPLE", f"The topic {topic} needs an API key.", "topics")
        if not request.key.may_read(scopes[topic]):
            raise Forbidden("SCOPE_MISSING", f"The topic {topic} needs the scope {scopes[topic]}.", "topics")
    return topics


def _sees(request: LiveRequest) -> Callable[[LiveChange], bool]:
    """Return whether the caller may see a change."""
    identity = request.identity

    def sees(change: LiveChange) -> bool:
        if change.message:
            return change.tenant == identity.tenant
        if change.key is None:
            return True
        return change.tenant == identity.tenant and identity.may_see_deliveries_of(change.key.sender)

    return sees


ROUTES: Routes = (
    Route("GET", "/v1/live", "What changes while a console is open; Last-Event-ID resumes it", "", follow, 200,
          sse.CONTENT_TYPE, query=LiveQuery, people=People.OWN),
)  # fmt: skip
