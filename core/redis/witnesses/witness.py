"""One server that is asked whether it takes part in a promotion, over a connection that is kept."""

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from redis.exceptions import RedisError

from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.connection import Reply, ServerAddress, StoreConnection, Word

# Seconds for an answer, and from one attempt to reach a silent witness to the next.
_ANSWER = 1.0
_AGAIN = 0.5


class Witnesses(Protocol):
    """All that take part in promotions."""

    async def confirm(self, primary: ServerAddress) -> bool:
        """Return whether no promotion in place of this primary can have begun before this call."""

    async def close(self) -> None:
        """Close the connections."""


class Witness:
    """`is_silent`: it did not answer in time last. Nobody waits for such a one."""

    def __init__(self, address: ServerAddress) -> None:
        self.is_silent = False
        self._address = address
        self._turn = asyncio.Lock()
        self._connection: StoreConnection | None = None
        self._asking: set[asyncio.Task[list[Reply]]] = set()
        self._next = 0.0  # by time.monotonic

    def ask(self, commands: Sequence[Sequence[Word]]) -> "asyncio.Task[list[Reply]]":
        """Ask in a task: its result are the replies, errors as values, or nothing if none came in time."""
        task = asyncio.create_task(self._ask(commands), name=f"witness {self._address}")
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)
        return task

    def try_again(self, commands: Sequence[Sequence[Word]]) -> None:
        """Find out beside everything else whether a silent one answers again."""
        if time.monotonic() >= self._next and not self._asking:
            self.ask(commands)

    async def _ask(self, commands: Sequence[Sequence[Word]]) -> list[Reply]:
        try:
            async with asyncio.timeout(_ANSWER), self._turn:
                replies = await (await self._open()).request_all(commands)
        except (RedisError, OSError, TimeoutError):
            self._next = time.monotonic() + _AGAIN
            self.is_silent = True
            self._drop()
            return []
        except BaseException:  # a cancellation: the replies that are due would be those of the next question
            self._drop()
            raise
        self.is_silent = False
        return replies

    async def _open(self) -> StoreConnection:
        if self._connection is None or self._connection.lost.done():
            self._connection = await StoreConnection.open(self._address)
        return self._connection

    def _drop(self) -> None:
        if self._connection:
            self._connection.close()

    async def close(self) -> None:
        await cancel_and_wait(*self._asking)
        self._drop()


async def ask_all(
    witnesses: Collection[Witness],
    commands: Sequence[Sequence[Word]],
    enough: Callable[[list[list[Reply]]], bool] = lambda _: False,
) -> list[list[Reply]]:
    """Return what those say that are not silent, as soon as it is `enough`, or all have answered."""
    for one in witnesses:
        if one.is_silent:
            one.try_again(commands)
    said: list[list[Reply]] = []
    for answer in asyncio.as_completed([one.ask(commands) for one in witnesses if not one.is_silent]):
        if replies := await answer:
            said.append(replies)
        if enough(said):
            break
    return said
