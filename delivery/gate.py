"""The gate every request passes: who asks, may he, how fast, what does he ask; whatever happens is told as a problem.

answer_all (outermost: faults → problems, figures)
  └── enter (per route: key → scope → pace → body and query → first time or repeat → handler)
"""

import hashlib
import logging
import math
import time
from typing import Any

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler, Middleware

from core.errors import Forbidden, Refused, StoreUnavailable
from core.orders import Repeat
from delivery import media
from delivery.answers import encode
from delivery.calls import Call, Desk, Reply
from delivery.house import Key
from delivery.problems import fault, of_http, of_refusal, problem
from delivery.reading import QueryReader, Reader
from delivery.routes import HandlerOfCall, Repeats, Route

log = logging.getLogger(__name__)

IDEMPOTENCY_KEY = "Idempotency-Key"
_JSON = {"Content-Type": "application/json"}
_REPLAYED = {**_JSON, "Idempotency-Replayed": "true"}


class TooFast(Refused):
    """The key asks too often. `wait`: seconds until the next request is let through."""

    def __init__(self, wait: float) -> None:
        super().__init__("RATE_EXCEEDED", f"The next request is welcome in {wait:.3f} s.")
        self.wait = wait


# outermost


def answer_all(desk: Desk) -> Middleware:
    """Every request ends in an answer, and every answer that is not a success in a problem document."""

    @web.middleware
    async def answering(request: web.Request, handler: Handler) -> web.StreamResponse:
        start = time.perf_counter()
        desk.metrics.in_progress += 1
        try:
            response = await _answer(request, handler)
        finally:
            desk.metrics.in_progress -= 1
        desk.metrics.count(request.method, _route_of(request), response.status, time.perf_counter() - start)
        return response

    return answering


async def _answer(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except ConnectionError:
        raise  # the caller has gone; there is nobody to tell
    except Exception as failed:  # the top of the process: the caller must not see our insides
        response = _told(failed, request)
        if request.writer.output_size:
            raise ConnectionAbortedError("the answer has begun; it can only be broken off") from failed
        return response


def _told(failed: Exception, request: web.Request) -> web.StreamResponse:
    match failed:
        case Refused():
            return _refusal(failed)
        case web.HTTPException():
            return _http_refusal(failed)
        case web.RequestPayloadError():
            return problem("BODY_MALFORMED", f"The body could not be received: {type(failed).__name__}.").response()
        case StoreUnavailable():
            return problem("STORE_UNAVAILABLE", "It is safe to repeat the request.").response({hdrs.RETRY_AFTER: "1"})
    log.error("%s %s", request.method, _route_of(request), exc_info=failed)
    return problem("INTERNAL", "It is logged.").response()


def _refusal(refused: Refused) -> web.Response:
    told = of_refusal(refused)
    if told.status == 401:
        return told.response({hdrs.WWW_AUTHENTICATE: 'Bearer realm="ada"'})
    if isinstance(refused, TooFast):
        return told.response({hdrs.RETRY_AFTER: str(math.ceil(refused.wait))})
    return told.response()


def _http_refusal(refused: web.HTTPException) -> web.StreamResponse:
    if refused.status < 400:
        return refused
    allowed = refused.headers.get(hdrs.ALLOW)
    return of_http(refused.status).response({hdrs.ALLOW: allowed} if allowed else None)


def _route_of(request: web.Request) -> str:
    resource = request.match_info.route.resource
    return resource.canonical if resource else "unknown"


# per route


def enter(route: Route, desk: Desk) -> Handler:
    """The handler that the HTTP library calls for `route`."""
    body = Reader(route.body) if route.body else None
    query = QueryReader(route.query)

    async def entering(request: web.Request) -> web.StreamResponse:
        key = await admit(request, route, desk)
        raw = await _receive(request, desk) if body or route.repeats is Repeats.STORED else b""
        asked = query.read(request.rel_url.query.items() if request.rel_url.raw_query_string else ())
        call = Call(request, desk, key, body.read(raw) if body and (raw or not route.optional) else None, asked)
        return await _perform(route, call, raw)

    return entering


async def admit(request: web.Request, route: Route, desk: Desk) -> Key:
    """Whose key came with the request. Raises `Forbidden` KEY_…, SCOPE_MISSING, `TooFast`."""
    key = await desk.house.access.find(_secret(request))
    if key is None:
        raise Forbidden("KEY_UNKNOWN", "This API key is not known, or was revoked.")
    if route.scope not in key.scopes and "admin" not in key.scopes:
        raise Forbidden("SCOPE_MISSING", f"This needs a key with the scope {route.scope}.")
    if desk.options.rate and (wait := desk.pace.take(key.id, time.monotonic())):
        raise TooFast(wait)
    return key


def _secret(request: web.Request) -> str:
    scheme, _, secret = request.headers.get(hdrs.AUTHORIZATION, "").partition(" ")
    if scheme.lower() != "bearer" or not secret:
        raise Forbidden("KEY_MISSING", "An API key is wanted: Authorization: Bearer KEY.")
    return secret.strip()


async def _receive(request: web.Request, desk: Desk) -> bytes:
    media.check(request.headers, media.JSON, bodiless=not request.body_exists)
    if (request.content_length or 0) > desk.options.body_limit:
        raise Refused("BODY_TOO_LARGE", f"At most {desk.options.body_limit} bytes are allowed.")
    return await request.read()


async def _perform(route: Route, call: Call[Any, Any], raw: bytes) -> web.StreamResponse:
    if route.repeats is Repeats.NONE:
        return _respond(await route.handler(call))
    name = call.request.headers.get(IDEMPOTENCY_KEY)
    if name is None:
        return _respond(await route.handler(call))
    call.repeat = Repeat(checked(name), _fingerprint(call.request, raw))
    if route.repeats is Repeats.OWN:
        return _respond(await route.handler(call))
    return await _once(call, call.repeat, route.handler)


def checked(name: str) -> str:
    """An Idempotency-Key. Raises `Faulty`."""
    if not name or len(name) > 255 or not name.isascii() or not name.isprintable():
        raise fault(IDEMPOTENCY_KEY, "IDEMPOTENCY_KEY_MALFORMED", "1 to 255 visible ASCII characters are wanted.")
    return name


def _fingerprint(request: web.Request, raw: bytes) -> str:
    digest = hashlib.blake2b(f"{request.method} {request.rel_url.raw_path_qs}\n".encode(), digest_size=16)
    digest.update(raw)
    return digest.hexdigest()


async def _once(call: Call[Any, Any], repeat: Repeat, handler: HandlerOfCall) -> web.StreamResponse:
    """Answer the first time and its repeats alike.

    A refusal wrote nothing, so it is forgotten and its repeat is tried anew.
    """
    idempotency = call.house.idempotency
    stored = await idempotency.begin(call.tenant, repeat.key, repeat.fingerprint)
    if stored is not None:
        return web.Response(status=stored.status, body=stored.body, headers=_REPLAYED)
    try:
        reply = await handler(call)
        assert isinstance(reply, Reply), "a stream can not be kept for repeats"
        body = encode(reply.body)
    except BaseException:
        await idempotency.forget(call.tenant, repeat.key)
        raise
    await idempotency.finish(call.tenant, repeat.key, repeat.fingerprint, reply.status, body)
    return web.Response(status=reply.status, body=body, headers={**_JSON, **(reply.headers or {})})


def _respond(reply: Reply | web.StreamResponse) -> web.StreamResponse:
    if isinstance(reply, Reply):
        return web.Response(status=reply.status, body=encode(reply.body), headers={**_JSON, **(reply.headers or {})})
    return reply
