"""GET /v1/live: what changes while a console is open, as server-sent events."""

from collections.abc import AsyncGenerator, Callable
from typing import Annotated

from aiohttp import web
from msgspec import Meta, json

from core.deliveries.live import TOPICS, LiveChange
from core.errors import Forbidden
from delivery.api.deliveries.tracking import forced_end
from delivery.http.context import Request
from delivery.http.fields import RequestModel
from delivery.http.responses import sse
from delivery.http.responses.problems import invalid_field
from delivery.http.route import People, Route, Routes

_TOPICS = "deliveries|queue|jobs|processes|runs"


class LiveQuery(RequestModel, frozen=True):
    """The topics to follow: deliveries, queue, jobs, processes, runs, separated by commas."""

    topics: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=64,
            description="deliveries, queue, jobs, processes, runs, separated by commas",
            extra_json_schema={"pattern": f"^({_TOPICS})(,({_TOPICS}))*$"},
        ),
    ]


LiveRequest = Request[None, LiveQuery]
_SCOPES = {"deliveries": "read", "queue": "admin", "jobs": "read", "processes": "operator", "runs": "read"}
_OPEN_TO_PEOPLE = frozenset({"deliveries"})


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
    async for item in sse.with_heartbeats(changes, request.options.heartbeat, forced_end(request)):
        await response.write(sse.HEARTBEAT if item is None else _event(*item))


def _event(event_id: str, change: LiveChange) -> bytes:
    data = {"id": change.key.id, "state": change.state, "version": change.version} if change.key else {}
    return sse.encode_event(event_id, change.topic, json.encode(data))


def _topics(request: LiveRequest) -> list[str]:
    """Read the topics of a stream. Raises InvalidFields WRONG_VALUE, Forbidden NOT_FOR_PEOPLE, SCOPE_MISSING."""
    topics = request.query.topics.split(",")
    for topic in topics:
        if topic not in TOPICS:
            raise invalid_field("topics", "WRONG_VALUE", f"Topics are {', '.join(TOPICS)}, separated by commas.")
        if request.identity.person and topic not in _OPEN_TO_PEOPLE:
            raise Forbidden("NOT_FOR_PEOPLE", f"The topic {topic} needs an API key.", "topics")
        if not request.key.may_read(_SCOPES[topic]):
            raise Forbidden("SCOPE_MISSING", f"The topic {topic} needs the scope {_SCOPES[topic]}.", "topics")
    return topics


def _sees(request: LiveRequest) -> Callable[[LiveChange], bool]:
    """Return whether the caller may see a change."""
    identity = request.identity

    def sees(change: LiveChange) -> bool:
        if change.key is None:
            return True
        return change.tenant == identity.tenant and identity.may_see_deliveries_of(change.key.sender)

    return sees


ROUTES: Routes = (
    Route("GET", "/v1/live", "What changes while a console is open; Last-Event-ID resumes it", "", follow, 200,
          sse.CONTENT_TYPE, query=LiveQuery, people=People.OWN),
)  # fmt: skip
