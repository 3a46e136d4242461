"""Liveness, readiness and metrics of this process. No key is needed: nothing here is about a tenant."""

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler

from delivery.http import metrics
from delivery.http.context import Context, Response
from delivery.http.problems import problem, respond
from delivery.schemas import responses

_OK = Response(responses.HealthResponse("ok"))


def live(context: Context) -> Handler:
    """Whether the process answers. It does not ask the store: a restart would not repair the store."""

    async def handle(request: web.Request) -> web.Response:
        return _OK.encode()

    return handle


def ready(context: Context) -> Handler:
    """Whether requests should be sent here: the store answers, and the process is not shutting down."""

    async def handle(request: web.Request) -> web.Response:
        if context.closing.is_set():
            return respond(problem("SHUTTING_DOWN", "Use another process."))
        if not await context.services.store.ping():
            return respond(problem("STORE_UNAVAILABLE", "The store does not answer."), {hdrs.RETRY_AFTER: "1"})
        return _OK.encode()

    return handle


def show_metrics(context: Context) -> Handler:
    """The metrics, for Prometheus."""

    async def handle(request: web.Request) -> web.Response:
        return web.Response(body=context.metrics.render(), headers={hdrs.CONTENT_TYPE: metrics.CONTENT_TYPE})

    return handle
