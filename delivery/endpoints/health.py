"""Whether this process lives, whether it can work, and its figures. No key is needed: nothing here is about anybody."""

from collections.abc import Awaitable, Callable

from aiohttp import hdrs, web

from delivery.http import metrics
from delivery.http.context import Desk
from delivery.http.problems import problem
from delivery.schemas.responses import Alive, encode

Plain = Callable[[web.Request], Awaitable[web.Response]]


def _well() -> web.Response:
    return web.Response(body=encode(Alive("ok")), headers={hdrs.CONTENT_TYPE: "application/json"})


def live(desk: Desk) -> Plain:
    """Whether the process answers. It never asks the store: a restart would not mend that."""

    async def living(request: web.Request) -> web.Response:
        return _well()

    return living


def ready(desk: Desk) -> Plain:
    """Whether requests should be sent here: the store answers and the process is not ending."""

    async def readying(request: web.Request) -> web.Response:
        if desk.closing.is_set():
            return problem("SHUTTING_DOWN", "Ask another process.").response()
        if not await desk.services.store.ping():
            return problem("STORE_UNAVAILABLE", "The store does not answer.").response({hdrs.RETRY_AFTER: "1"})
        return _well()

    return readying


def figures(desk: Desk) -> Plain:
    """The figures of this process, for Prometheus."""

    async def telling(request: web.Request) -> web.Response:
        return web.Response(body=desk.metrics.tell().encode(), headers={hdrs.CONTENT_TYPE: metrics.CONTENT_TYPE})

    return telling
