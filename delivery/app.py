"""The HTTP API as an aiohttp application. `cli` builds it, runs it (`delivery.http.server`) and stops it."""

import re
from collections.abc import Mapping
from functools import cache, partial

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler

from delivery import openapi
from delivery.console import files as console_files
from delivery.http.context import ApiContext
from delivery.http.endpoint import make_handler
from delivery.http.metrics import Metrics
from delivery.http.options import Options
from delivery.http.rate_limit import RateLimiter
from delivery.http.responses.middleware import (
    compress_json,
    count_requests,
    handle_expect,
    no_route,
    refuse_method,
    respond_to_errors,
)
from delivery.http.responses.scim import respond_as_scim
from delivery.http.route import OpenRoute, Route
from delivery.http.services import ApiServices
from delivery.routes import EVERY_ROUTE

METRICS = web.AppKey("metrics", Metrics)
"""The metrics of an application."""


def build(services: ApiServices, options: Options | None = None) -> web.Application:
    """Return the application. When it is shut down, open streams end at once."""
    options = options or Options()
    context = ApiContext(
        services, options, Metrics(), RateLimiter(options.rate, options.burst), partial(_openapi, options.version)
    )
    middlewares = (count_requests(context.metrics), compress_json, respond_as_scim, respond_to_errors)
    app = web.Application(client_max_size=options.body_limit, middlewares=middlewares)
    app[METRICS] = context.metrics
    handlers: dict[str, dict[str, Handler]] = {}
    for route in EVERY_ROUTE:
        of_path = handlers.setdefault(route.path, {})
        of_path[route.method] = _handler_of(route, context)
        if route.permits_head:
            of_path[hdrs.METH_HEAD] = of_path[route.method]
    for path in sorted(handlers, key=_order):
        _add(app, path, {**handlers[path], hdrs.METH_ANY: refuse_method(handlers[path])})
    of_console = dict.fromkeys((hdrs.METH_GET, hdrs.METH_HEAD), console_files.serve)
    _add(app, console_files.PATH, {**of_console, hdrs.METH_ANY: refuse_method(of_console)})
    _add(app, "/{rest}", {hdrs.METH_ANY: no_route})

    async def close_streams(app: web.Application) -> None:
        context.closing.set()

    app.on_shutdown.append(close_streams)
    return app


def _handler_of(route: Route | OpenRoute, context: ApiContext) -> Handler:
    return make_handler(route, context) if isinstance(route, Route) else route.make_handler(context)


@cache
def _openapi(version: str) -> bytes:
    """Return the OpenAPI document, made when it is first asked for: that takes 0.1 s."""
    return openapi.encode(EVERY_ROUTE, version)


def _order(path: str) -> tuple[int, int]:
    """Return the place of a path in the order: an address belongs to the first path that it matches, and
    `/v1/deliveries/bulk` is not the delivery named bulk.
    """
    return path.count("{"), -len(path)


def _add(app: web.Application, path: str, handlers: Mapping[str, Handler]) -> None:
    resource = app.router.add_resource(re.sub(r"\{(\w+)\}", _parameter, path))
    for method, handler in handlers.items():
        resource.add_route(method, handler, expect_handler=handle_expect)


def _parameter(name: re.Match[str]) -> str:
    """Return the pattern of a parameter: up to the next slash; `rest` all that is left. aiohttp's default would stop at
    a brace.
    """
    return f"{{{name[1]}:{'.*' if name[1] == 'rest' else '[^/]+'}}}"
