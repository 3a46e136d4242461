"""The way in of a provider's updates: for the dialogs of a bot, or as events for its scenarios.

Whoever gets an update from a provider calls `put`. It is the same object over polling, a webhook and a gateway, and in
every process.
"""

import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from core.errors import Invalid
from core.updates.arrival import Arrival
from core.updates.events import Events
from core.updates.gathering import Gathering
from core.updates.presses import Presses
from core.updates.updates import Update, Updates

log = logging.getLogger(__name__)

MAX_AGE = timedelta(hours=1)
"""A person who waits for an hour no longer expects an answer."""

Raw = Mapping[str, Any]
"""An update as the provider has sent it."""


class Ingress(Protocol):
    """Puts the updates of one channel into the queue."""

    async def open(self) -> None:
        """Create the tubes."""

    async def put(self, raw: Raw) -> bool:
        """Put an update. Returns False for one that is no message or press of a person. One that is too old or cannot
        be stored is only logged. Raises StoreError: then the provider must repeat it.
        """


class DialogIngress:
    """For dialogs. `read`: the update, None for one that is not answered."""

    def __init__(self, updates: Updates, read: Callable[[Raw], Update | None]) -> None:
        self._updates = updates
        self._read = read

    async def open(self) -> None:
        await self._updates.open()

    async def put(self, raw: Raw) -> bool:
        update = self._read(raw)
        if update is None:
            return False
        try:
            await self._updates.put(update)
        except Invalid as refusal:
            _log_ignored(update.id, update.channel, refusal)
        return True


class EventIngress:
    """For scenarios. `source`: the bot or gateway in which ids are unique. `read`: the event, None for an update that
    is none. What happened more than `max_age` before the start of the process is ignored (C-16).
    """

    def __init__(
        self,
        events: Events,
        gathering: Gathering,
        presses: Presses,
        source: str,
        read: Callable[[Raw, datetime], Arrival | None],
        max_age: timedelta = MAX_AGE,
    ) -> None:
        self._events = events
        self._gathering = gathering
        self._presses = presses
        self._source = source
        self._read = read
        self._oldest = datetime.now(UTC) - max_age

    async def open(self) -> None:
        await self._events.open()
        await self._gathering.open()
        await self._presses.open()

    async def put(self, raw: Raw) -> bool:
        arrival = self._read(raw, datetime.now(UTC))
        if arrival is None:
            return False
        event = arrival.event
        if datetime.fromisoformat(event["event_date"]) < self._oldest:
            log.info("update %.40r of %s is ignored: it is of %s", event["id"], event["channel"], event["event_date"])
            return True
        try:
            await self._put(arrival)
        except Invalid as refusal:
            _log_ignored(event["id"], event["channel"], refusal)
        return True

    async def _put(self, arrival: Arrival) -> None:
        """Raises Invalid."""
        if arrival.gathered_as:
            await self._gathering.add(self._source, arrival.gathered_as, arrival.event)
            return
        await self._events.put(self._source, arrival.event)
        if arrival.event.get("callback_id"):
            await self._presses.put(arrival.event)


def _log_ignored(update_id: str, channel: str, refusal: Invalid) -> None:
    """The id is quoted: it may be what cannot be stored."""
    log.warning("update %.40r of %s is ignored: %s %s", update_id, channel, refusal.code, refusal)
