"""The middlewares: every request gets a response, every failure becomes a problem document, every response is counted.

Called by aiohttp; calls `delivery.app`, or the handler itself on a route without a key.
"""

import logging
import math
import time
from collections.abc import Iterable
from datetime import timedelta

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler, Middleware

from core.errors import QuotaExceeded, Refused, StoreRefuses, StoreUnavailable
from core.model.delivery import QuotaState
from delivery.http.metrics import Metrics
from delivery.http.rate_limit import RateExceeded, quota_headers
from delivery.http.responses.problems import (
    OUTCOME_UNKNOWN,
    problem,
    problem_of_refusal,
    problem_of_refused_write,
    problem_of_status,
    respond,
)

log = logging.getLogger(__name__)


def count_requests(metrics: Metrics) -> Middleware:
    """Return the middleware that counts and times responses by route. Must be the outermost one."""

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        start = time.perf_counter()
        with metrics.in_progress.track_inprogress():
            response = await handler(request)
        metrics.count(request.method, route_of(request), response.status, time.perf_counter() - start)
        return response

    return middleware


def route_of(request: web.Request) -> str:
    """Return the path of the route with its parameters unfilled: a label of bounded variety."""
    resource = request.match_info.route.resource
    return resource.canonical if resource else "unknown"


@web.middleware
async def respond_to_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn every exception into a problem document. A response that has begun can only be broken off."""
    try:
        return await handler(request)
    except ConnectionError:
        raise  # the client is gone
    except Exception as error:  # the top of the process: no detail of it may reach the client
        response = _response_of(error, request) or _internal_error(error, request)
        if request.writer.output_size:
            raise ConnectionAbortedError("the response has begun, so it is broken off") from error
        return response


def _response_of(error: Exception, request: web.Request) -> web.Response | None:
    match error:
        case Refused():
            return _refusal(error)
        case web.HTTPException():
            return respond(problem_of_status(error.status))
        case web.RequestPayloadError():
            return respond(problem("BODY_MALFORMED", f"The body could not be received: {type(error).__name__}."))
        case StoreUnavailable():
            return respond(problem("STORE_UNAVAILABLE", OUTCOME_UNKNOWN), {hdrs.RETRY_AFTER: "1"})
        case StoreRefuses():
            log.warning("%s %s: nothing written: %s", request.method, route_of(request), error)
            return respond(problem_of_refused_write(error), {hdrs.RETRY_AFTER: "10"})
    return None


def _refusal(refused: Refused) -> web.Response:
    document = problem_of_refusal(refused)
    if document.status == 401:
        return respond(document, {hdrs.WWW_AUTHENTICATE: 'Bearer realm="ada"'})
    if document.status == 408:
        response = respond(document)
        response.force_close()  # the rest of the body is not read
        return response
    return respond(document, None if refused.retry_after is None else _limit_headers(refused, refused.retry_after))


def _limit_headers(refused: Refused, wait: timedelta) -> dict[str, str]:
    """Return the headers with the time after which a refused request may be repeated, and the limit it has reached."""
    headers: dict[str, str] = {hdrs.RETRY_AFTER: str(math.ceil(wait.total_seconds()))}
    if isinstance(refused, RateExceeded):
        return headers | dict(refused.headers)
    if isinstance(refused, QuotaExceeded):
        state = QuotaState(refused.limit, refused.limit, wait, refused.period)
        return headers | quota_headers(state)
    return headers


def _internal_error(error: Exception, request: web.Request) -> web.Response:
    log.error("%s %s", request.method, route_of(request), exc_info=error)
    return respond(problem("INTERNAL", "It is logged."))


# requests without a handler


async def no_route(request: web.Request) -> web.StreamResponse:
    """Return the handler of every unknown address."""
    return respond(problem("ROUTE_NOT_FOUND", "See /docs for the addresses."))


def refuse_method(methods: Iterable[str]) -> Handler:
    """Return the handler of a known address for all methods but these."""
    allowed = ", ".join(sorted(methods))

    async def refuse(request: web.Request) -> web.StreamResponse:
        return respond(problem("METHOD_NOT_ALLOWED", f"Allowed: {allowed}."), {hdrs.ALLOW: allowed})

    return refuse


async def handle_expect(request: web.Request) -> web.StreamResponse | None:
    """Handle the Expect header: only 100-continue is supported (RFC 9110, section 10.1.1)."""
    if request.headers[hdrs.EXPECT].lower() != "100-continue":
        return respond(problem("EXPECTATION_FAILED", "Only 100-continue is supported."))
    await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    request.writer.output_size = 0  # the response itself has not begun
    return None


LEAST = 1024
"""Bytes above which a body is compressed: below, a packet is sent either way."""
_TYPES = frozenset({"application/json", "application/problem+json"})


@web.middleware
async def compress_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Compress a large JSON response for clients that accept it. Must be outside `respond_to_errors`."""
    response = await handler(request)
    if isinstance(response, web.Response) and _is_large_json(response):
        response.headers[hdrs.VARY] = hdrs.ACCEPT_ENCODING
        response.enable_compression()
    return response


def _is_large_json(response: web.Response) -> bool:
    body = response.body
    is_large = isinstance(body, bytes) and len(body) > LEAST
    return is_large and response.content_type in _TYPES and hdrs.CONTENT_ENCODING not in response.headers
