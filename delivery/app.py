"""The HTTP API as an aiohttp application. `cli` builds it, runs it and stops it.

Before: callers. After: the services (`core`), through the services of `delivery.services`.
"""

import re
from collections.abc import Awaitable, Callable

from aiohttp import hdrs, web

from delivery import openapi as document
from delivery.http.context import Desk
from delivery.http.endpoint import enter
from delivery.http.error_handling import Plain, answered, expected, nowhere
from delivery.http.metrics import Metrics
from delivery.http.options import Options
from delivery.http.rate_limit import Pace
from delivery.http.server import STRAIGHT
from delivery.routes import OPEN_ROUTES, ROUTES
from delivery.services import Services


def build(services: Services, options: Options | None = None) -> web.Application:
    """The application, ready to be run. When it is shut down, open streams end at once."""
    options = options or Options()
    described = document.written((*ROUTES, *OPEN_ROUTES), options.version)
    desk = Desk(services, options, Metrics(), Pace(options.rate, options.burst), described)
    app = web.Application(client_max_size=options.body_limit)
    app[STRAIGHT] = {}
    for route in ROUTES:
        _add(app, desk, route.method, route.path, enter(route, desk))
    for open_route in OPEN_ROUTES:
        _add(app, desk, open_route.method, open_route.path, open_route.make(desk))
    _add(app, desk, hdrs.METH_ANY, "/{rest}", nowhere)
    app.on_shutdown.append(_closing(desk))
    return app


def _add(app: web.Application, desk: Desk, method: str, path: str, handler: Plain) -> None:
    answering = answered(handler, path, desk.metrics)
    pattern = re.sub(r"\{(\w+)\}", _parameter, path)
    app.router.add_route(method, pattern, answering, expect_handler=expected)
    if pattern == path:
        app[STRAIGHT][method, path] = answering


def _parameter(found: re.Match[str]) -> str:
    """Whatever is between two slashes, or all the rest; by the library's own rule it would stop at a brace."""
    return f"{{{found[1]}:{'.*' if found[1] == 'rest' else '[^/]+'}}}"


def _closing(desk: Desk) -> Callable[[web.Application], Awaitable[None]]:
    async def close(app: web.Application) -> None:
        desk.closing.set()

    return close
