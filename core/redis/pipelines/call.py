"""A command with its caller's future, what the caller gets in place of a reply, and what a pipeline asks of the
pipelines of the other primaries, which `core.redis.pipelines.pipelines` answers.
"""

import asyncio
from collections.abc import Iterable
from typing import Protocol

from msgspec import Struct
from redis.exceptions import RedisError

from core.errors import StoreError, StoreUnavailable
from core.redis.connection import Reply
from core.redis.refusals import refused_write
from core.redis.topology import Topology


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


class Routes(Protocol):
    """The pipelines of all primaries, for the one of `primary`."""

    async def read_again(self, primary: Topology) -> bool:
        """Find out where the primaries are, and do `pass_on`. Return whether this primary still has anything."""

    def is_redirected(self, primary: Topology, home: int, refusal: RedisError) -> bool:
        """Return whether a refusal means that another primary has this home."""

    def pass_on(self, primary: Topology) -> None:
        """Give the waiting calls of what other primaries have to their pipelines. Nothing is in flight."""
