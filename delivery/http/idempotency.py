"""Idempotency-Key: a write that is repeated with the same key is done once and gets the first response again."""

import hashlib
import logging

from aiohttp import web

from core.errors import StoreFull, StoreRefuses
from core.model.delivery import Repeat
from core.sessions import Identity
from delivery.http.context import AnyRequest, Response
from delivery.http.responses.problems import invalid_field
from delivery.http.route import Endpoint

log = logging.getLogger(__name__)

IDEMPOTENCY_KEY = "Idempotency-Key"
REPLAYED_HEADERS = {"Idempotency-Replayed": "true"}


def check_key(key: str) -> str:
    """Return the key itself. Raises `InvalidFields` IDEMPOTENCY_KEY_MALFORMED."""
    if not key or len(key) > 255 or not key.isascii() or not key.isprintable():
        raise invalid_field(IDEMPOTENCY_KEY, "IDEMPOTENCY_KEY_MALFORMED", "It has 1 to 255 visible ASCII characters.")
    return key


def repeat_of(request: web.Request, key: str, body: bytes, identity: Identity) -> Repeat:
    """Return the key with a fingerprint of the request; only that person gets the response to a person. Raises
    `InvalidFields` IDEMPOTENCY_KEY_MALFORMED.
    """
    whose = f"{identity.key.id} " if identity.person else ""
    target = f"{whose}{request.method} {request.rel_url.raw_path_qs}\n".encode()
    return Repeat(check_key(key), fingerprint(target + body))


def fingerprint(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


async def respond_once(request: AnyRequest, repeat: Repeat, endpoint: Endpoint) -> web.StreamResponse:
    """Call the endpoint on the first request; return the stored response on a repeat.

    While the endpoint runs, however long, a repeat is refused as IDEMPOTENCY_IN_PROGRESS. A caller that disconnects
    does not end it: aiohttp runs a handler to its end. A refusal wrote nothing, so it is forgotten and a repeat is a
    new attempt. A full store has no room for the first response: an endpoint that frees memory (cancel) is called all
    the same, and is safe to repeat.
    """
    idempotency = request.services.idempotency
    try:
        stored = await idempotency.begin(request.tenant, repeat.key, repeat.fingerprint)
    except StoreFull:
        return _json(await endpoint(request)).encode()
    if stored is not None:
        return Response(None, stored.status, REPLAYED_HEADERS).with_body(stored.body)
    return await _respond_and_store(request, repeat, endpoint)


async def _respond_and_store(request: AnyRequest, repeat: Repeat, endpoint: Endpoint) -> web.StreamResponse:
    idempotency = request.services.idempotency
    try:
        async with idempotency.in_progress(request.tenant, repeat.key):
            response = _json(await endpoint(request))
        body = response.encoded_body()
    except BaseException:  # whatever it is, also a cancellation: the request may be repeated
        await idempotency.forget(request.tenant, repeat.key)
        raise
    try:
        await idempotency.finish(request.tenant, repeat.key, repeat.fingerprint, response.status, body)
    except StoreRefuses as fault:
        log.warning("the response to an Idempotency-Key is not stored: %s", fault)  # the write itself is done
    return response.with_body(body)


def _json(response: Response | web.StreamResponse) -> Response:
    assert isinstance(response, Response), "a stream cannot be stored for repeats"
    return response
