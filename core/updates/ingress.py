"""The way in of a provider's updates, as events for the scenarios of a bot.

The receiver of updates from a provider calls `put`. It is the same object over polling, a webhook and a gateway, and in
every process.
"""

import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from core.errors import Invalid
from core.updates.events import Arrival, Event, Events
from core.updates.gathering import Gathering
from core.updates.reachability import Reachability

log = logging.getLogger(__name__)

MAX_AGE = timedelta(hours=1)
"""A person who waits for an hour no longer expects an answer."""

Raw = Mapping[str, Any]
"""An update as the provider has sent it."""

Read = Callable[[Raw, datetime], Arrival | None]
"""Reads an update, given the time; returns None if it is no event. Never raises."""


class Ingress:
    """Puts the updates of one channel into the queue. `source`: the bot or gateway in which ids are unique. `read`: the
    event, None for an update that is none. `gathering`: joins the parts of one event, without it each part is an event.
    `reachability`: notes who can be written to. What happened more than `max_age` before the start of the process is
    ignored (C-16).
    """

    def __init__(
        self,
        events: Events,
        source: str,
        read: Read,
        *,
        gathering: Gathering | None = None,
        reachability: Reachability | None = None,
        max_age: timedelta | None = None,
    ) -> None:
        self._events = events
        self._source = source
        self._read = read
        self._gathering = gathering
        self._reachability = reachability
        self._oldest = None if max_age is None else datetime.now(UTC) - max_age

    async def open(self) -> None:
        """Create the tubes."""
        for part in (self._events, self._gathering):
            if part is not None:
                await part.open()

    async def put(self, raw: Raw) -> bool:
        """Put an update. Returns False if it is no event. An event that is too old or cannot be stored is only
        logged. Raises StoreError: then the provider must repeat it.
        """
        if self._reachability is not None:
            await self._reachability.note(raw)
        arrival = self._read(raw, datetime.now(UTC))
        if arrival is None:
            return False
        event = arrival.event
        if self._is_too_old(event):
            log.info("update %.40r of %s is ignored: it is of %s", event["id"], event["channel"], event["event_date"])
            return True
        try:
            await self._put(arrival)
        except Invalid as refusal:  # the id is quoted: it may be what cannot be stored
            log.warning("update %.40r of %s is ignored: %s %s", event["id"], event["channel"], refusal.code, refusal)
        return True

    def _is_too_old(self, event: Event) -> bool:
        return self._oldest is not None and datetime.fromisoformat(event["event_date"]) < self._oldest

    async def _put(self, arrival: Arrival) -> None:
        """Put an event, or add it to those that are gathered. Raises Invalid."""
        if arrival.gathered_as and self._gathering is not None:
            await self._gathering.add(self._source, arrival.gathered_as, arrival.event)
            return
        await self._events.put(self._source, arrival.event)
