"""The HTTP API as an aiohttp application: each endpoint authenticates, reads the body and the query, handles the
Idempotency-Key and responds. `cli` builds the application, runs it (`delivery.http.server`) and stops it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler
from msgspec import Struct

from delivery import openapi
from delivery.console import files as console_files
from delivery.http.action_log import is_logged, write_action
from delivery.http.authentication import authenticate
from delivery.http.context import AnyRequest, ApiContext, ApiServices, Request, Response
from delivery.http.decoding import JSON_TYPES, BodyReader, QueryReader, check_content_type
from delivery.http.idempotency import IDEMPOTENCY_KEY, repeat_of, respond_once
from delivery.http.metrics import Metrics
from delivery.http.options import Options
from delivery.http.rate_limit import RateLimiter, add_rate_limit
from delivery.http.receiving import read_body
from delivery.http.responses.middleware import (
    compress_json,
    count_requests,
    handle_expect,
    no_route,
    refuse_method,
    respond_to_errors,
)
from delivery.http.responses.problems import respond_as_scim
from delivery.http.route import OpenRoute, Repeats, Route
from delivery.routes import EVERY_ROUTE

METRICS = web.AppKey("metrics", Metrics)
"""The metrics of an application."""

_HANDLERS = web.AppKey("handlers", dict[tuple[str, str], Handler])
"""The handlers of an application, by path and method."""


def build(services: ApiServices, options: Options | None = None) -> web.Application:
    """Return the application. When it is shut down, open streams end at once."""
    options = options or Options()
    context = ApiContext(
        services, options, Metrics(), RateLimiter(options.rate, options.burst), partial(_openapi, options.version)
    )
    middlewares = (count_requests(context.metrics), compress_json, respond_as_scim, respond_to_errors)
    app = web.Application(client_max_size=options.body_limit, middlewares=middlewares)
    app[METRICS] = context.metrics
    app[_HANDLERS] = dict(_handlers(context))
    for resource in _addresses().resources():
        app.router.register_resource(resource)

    async def close_streams(app: web.Application) -> None:
        context.closing.set()

    app.on_shutdown.append(close_streams)
    return app


def _handlers(context: ApiContext) -> Iterator[tuple[tuple[str, str], Handler]]:
    for route in EVERY_ROUTE:
        handler = make_handler(route, context) if isinstance(route, Route) else route.make_handler(context)
        for method in _methods_of(route):
            yield (route.path, method), handler


def _methods_of(route: Route | OpenRoute) -> Sequence[str]:
    return (route.method, hdrs.METH_HEAD) if route.permits_head else (route.method,)


@cache
def _addresses() -> web.UrlDispatcher:
    """Return the addresses with their methods. They are the same in all applications, and tests open many."""
    router = web.UrlDispatcher()
    methods: dict[str, list[str]] = {}
    for route in EVERY_ROUTE:
        methods.setdefault(route.path, []).extend(_methods_of(route))
    for path in sorted(methods, key=_order):
        _add(router, path, dict.fromkeys(methods[path], _handle))
    _add(router, console_files.PATH, dict.fromkeys((hdrs.METH_GET, hdrs.METH_HEAD), console_files.serve))
    _add(router, "/{rest}", {}, no_route)
    return router


async def _handle(request: web.Request) -> web.StreamResponse:
    route = request.match_info.route
    assert route.resource is not None, "every route has an address"
    return await request.app[_HANDLERS][route.resource.canonical, route.method](request)


@cache
def _openapi(version: str) -> bytes:
    """Return the OpenAPI document, made when it is first asked for: that takes 0.1 s."""
    return openapi.encode(EVERY_ROUTE, version)


def _order(path: str) -> tuple[int, int]:
    """Return the place of a path in the order: an address belongs to the first path that it matches, and
    `/v1/deliveries/bulk` is not the delivery named bulk.
    """
    return path.count("{"), -len(path)


def _add(
    router: web.UrlDispatcher, path: str, handlers: Mapping[str, Handler], otherwise: Handler | None = None
) -> None:
    """Add an address. `otherwise` handles all other methods; None refuses them."""
    resource = router.add_resource(re.sub(r"\{(\w+)\}", _parameter, path))
    for method, handler in {**handlers, hdrs.METH_ANY: otherwise or refuse_method(handlers)}.items():
        resource.add_route(method, handler, expect_handler=handle_expect)


def _parameter(name: re.Match[str]) -> str:
    """Return the pattern of a parameter: up to the next slash; `rest` all that is left. aiohttp's default would stop at
    a brace.
    """
    return f"{{{name[1]}:{'.*' if name[1] == 'rest' else '[^/]+'}}}"


def make_handler(route: Route, context: ApiContext) -> Handler:
    body_reader = BodyReader(route.body) if route.body else None
    query_reader = _query_reader(route.query)

    async def handle(http: web.Request) -> web.StreamResponse:
        identity = await authenticate(http, route.scope, context, route.people, reads=route.reads)
        raw = await _raw_body(http, route, context.options)
        body = await body_reader.read(raw) if body_reader and (raw or not route.body_is_optional) else None
        request = Request(http, context, identity, body, query_reader.read(http.rel_url.query.items()))
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


@cache
def _query_reader(shape: type[Struct]) -> QueryReader[Struct]:
    """Return the reader of one type; several routes share a type, and tests open many applications."""
    return QueryReader(shape)


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
