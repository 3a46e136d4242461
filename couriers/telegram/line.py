"""The one connection of the courier, and asking over it.

Telethon would reconnect by itself and repeat what was unanswered without end. Then a message at which the connection
breaks would break it again and again, for everybody. So here the connection just ends, what was unanswered is told,
and the next attempt opens it anew, once for all who wait.
"""

import asyncio
from collections.abc import Awaitable
from datetime import timedelta
from typing import Any

from telethon import TelegramClient
from telethon.errors import AuthKeyNotFound, RPCError

from couriers.telegram.limit import TimeLimit

FAILURES = (RPCError, OSError, AuthKeyNotFound)  # what `up` and `ask` raise; a TimeoutError is an OSError


class Line:
    """`up()` before `ask(…)`: what fails in the first was not sent, what fails in the second may have been."""

    def __init__(self, client: TelegramClient, timeout: timedelta) -> None:
        self._client = client
        self._timeout = timeout.total_seconds()
        self._limit = TimeLimit(timeout)
        self._connecting: asyncio.Task[None] | None = None
        self._answers = 0
        self._mute = False  # nothing came for a whole time limit: whoever cut this line did not tell us

    async def up(self) -> None:
        """Connect unless that is done. Raises one of FAILURES."""
        if self._connecting is None:
            if self._client.is_connected() and not self._mute:
                return
            self._connecting = asyncio.create_task(self._connect())
            self._connecting.add_done_callback(self._connected)
        await asyncio.shield(self._connecting)

    async def _connect(self) -> None:
        await self._end()  # what Telethon still runs for the connection before
        try:
            async with asyncio.timeout(self._timeout):
                await _honestly(self._client.connect())
            self._mute = False
        except BaseException:
            # Telethon calls a client connected before it has introduced itself: half a connection is none.
            await self._end()
            raise

    async def _end(self) -> None:
        await self._client.disconnect()
        _see(self._client.disconnected)

    def _connected(self, task: asyncio.Task[None]) -> None:
        self._connecting = None
        _see(task)  # even when all who waited for it are gone

    async def ask(self, request: Any) -> Any:
        """Telegram's answer to one request. Raises RPCError for a refusal, OSError where there was none."""
        return await self.told(self._client(request))

    async def told(self, call: Awaitable[Any]) -> Any:
        """The same for a call of Telethon's that asks by itself."""
        answers = self._answers
        try:
            answer = await self._limit.keep(_honestly(call))
        except TimeoutError:
            self._mute = answers == self._answers
            raise
        except RPCError:
            self._answers += 1
            raise
        self._answers += 1
        return answer

    async def close(self) -> None:
        if self._connecting is not None:
            self._connecting.cancel()
        await self._end()


def _see(future: asyncio.Future[None]) -> None:
    """Take note of how it ended, else asyncio complains that nobody did."""
    if future.done() and not future.cancelled():
        future.exception()


async def _honestly(call: Awaitable[Any]) -> Any:
    """Tell a connection that ended as what it is. Telethon cancels what waits for it, as if we had wanted that."""
    try:
        return await call
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise ConnectionError("the connection ended before the answer") from None
    except (EOFError, BufferError) as error:  # asyncio.IncompleteReadError; an answer that is not MTProto
        raise ConnectionError(type(error).__name__) from error
