"""The arguments of a handler: the context of the process, and one authenticated, validated request."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import unquote, urlencode

from aiohttp import hdrs, web
from msgspec import Struct, json

from core.admission.api_keys import ApiKey
from core.errors import Forbidden, Invalid, NotFound
from core.model.delivery import Repeat
from core.model.history_key import HistoryKey, Id
from core.orders import Caller
from core.sessions import Identity
from delivery.http.metrics import Metrics
from delivery.http.options import Options
from delivery.http.rate_limit import RateLimiter
from delivery.http.services import ApiServices

B = TypeVar("B")
Q = TypeVar("Q")

encode = json.Encoder().encode

NO_CONTENT = 204
JSON_HEADERS = {"Content-Type": "application/json"}
_READS = (hdrs.METH_GET, hdrs.METH_HEAD)


@dataclass(slots=True)
class ApiContext:
    """The objects that all requests of one process share."""

    services: ApiServices
    options: Options
    metrics: Metrics
    rate_limiter: RateLimiter
    openapi: Callable[[], bytes]  # returns the document
    closing: asyncio.Event = field(default_factory=asyncio.Event)  # set when the process ends; streams end then


class ApiRequest(Struct):
    """One authenticated request, without its body. `http` is aiohttp's request."""

    http: web.Request
    context: ApiContext
    identity: Identity

    @property
    def services(self) -> ApiServices:
        return self.context.services

    @property
    def options(self) -> Options:
        return self.context.options

    @property
    def key(self) -> ApiKey:
        return self.identity.key

    @property
    def tenant(self) -> str:
        return self.identity.tenant

    @property
    def reaches_all_tenants(self) -> bool:
        """Return whether the request may reach what belongs to other tenants: an operator's, and inspect's for
        reading."""
        return self.key.is_operator or (self.http.method in _READS and "inspect" in self.key.scopes)

    @property
    def caller(self) -> Caller:
        key = self.key
        return Caller(
            key.tenant, is_admin=key.permits("admin"), may_be_urgent=key.permits("urgent"), person=self.identity.person
        )

    @property
    def history_key(self) -> HistoryKey:
        """The delivery that the address names. Raises `NotFound`, also for what is no history key, and for a delivery
        of another person.
        """
        raw = self.http.rel_url.raw_parts[3]  # /v1/deliveries/<id>: raw, since an id has escapes of its own
        return self.own_history_key(unquote(raw) if raw.startswith("history") else raw)

    @property
    def senders_history_key(self) -> HistoryKey:
        """The delivery that the address names, for what only its sender sees. Raises `NotFound`."""
        if not self.identity.acts_for(self.history_key.sender):
            raise _history_not_found()
        return self.history_key

    def own_history_key(self, text: str) -> HistoryKey:
        """Return the key of a delivery that the caller may see, or change if this is no GET. Raises `NotFound` for all
        others.
        """
        key, identity = parse_history_key(text), self.identity
        is_allowed = identity.may_see_deliveries_of if self.http.method in _READS else identity.acts_for
        if not is_allowed(key.sender):
            raise _history_not_found()
        return key

    def check_own(self, sender: Id, path: str) -> None:
        """Check that a person acts only as itself. Raises `Forbidden` NOT_YOURSELF."""
        if not self.identity.acts_for(sender):
            raise Forbidden("NOT_YOURSELF", "A person sends and reads only in its own name.", path)


class Request(ApiRequest, Generic[B, Q]):
    """One authenticated, validated request. `body` and `query` have the types that the route declares."""

    body: B
    query: Q
    repeat: Repeat | None = None  # set if there is an Idempotency-Key and the route handles it itself


AnyRequest = Request[Any, Any]
"""The request of a route of which only the table knows the types."""


def parse_history_key(text: str) -> HistoryKey:
    """Return the key of a delivery. Keys are opaque to clients, so a malformed one is an unknown one. Raises
    `NotFound`."""
    try:
        return HistoryKey.parse(text)
    except Invalid:
        raise _history_not_found() from None


def _history_not_found() -> NotFound:
    return NotFound("HISTORY_NOT_FOUND", "There is no such delivery.")


class Response(Struct):
    """A JSON response. `body` is anything that msgspec encodes; a response with status 204 has none."""

    body: object
    status: int = 200
    headers: Mapping[str, str] | None = None

    def encode(self) -> web.Response:
        return self.with_body(self.encoded_body())

    def encoded_body(self) -> bytes:
        return b"" if self.status == NO_CONTENT else encode(self.body)

    def with_body(self, body: bytes) -> web.Response:
        """Return the response whose body was encoded before."""
        if self.status == NO_CONTENT:
            return web.Response(status=NO_CONTENT, headers=self.headers)
        headers = {**JSON_HEADERS, **self.headers} if self.headers else JSON_HEADERS
        return web.Response(status=self.status, body=body, headers=headers)


def no_content() -> Response:
    """Return the response to a write that returns nothing."""
    return Response(None, NO_CONTENT)


def next_page_link(request: web.Request, cursor: str | None) -> Mapping[str, str] | None:
    """Return the Link header (RFC 8288) to the next page; None on the last page."""
    if cursor is None:
        return None
    rest = [(name, value) for name, value in request.rel_url.query.items() if name != "cursor"]
    return {"Link": f'<{request.rel_url.raw_path}?{urlencode([*rest, ("cursor", cursor)])}>; rel="next"'}
