"""Every request ends in an answer, and every answer that is no success is a problem document.

This wraps each handler once. The library's middlewares would do the same at twice the cost, and would not see what it
refuses by itself: an address that is not there, an expectation.

After: `delivery.http.endpoint`, or the handler itself where no key is needed.
"""

import logging
import math
import time
from collections.abc import Awaitable, Callable, Mapping

from aiohttp import hdrs, web

from core.errors import Refused, StoreFull, StoreUnavailable
from delivery.http.metrics import Metrics
from delivery.http.problems import NOTHING_WRITTEN, UNCLEAR, of_http, of_refusal, problem

log = logging.getLogger(__name__)

Plain = Callable[[web.Request], Awaitable[web.StreamResponse]]


class TooFast(Refused):
    """The key asks too often. `wait`: seconds until the next is let through; `fields`: the RateLimit fields."""

    def __init__(self, wait: float, fields: Mapping[str, str]) -> None:
        super().__init__("RATE_EXCEEDED", f"The next request is welcome in {wait:.3f} s.")
        self.wait = wait
        self.fields = fields


def answered(handler: Plain, path: str, metrics: Metrics) -> Plain:
    """`handler` with its failures told and its answers counted under `path`."""

    async def answering(request: web.Request) -> web.StreamResponse:
        start = time.perf_counter()
        metrics.in_progress += 1
        try:
            response = await handler(request)
        except ConnectionError:
            raise  # the caller has gone; there is nobody to tell
        except Exception as failed:  # noqa: BLE001  # the top of the process: the caller must not see our insides
            response = _told(failed, request, path)
        finally:
            metrics.in_progress -= 1
        metrics.count(request.method, path, response.status, time.perf_counter() - start)
        return response

    return answering


def _told(failed: Exception, request: web.Request, path: str) -> web.StreamResponse:
    response = _problem_of(failed) or _fault_of_ours(failed, request, path)
    if request.writer.output_size:
        raise ConnectionAbortedError("the answer has begun; it can only be broken off") from failed
    return response


def _problem_of(failed: Exception) -> web.StreamResponse | None:
    match failed:
        case Refused():
            return _refusal(failed)
        case web.HTTPException():
            return failed if failed.status < 400 else of_http(failed.status).response()
        case web.RequestPayloadError():
            return problem("BODY_MALFORMED", f"The body could not be received: {type(failed).__name__}.").response()
        case StoreUnavailable():
            return problem("STORE_UNAVAILABLE", UNCLEAR).response({hdrs.RETRY_AFTER: "1"})
        case StoreFull():
            return problem("STORE_FULL", NOTHING_WRITTEN).response({hdrs.RETRY_AFTER: "10"})
    return None


def _refusal(refused: Refused) -> web.Response:
    told = of_refusal(refused)
    if told.status == 401:
        return told.response({hdrs.WWW_AUTHENTICATE: 'Bearer realm="ada"'})
    if isinstance(refused, TooFast):
        return told.response({"Retry-After": str(math.ceil(refused.wait)), **refused.fields})
    return told.response()


def _fault_of_ours(failed: Exception, request: web.Request, path: str) -> web.Response:
    log.error("%s %s", request.method, path, exc_info=failed)
    return problem("INTERNAL", "It is logged.").response()


# what has no handler


async def nowhere(request: web.Request) -> web.StreamResponse:
    """Whatever no route takes: the address is not there, or does not have that method."""
    if allowed := await _methods(request):
        return problem("METHOD_NOT_ALLOWED", f"It has {allowed}.").response({hdrs.ALLOW: allowed})
    return problem("ROUTE_NOT_FOUND", "See /docs for the addresses there are.").response()


async def _methods(request: web.Request) -> str:
    allowed: set[str] = set()
    for resource in request.app.router.resources():
        _, methods = await resource.resolve(request)
        allowed |= methods
    return ", ".join(sorted(allowed - {hdrs.METH_ANY}))


async def expected(request: web.Request) -> web.StreamResponse | None:
    """Expect: only 100-continue (RFC 9110, section 10.1.1)."""
    if request.headers[hdrs.EXPECT].lower() != "100-continue":
        return problem("EXPECTATION_FAILED", "Only 100-continue can be expected.").response()
    await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    request.writer.output_size = 0  # the answer itself has not begun
    return None
