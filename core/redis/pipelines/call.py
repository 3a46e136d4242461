"""A command with its caller's future, and what the caller gets in place of a reply."""

import asyncio
from collections.abc import Iterable

from msgspec import Struct
from redis.exceptions import RedisError

from core.errors import StoreError, StoreUnavailable
from core.redis.connection import Reply
from core.redis.refusals import refused_write


class StoreCall(Struct, eq=False):
    """A command with its caller's future. `deadline`: monotonic seconds after which it is not repeated. `home`: whose
    primary must get it (`core.redis.cluster`). `is_unclear`: a connection broke before its reply, so that it may have
    run. `redirections`: how often a server has named another one.
    """

    packed: bytes
    answer: asyncio.Future[Reply]
    deadline: float
    home: int = 0
    is_unclear: bool = False
    redirections: int = 0


def fault_of(call: StoreCall, refusal: RedisError) -> Exception:
    """Return what a caller gets for an error reply. What may have run before is not called refused."""
    refused = refused_write(refusal) if call.is_unclear else None
    return StoreUnavailable(f"Whether the call ran before is unknown. {refused}") if refused else refusal


def fail(calls: Iterable[StoreCall], fault: StoreError) -> None:
    """Raise a fault to the callers that still wait."""
    for call in calls:
        if not call.answer.done():
            call.answer.set_exception(fault)
