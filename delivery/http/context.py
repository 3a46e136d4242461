"""One call as a handler sees it: what was asked, by whom, and the desk that has all it needs to answer."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import unquote, urlencode

from aiohttp import web
from msgspec import Struct

from core.errors import Invalid, NotFound
from core.model.delivery import Repeat
from core.model.history_key import HistoryKey
from delivery.http.metrics import Metrics
from delivery.http.options import Options
from delivery.http.rate_limit import Pace
from delivery.services import Key, Services

B = TypeVar("B")
Q = TypeVar("Q")


@dataclass(slots=True)
class Desk:
    """What all calls of one process share."""

    services: Services
    options: Options
    metrics: Metrics
    pace: Pace
    document: bytes  # OpenAPI
    closing: asyncio.Event = field(default_factory=asyncio.Event)  # set when the process ends: streams end then


class Call(Struct, Generic[B, Q]):
    """`body` and `query` are of the types that the route declares."""

    request: web.Request
    desk: Desk
    key: Key
    body: B
    query: Q
    repeat: Repeat | None = None

    @property
    def services(self) -> Services:
        return self.desk.services

    @property
    def tenant(self) -> str:
        return self.key.tenant

    @property
    def history_key(self) -> HistoryKey:
        """The delivery that the address names. Raises `NotFound`: what is no key of ours names nothing."""
        raw = self.request.rel_url.raw_parts[3]  # /v1/deliveries/<id>: raw, for an id has its own escapes
        return existing_key(unquote(raw) if raw.startswith("history") else raw)


def existing_key(text: str) -> HistoryKey:
    """The key of a delivery that is asked for. Keys are opaque to callers, so a malformed one is an unknown one."""
    try:
        return HistoryKey.parse(text)
    except Invalid:
        raise NotFound("HISTORY_NOT_FOUND", "There is no such delivery.") from None


class Reply(Struct):
    """An answer that is to be encoded."""

    body: Struct | Mapping[str, Any]
    status: int = 200
    headers: Mapping[str, str] | None = None


def next_page(request: web.Request, cursor: str | None) -> Mapping[str, str] | None:
    """The Link header (RFC 8288) to the following page; none if this is the last."""
    if cursor is None:
        return None
    rest = [(name, value) for name, value in request.rel_url.query.items() if name != "cursor"]
    return {"Link": f'<{request.rel_url.raw_path}?{urlencode([*rest, ("cursor", cursor)])}>; rel="next"'}
