"""Liveness, readiness and metrics of this process. No key is needed: nothing here is about a tenant."""

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler

from core.redis.notifications import Notifications, ensure_notifications
from core.redis.server_checks import notification_problem
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
    """Whether requests should be sent here: the store answers, and the process is not shutting down.

    Also sets the server's `notify-keyspace-events` if it was lost, and reports that.
    """

    async def handle(request: web.Request) -> web.Response:
        if context.closing.is_set():
            return respond(problem("SHUTTING_DOWN", "Use another process."))
        if not await context.services.store.ping():
            return respond(problem("STORE_UNAVAILABLE", "The store does not answer."), {hdrs.RETRY_AFTER: "1"})
        return _readiness(await ensure_notifications(context.services.store.command)).encode()

    return handle


def _readiness(state: Notifications) -> Response:
    problem = notification_problem(state)
    if problem is None:
        return Response(responses.ReadinessResponse("ok", changed=state.changed))
    return Response(responses.ReadinessResponse("degraded", missing=str(problem)))


def show_metrics(context: Context) -> Handler:
    """The metrics, for Prometheus."""

    async def handle(request: web.Request) -> web.Response:
        return web.Response(body=context.metrics.render(), headers={hdrs.CONTENT_TYPE: metrics.CONTENT_TYPE})

    return handle
