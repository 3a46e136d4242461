"""Long polling: gets updates and puts them into the queue; then they are confirmed, by the next call."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from core.errors import StoreError
from core.queue import Worker
from core.redis.cancel_and_wait import cancel_and_wait
from core.updates.ingress import Ingress
from couriers.receiving.poller_lease import Lease
from couriers.telegram_bot.client import WRONG_TOKEN, BotClient, Unreadable
from couriers.telegram_bot.errors import TOKEN_REFUSED, BotTokenRefused
from couriers.telegram_bot.library import exceptions, methods

log = logging.getLogger(__name__)

TIMEOUT = 25
"""Seconds that Telegram waits for an update."""
_LIMIT = 100
_AFTER_CONFLICT = 2.0
_AFTER_FAULT = 1.0
_LONGEST_PAUSE = 15.0


class Polling:
    """Polls for one bot while it has the lease. `gatherer`: makes a worker that runs while this process has the lease
    and has got all updates that waited, so that the parts of one event are gathered also after a restart. `caught_up`:
    is set then.
    """

    def __init__(
        self,
        bot: BotClient,
        ingress: Ingress,
        lease: Lease,
        allowed: Sequence[str],
        gatherer: Callable[[], Worker] | None = None,
    ) -> None:
        self._bot = bot
        self._ingress = ingress
        self._lease = lease
        self._allowed = list(allowed)
        self._gatherer = gatherer
        self.caught_up = asyncio.Event()
        self._offset: int | None = None
        self._faults = 0

    async def run(self) -> None:
        """Poll until cancelled; as a standby while another process polls. Raises TokenRefused."""
        while True:
            try:
                await self._lease.acquire()
                await self._poll_while_held()
            except StoreError as fault:
                log.warning("polling pauses: %s", fault)
                await asyncio.sleep(_AFTER_FAULT)

    async def release(self) -> None:
        """Let a standby take over at once. Without Redis it does so when the lease ends."""
        try:
            async with asyncio.timeout(1):
                await self._lease.release()
        except (StoreError, TimeoutError):
            pass

    async def _poll_while_held(self) -> None:
        """Return when the lease is lost. Raises what ends the polling."""
        self._offset = None
        self.caught_up.clear()
        parts = [asyncio.create_task(part) for part in (self._poll(), self._lease.hold(), self._gather())]
        try:
            done, _ = await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
            for ended in done:
                ended.result()
            log.warning("the right to poll was lost; this process or another gets it")
        finally:
            await cancel_and_wait(*parts)

    async def _gather(self) -> None:
        await self.caught_up.wait()
        if self._gatherer:
            await self._gatherer().run()
        else:
            await asyncio.Event().wait()

    async def _poll(self) -> None:
        while True:
            updates = await self._next()
            for update in updates or ():
                await self._put(update)
                self._offset = update["update_id"] + 1
            if updates == []:  # all is confirmed; after a week the next id is a random one, perhaps before the offset
                self._offset = None
            if updates is not None and len(updates) < _LIMIT:
                self.caught_up.set()

    async def _put(self, update: Mapping[str, Any]) -> None:
        """Put an update into the queue. An update that the bot does not answer is only logged."""
        if not await self._ingress.put(update):
            log.info("update %s is ignored: it is no message or press that this bot answers", update["update_id"])

    async def _next(self) -> Sequence[Mapping[str, Any]] | None:
        """Return the next updates; None after a fault, which is waited out. Raises TokenRefused."""
        try:
            updates = await self._get()
        except WRONG_TOKEN:
            raise BotTokenRefused(TOKEN_REFUSED) from None
        except exceptions.TelegramConflictError as refusal:
            log.warning("another program polls as this bot: %s", refusal.message)
            await asyncio.sleep(_AFTER_CONFLICT)
        except exceptions.TelegramRetryAfter as refusal:
            await asyncio.sleep(refusal.retry_after)
        except exceptions.AiogramError as fault:
            await self._wait_out(fault)
        else:
            self._faults = 0
            return updates
        return None

    async def _get(self) -> Sequence[Mapping[str, Any]]:
        """Return the next updates, each with its number; one without it is passed over, and confirmed with the next
        one. Raises AiogramError.
        """
        timeout = TIMEOUT if self.caught_up.is_set() else 0
        updates = await self._bot(
            methods.GetUpdates(offset=self._offset, limit=_LIMIT, timeout=timeout, allowed_updates=self._allowed)
        )
        if not isinstance(updates, list):
            raise Unreadable("getUpdates")
        numbered = [update for update in updates if _is_numbered(update)]
        if updates and not numbered:
            raise Unreadable("getUpdates")
        return numbered

    async def _wait_out(self, fault: Exception) -> None:
        """Pause after a fault. Only its kind is logged: its text can contain the token."""
        self._faults += 1
        pause = min(_LONGEST_PAUSE, _AFTER_FAULT * 2 ** min(self._faults - 1, 10))
        log.warning("no updates (%s), again in %s s", type(fault).__name__, pause)
        await asyncio.sleep(pause)


def _is_numbered(update: Any) -> bool:
    return isinstance(update, dict) and isinstance(update.get("update_id"), int)
