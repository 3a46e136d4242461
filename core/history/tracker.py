"""The tracker: whoever waits for a history is told. It is optional, separate from enqueuing, and may be attached before
it (D-16).

A waiter listens first and reads second, so that no change falls between. Thousands wait for one subscription
(`core.history.events`), and those who wait for the same history share its reading.

Before: the scripts announce each step in the stream. After: `delivery/` answers POST /v1/track and the event stream.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping

from core.errors import NotFound
from core.history import projection as reading
from core.history.events import EventStream, HistoryEvent
from core.history.parcels import Person, outcome_field
from core.history.projection import Facts, read_outcome
from core.history.reader import HistoryReader
from core.model.history import Change, History
from core.model.history_key import HistoryKey, Id
from core.model.states import DeliveryState
from core.redis.store import Store

_RECIPIENTS = 100


class Tracker:
    """One per process."""

    def __init__(self, store: Store) -> None:
        self._reader = HistoryReader(store)
        self._stream = EventStream(store)
        self._reading: dict[HistoryKey, asyncio.Task[History]] = {}

    async def close(self) -> None:
        await self._stream.close()

    async def wait(self, key: HistoryKey, tenant: str, touch_count: int, timeout: float) -> tuple[History | None, bool]:
        """Until `touch_count` channels have reported, counted from the start of the delivery, or all have; (history,
        timed out).

        The history is None while its key is only reserved. Raises NotFound HISTORY_NOT_FOUND.
        """
        deadline = asyncio.get_running_loop().time() + timeout
        news = _Progress(touch_count)
        async with self._stream.listen(key, news.hear):
            history = await self._now(key, tenant)
            while not _enough(history, touch_count):
                in_time = await news.within(deadline)
                history = await self._now(key, tenant)
                if not in_time:
                    break
        return history, not _enough(history, touch_count)

    async def _now(self, key: HistoryKey, tenant: str) -> History | None:
        """The history as it stands; None for a reserved key. No reading from before the news is used."""
        try:
            return await self._shared_reading(key, tenant)
        except NotFound:
            if await self._reader.reserved(key, tenant):
                return None
            raise

    async def _shared_reading(self, key: HistoryKey, tenant: str) -> History:
        """Callers of the same moment share one reading: it begins when the loop has let all of them ask."""
        task = self._reading.get(key)
        if task is None:
            task = self._reading[key] = asyncio.create_task(self._read(key, tenant))
        history = await asyncio.shield(task)
        if history.tenant != tenant:
            raise NotFound("HISTORY_NOT_FOUND", "There is no such delivery.")
        return history

    async def _read(self, key: HistoryKey, tenant: str) -> History:
        await asyncio.sleep(0)
        del self._reading[key]
        return await self._reader.page(key, tenant, 0, _RECIPIENTS)

    async def follow(self, key: HistoryKey, tenant: str, after: int = 0) -> AsyncIterator[Change]:
        """Every change with a version over `after`, in order, the end last. Raises NotFound HISTORY_NOT_FOUND."""
        heard: asyncio.Queue[HistoryEvent | None] = asyncio.Queue()
        async with self._stream.listen(key, heard.put_nowait):
            facts = await self._reader.facts(key, tenant)
            while True:
                for change in await self._changes_so_far(key, facts, after):
                    after = change.version
                    yield change
                if facts["finished"]:
                    yield _end(facts)
                    return
                async for change in _told(heard, int(facts["version"] or 0)):
                    # The outcomes were read a moment later than the facts: some of what is heard is known already.
                    if change.version > after:
                        after = change.version
                        yield change
                # The end, or something may have been missed: the history tells.
                facts = await self._reader.facts(key, tenant)

    async def _changes_so_far(self, key: HistoryKey, facts: Facts, after: int) -> list[Change]:
        people = await self._reader.people(key, facts) if int(facts["version"] or 0) > after else []
        channels = reading.channels_of(facts)
        stored = await self._reader.outcomes(key, reading.wanted_outcomes(people, channels))
        changes = [change for person in people for change in _changes_of(person, channels, facts, stored)]
        return sorted((change for change in changes if change.version > after), key=lambda change: change.version)


class _Progress:
    """Wakes its waiter when enough channels may have reported."""

    def __init__(self, touch_count: int) -> None:
        self._touch_count = touch_count
        self._event = asyncio.Event()

    def hear(self, entry: HistoryEvent | None) -> None:
        if entry is None or entry.finished or entry.reported >= self._touch_count:
            self._event.set()

    async def within(self, deadline: float) -> bool:
        """Whether there was news before the deadline."""
        try:
            async with asyncio.timeout_at(deadline):
                await self._event.wait()
        except TimeoutError:
            return False
        self._event.clear()
        return True


def _enough(history: History | None, touch_count: int) -> bool:
    if history is None:
        return False
    return history.reported >= min(touch_count, len(history.channels)) or history.finished_at is not None


async def _told(heard: "asyncio.Queue[HistoryEvent | None]", seen: int) -> AsyncIterator[Change]:
    """Changes as they are heard, until the end or until something was missed: versions follow without a gap."""
    while True:
        entry = await heard.get()
        lines = entry.changes.split("\n") if entry and entry.changes else []
        if entry is None or entry.version - max(1, len(lines)) > seen:
            return
        for change in (_change(line, entry) for line in lines):
            if change.version > seen:
                yield change
        seen = max(seen, entry.version)
        if entry.finished:
            return


def _change(line: str, entry: HistoryEvent) -> Change:
    recipient, channel, text = line.split("\t", 2)
    outcome = read_outcome(text, over=False)
    return Change(outcome.version, _typed(recipient), channel, outcome, DeliveryState(entry.state))


def _typed(recipient: str) -> Id:
    return int(recipient[1:]) if recipient[0] == "i" else recipient[1:]


def _changes_of(person: Person, channels: list[str], facts: Facts, stored: Mapping[str, str | None]) -> list[Change]:
    state, over = DeliveryState(facts["state"] or ""), facts["finished"] is not None
    found = []
    for channel, contacts in zip(channels, person.contacts, strict=True):
        for contact in range(contacts):
            if text := stored.get(outcome_field(person.id, channel, contact)):
                outcome = read_outcome(text, over)
                found.append(Change(outcome.version, person.id, channel, outcome, state))
    return found


def _end(facts: Facts) -> Change:
    return Change(int(facts["version"] or 0), None, None, None, DeliveryState(facts["state"] or ""))
