"""The one table of routes: what is registered, checked and documented comes from it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from aiohttp import web
from msgspec import Struct

from delivery.http.context import Call, Desk, Reply

HandlerOfCall = Callable[[Call[Any, Any]], Awaitable[Reply | web.StreamResponse]]


class Repeats(Enum):
    """What an Idempotency-Key does for a route."""

    NONE = "nothing: it writes nothing"
    STORED = "the first answer is kept and given again"
    OWN = "the handler hands the key on to the house, which does it in the same step as the write"


class Nothing(Struct, forbid_unknown_fields=True):
    """No parameters."""


@dataclass(frozen=True, slots=True)
class Route:
    """One call of the API that needs a key."""

    method: str
    path: str
    does: str
    scope: str
    handler: HandlerOfCall
    status: int = 200
    answers: type[Any] | str = ""  # a Struct, dict for what has no fixed fields, or the media type of a stream
    body: type[Struct] | None = None
    optional: bool = False  # whether the body may be left out
    query: type[Struct] = Nothing
    repeats: Repeats = Repeats.NONE
    headers: Mapping[str, str] = field(default_factory=dict)  # of its answer: name → description
    lines: tuple[type[Struct], type[Struct]] | None = None  # of a bulk: the type of a line, and of its answer


@dataclass(frozen=True, slots=True)
class OpenRoute:
    """A call that needs no API key. `make` gets the desk and gives the handler."""

    method: str
    path: str
    does: str
    make: Callable[[Desk], Callable[[web.Request], Awaitable[web.StreamResponse]]]
    answers: type[Any] | str
    query: type[Struct] = Nothing
