"""The HTTP API as an aiohttp application. `cli` builds it, runs it and stops it.

Before: callers. After: the house (`core`), through the services of `delivery.house`.
"""

import re
from collections.abc import Awaitable, Callable

from aiohttp import web

from delivery import document
from delivery.api import OPEN_ROUTES, ROUTES
from delivery.calls import Desk
from delivery.gate import answer_all, enter
from delivery.house import House
from delivery.metrics import Metrics
from delivery.options import Options
from delivery.pace import Pace


def build(house: House, options: Options | None = None) -> web.Application:
    """The application, ready to be run. When it is shut down, open streams end at once."""
    options = options or Options()
    described = document.written((*ROUTES, *OPEN_ROUTES), options.version)
    desk = Desk(house, options, Metrics(), Pace(options.rate, options.burst), described)
    app = web.Application(client_max_size=options.body_limit, middlewares=[answer_all(desk)])
    for route in ROUTES:
        app.router.add_route(route.method, _whole_segments(route.path), enter(route, desk))
    for open_route in OPEN_ROUTES:
        app.router.add_route(open_route.method, open_route.path, open_route.make(desk))
    app.on_shutdown.append(_closing(desk))
    return app


def _whole_segments(path: str) -> str:
    """A parameter takes whatever is between two slashes; by the library's own rule it would stop at a brace."""
    return re.sub(r"\{(\w+)\}", r"{\1:[^/]+}", path)


def _closing(desk: Desk) -> Callable[[web.Application], Awaitable[None]]:
    async def close(app: web.Application) -> None:
        desk.closing.set()

    return close
