"""The gate of the calls that need a key: who asks, may he, how fast, what does he ask, and did he ask it before.

Before: `delivery.http.error_handling`. After: the handler of the route.
"""

import hashlib
import logging
import time
from collections.abc import Callable
from typing import Any

from aiohttp import hdrs, web
from msgspec import Struct

from core.errors import Forbidden, Refused, StoreFull
from core.model.delivery import Repeat
from delivery.http import media
from delivery.http.context import Call, Desk, Reply
from delivery.http.decoding import QueryReader, Reader
from delivery.http.error_handling import Plain, TooFast
from delivery.http.problems import fault
from delivery.http.route import HandlerOfCall, Repeats, Route
from delivery.http.whole import Whole
from delivery.schemas.responses import encode
from delivery.services import Key

log = logging.getLogger(__name__)

IDEMPOTENCY_KEY = "Idempotency-Key"
_JSON = {"Content-Type": "application/json"}
_REPLAYED = {**_JSON, "Idempotency-Replayed": "true"}


def enter(route: Route, desk: Desk) -> Plain:
    """The handler of `route` as the HTTP library calls it."""
    access, limit = desk.services.access, desk.options.body_limit
    read_body, read_query = _body_reader(route), _query_reader(route)

    async def entering(request: web.Request) -> web.StreamResponse:
        secret = _secret(request)
        key = _admitted(access.recall(secret) or await access.find(secret), route.scope, desk)
        raw = b""
        if route.body:
            media.check(request, media.JSON)
            content = request.content  # mostly it came with the head
            raw = content.read_nowait() if content.is_eof() else await _received(request, limit)
            if len(raw) > limit:
                raise _too_large(limit)
        call = Call(request, desk, key, read_body(raw), read_query(request))
        name = request.headers.get(IDEMPOTENCY_KEY)
        if name is None or route.repeats is Repeats.NONE:
            response = _respond(await route.handler(call))
        else:
            response = await _repeatable(route, call, checked(name), raw)
        if desk.pace.rate and isinstance(response, Whole):
            response.fields.update(desk.pace.fields(key.id))
        return response

    return entering


async def _received(request: web.Request, limit: int) -> bytes:
    """The body of which some has still to come."""
    if (request.content_length or 0) > limit:
        raise _too_large(limit)
    return await request.read()


def _too_large(limit: int) -> Refused:
    return Refused("BODY_TOO_LARGE", f"At most {limit} bytes are allowed.")


def _body_reader(route: Route) -> Callable[[bytes], Any]:
    if route.body is None:
        return lambda raw: None
    read = Reader(route.body).read
    return (lambda raw: read(raw) if raw else None) if route.optional else read


def _query_reader(route: Route) -> Callable[[web.Request], Struct]:
    reader = QueryReader(route.query)
    nothing = reader.read(())

    def reading(request: web.Request) -> Struct:
        return reader.read(request.rel_url.query.items()) if "?" in request.raw_path else nothing

    return reading


def _admitted(key: Key | None, scope: str, desk: Desk) -> Key:
    """The key, if with it this may be asked just now. Raises `Forbidden` KEY_UNKNOWN, SCOPE_MISSING, `TooFast`."""
    if key is None:
        raise Forbidden("KEY_UNKNOWN", "This API key is not known, or was revoked.")
    if scope not in key.scopes and "admin" not in key.scopes:
        raise Forbidden("SCOPE_MISSING", f"This needs a key with the scope {scope}.")
    if desk.pace.rate and (wait := desk.pace.take(key.id, time.monotonic())):
        raise TooFast(wait, desk.pace.fields(key.id))
    return key


def _secret(request: web.Request) -> str:
    scheme, _, secret = request.headers.get(hdrs.AUTHORIZATION, "").partition(" ")
    if scheme.lower() != "bearer" or not secret:
        raise Forbidden("KEY_MISSING", "An API key is wanted: Authorization: Bearer KEY.")
    return secret.strip()


async def _repeatable(route: Route, call: Call[Any, Any], name: str, raw: bytes) -> web.StreamResponse:
    call.repeat = Repeat(name, _fingerprint(call.request, raw))
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

    A refusal wrote nothing, so it is forgotten and its repeat is tried anew. A full store has no room for the first
    answer: what makes room, as cancelling does, is done all the same, and safe to repeat by itself.
    """
    idempotency = call.services.idempotency
    try:
        stored = await idempotency.begin(call.tenant, repeat.key, repeat.fingerprint)
    except StoreFull:
        return _respond(await handler(call))
    if stored is not None:
        return Whole(stored.status, stored.body, _REPLAYED)
    try:
        reply = await handler(call)
        assert isinstance(reply, Reply), "a stream can not be kept for repeats"
        body = encode(reply.body)
    except BaseException:
        await idempotency.forget(call.tenant, repeat.key)
        raise
    try:
        await idempotency.finish(call.tenant, repeat.key, repeat.fingerprint, reply.status, body)
    except StoreFull:
        log.warning("the answer to an Idempotency-Key is not kept: the store is full")  # but it is the true answer
    return _whole(reply, body)


def _respond(reply: Reply | web.StreamResponse) -> web.StreamResponse:
    if isinstance(reply, Reply):
        return _whole(reply, encode(reply.body))
    return reply


def _whole(reply: Reply, body: bytes) -> Whole:
    return Whole(reply.status, body, {**_JSON, **reply.headers} if reply.headers else _JSON)
