"""Makes an aiohttp handler of a route: authenticate, read the body and the query, handle the Idempotency-Key, respond.

Called inside `delivery.http.responses.middleware`; calls the endpoint of the route.
"""

from collections.abc import Awaitable, Callable
from functools import cache

from aiohttp import web
from aiohttp.typedefs import Handler
from msgspec import Struct

from delivery.http.action_log import is_logged, write_action
from delivery.http.authentication import authenticate
from delivery.http.context import AnyRequest, ApiContext, Request, Response
from delivery.http.idempotency import IDEMPOTENCY_KEY, repeat_of, respond_once
from delivery.http.input.decoding import JSON_TYPES, BodyReader, QueryReader, check_content_type
from delivery.http.input.receiving import read_body
from delivery.http.options import Options
from delivery.http.rate_limit import add_rate_limit
from delivery.http.route import Repeats, Route


def make_handler(route: Route, context: ApiContext) -> Handler:
    decode_body, decode_query = _body_decoder(route), _query_decoder(route)

    async def handle(http: web.Request) -> web.StreamResponse:
        identity = await authenticate(http, route.scope, context, route.people, reads=route.reads)
        raw = await _raw_body(http, route, context.options)
        request = Request(http, context, identity, await decode_body(raw), decode_query(http))
        response = await _respond(route, request, raw)
        if not response.prepared:
            add_rate_limit(response.headers, context.rate_limiter.headers(identity.key.id))
        return response

    return handle


async def _raw_body(http: web.Request, route: Route, options: Options) -> bytes:
    if route.body is None:
        return b""
    check_content_type(http, JSON_TYPES)
    return await read_body(http, options.body_limit, options.body_timeout)


def _body_decoder(route: Route) -> Callable[[bytes], Awaitable[Struct | None]]:
    reader = BodyReader(route.body) if route.body else None

    async def decode(raw: bytes) -> Struct | None:
        if reader is None or (route.body_is_optional and not raw):
            return None
        return await reader.read(raw)

    return decode


@cache
def _query_reader(shape: type[Struct]) -> QueryReader[Struct]:
    """Return the reader of one type; several routes share a type, and tests open many applications."""
    return QueryReader(shape)


def _query_decoder(route: Route) -> Callable[[web.Request], Struct]:
    reader = _query_reader(route.query)
    return lambda http: reader.read(http.rel_url.query.items())


async def _respond(route: Route, request: AnyRequest, raw: bytes) -> web.StreamResponse:
    async def endpoint(request: AnyRequest) -> Response | web.StreamResponse:
        response = await route.endpoint(request)
        if is_logged(route, request):
            await write_action(route, request, response)
        return response

    key = request.http.headers.get(IDEMPOTENCY_KEY)
    if key is not None and route.repeats is not Repeats.NONE:
        repeat = repeat_of(request.http, key, raw, request.identity)
        if route.repeats is Repeats.STORED:
            return await respond_once(request, repeat, endpoint)
        request.repeat = repeat
    response = await endpoint(request)
    return response.encode() if isinstance(response, Response) else response
