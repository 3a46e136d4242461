"""The types of the route table, which the resources of the API fill. Registration, checks and the OpenAPI document come
from that one table.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler
from msgspec import Struct

from delivery.http.context import AnyRequest, ApiContext, Request, Response
from delivery.http.responses import downloads, ndjson, sse

_QUESTIONS = frozenset(
    {
        "/v1/track",
        "/v1/deliveries/preview",
        "/v1/series/preview",
        "/v1/scenarios:dry-run",
        "/v1/jobs/{job_id}/queries/{name}",
    }
)
"""The paths to which a question is posted; they change nothing."""

_STREAMS = frozenset({downloads.CONTENT_TYPE, ndjson.CONTENT_TYPE, sse.CONTENT_TYPE})

Endpoint = Callable[[AnyRequest], Awaitable[Response | web.StreamResponse]]


class Repeats(Enum):
    """The effect of an Idempotency-Key on a route."""

    NONE = "nothing: the route writes nothing"
    STORED = "the first response is stored and returned again"
    OWN = "the endpoint passes the key to core, which checks it in the same step as the write"


class People(Enum):
    """The rights of a person who is signed in on a route. Programs are held only to the scope of the route."""

    REFUSED = "nothing: the route is for programs and operators"
    OWN = "only what is its own: the endpoint checks it"
    BY_SCOPE = "what a key with the scope may do; the person's role has the scope or not"


class NoParameters(Struct, forbid_unknown_fields=True):
    """The query of a route without parameters."""


PlainRequest = Request[None, NoParameters]
"""A request without a body and parameters."""


@dataclass(frozen=True, slots=True)
class Route:
    """An operation that needs an API key with `scope` ("": any), or a session with its rights."""

    method: str
    path: str
    summary: str
    scope: str
    endpoint: Endpoint
    status: int = 200
    response: type | str = ""  # a Struct, dict for no fixed fields, the media type of a stream; none with 204
    body: type[Struct] | None = None
    body_is_optional: bool = False
    query: type[Struct] = NoParameters
    repeats: Repeats = Repeats.NONE
    people: People = People.REFUSED
    headers: Mapping[str, str] = field(default_factory=dict)  # of the response: name → description
    upload: str = ""  # the media type of a body that the endpoint reads itself
    repeat_status: int = 0  # the status if what was posted is known already; the response is the same; 0: `status`
    lines: tuple[type[Struct], type[Struct]] | None = None  # NDJSON: the type of a line, and of its response

    @property
    def reads(self) -> bool:
        """Return whether it changes nothing: GET, and POST where the question is in the body."""
        return self.method == hdrs.METH_GET or self.path in _QUESTIONS

    @property
    def permits_head(self) -> bool:
        """Return whether HEAD gets the headers of GET. A stream has none before it is written."""
        return self.method == hdrs.METH_GET and self.response not in _STREAMS


@dataclass(frozen=True, slots=True)
class OpenRoute:
    """An operation that needs no API key. `make_handler` gets the context and returns the handler."""

    method: str
    path: str
    summary: str
    make_handler: Callable[[ApiContext], Handler]
    response: type | str
    query: type[Struct] = NoParameters
    body: type[Struct] | None = None  # for the document; the handler reads the body itself
    status: int = 200
    upload: str = ""  # the media type of a body that the handler reads itself
    acts: bool = False  # a GET that changes something, as the other side prescribes it

    @property
    def permits_head(self) -> bool:
        """Return whether HEAD gets the headers of GET (RFC 9110, section 9.3.2): monitors ask with it."""
        return self.method == hdrs.METH_GET and not self.acts


Routes = Sequence[Route | OpenRoute]

NEW_OBJECT = {"Location": "The address of the new object."}
NEXT_PAGE = {"Link": "The next page, rel=next (RFC 8288); absent on the last."}
