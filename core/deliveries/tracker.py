"""Changes of histories as they happen: one reader of the event stream, and the tracker that notifies callers.

`EventStream` reads `events:{s}` once per process and shard while it has subscribers, and passes each event to the
subscribers of its history. Guarantee: no event of that history is missed from the moment `subscribe` is entered. Where
this cannot be guaranteed (the connection broke, and the stream may have been trimmed meanwhile) subscribers receive
None and must read the history again.

The tracker is optional, separate from enqueuing, and a caller may attach before the delivery exists (D-16). A caller
subscribes first and reads second, so no change is missed in between. Thousands of callers share one `EventStream`, and
callers of the same history share one read of it.

Called by `delivery/`, for POST /v1/track and for the server-sent events.
"""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from core.deliveries.histories import projection
from core.deliveries.histories.encoding import StoredRecipient
from core.deliveries.histories.parcels import split_label
from core.deliveries.histories.projection import HistoryFields, read_outcome
from core.deliveries.histories.reader import HistoryReader
from core.errors import NotFound
from core.model.clock import from_ms
from core.model.history import History, HistoryChange
from core.model.history_key import HistoryKey, typed_id
from core.model.question import load_question, load_row, row_field, shown_row
from core.model.states import DeliveryState
from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.keys import KEYS
from core.redis.store import Store
from core.redis.stream_reader import StreamReader

# The recipients of a history that a caller waited for; the following pages are read separately.
_RECIPIENTS = 100


@dataclass(frozen=True, slots=True)
class HistoryEvent:
    """One step of one history. `changes`: one line per outcome: `i` or `s` and the recipient's id, the channel and the
    stored outcome, separated by tabs. `history`: the suffix. `answer`: the
    same recipient and the stored row of an answer.
    """

    event: str
    state: str
    version: int
    reported: int
    finished: bool
    changes: str
    tenant: str = ""
    history: str = ""
    answer: str = ""
    shard: int = 0


_ALL = ""
"""Stands for the histories of all deliveries of a shard."""

OnEvent = Callable[[HistoryEvent | None], None]


class EventStream:
    """One per process."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._subscribers: dict[int, dict[str, set[OnEvent]]] = defaultdict(lambda: defaultdict(set))
        self._readers: dict[int, asyncio.Task[None]] = {}
        self._starts: dict[int, asyncio.Lock] = defaultdict(asyncio.Lock)

    @contextlib.asynccontextmanager
    async def subscribe(self, key: HistoryKey, on_event: OnEvent) -> AsyncIterator[None]:
        """Call `on_event` with each event of this history. It must not block."""
        async with self._subscribed(key.shard, key.suffix, on_event):
            yield

    @contextlib.asynccontextmanager
    async def _subscribed(self, shard: int, suffix: str, on_event: OnEvent) -> AsyncIterator[None]:
        subscribers = self._subscribers[shard]
        subscribers[suffix].add(on_event)
        try:
            await self._start(shard)
            yield
        finally:
            subscribers[suffix].discard(on_event)
            if not subscribers[suffix]:
                del subscribers[suffix]
            if not subscribers:
                self._stop(shard)

    @contextlib.asynccontextmanager
    async def subscribe_all(self, on_event: OnEvent) -> AsyncIterator[None]:
        """Call `on_event` with each event of all histories. It must not block."""
        async with contextlib.AsyncExitStack() as shards:
            for shard in range(self._store.shards):
                await shards.enter_async_context(self._subscribed(shard, _ALL, on_event))
            yield

    async def close(self) -> None:
        readers = list(self._readers.values())
        self._readers.clear()
        await cancel_and_wait(*readers)

    async def _start(self, shard: int) -> None:
        """Start reading after the entry that is the last one now."""
        async with self._starts[shard]:
            if shard not in self._readers:
                key = KEYS["events"].at(shard)
                newest = await self._store.command("XREVRANGE", key, "+", "-", "COUNT", 1)
                self._readers[shard] = asyncio.create_task(self._read(shard, newest[0][0] if newest else "0-0"))

    def _stop(self, shard: int) -> None:
        if reader := self._readers.pop(shard, None):
            reader.cancel()

    async def _read(self, shard: int, last: str) -> None:
        def pass_on(_: str, __: str, fields: Mapping[str, str]) -> None:
            known = self._subscribers[shard]
            if subscribers := {*known.get(fields["history"], ()), *known.get(_ALL, ())}:
                event = replace(history_event(fields), shard=shard)
                for on_event in subscribers:
                    on_event(event)

        def report_gap() -> None:
            for subscribers in list(self._subscribers[shard].values()):
                for on_event in list(subscribers):
                    on_event(None)

        await StreamReader(self._store, {KEYS["events"].at(shard): last}, pass_on, report_gap).run()


def history_event(fields: Mapping[str, str]) -> HistoryEvent:
    numbers = int(fields["version"]), int(fields["reported"])
    is_finished, whose = (
        fields["finished"] == "1",
        (fields.get("tenant", ""), fields["history"], fields.get("answer", "")),
    )
    return HistoryEvent(fields["event"], fields["state"], *numbers, is_finished, fields["changes"], *whose)


class Tracker:
    """One per process."""

    def __init__(self, store: Store) -> None:
        self._reader = HistoryReader(store)
        self._events = EventStream(store)
        self._reads: dict[HistoryKey, asyncio.Task[History]] = {}

    async def close(self) -> None:
        await self._events.close()

    async def wait(self, key: HistoryKey, tenant: str, touch_count: int, timeout: float) -> tuple[History | None, bool]:
        """Wait until `touch_count` channels have reported, counted from the start of the delivery, or all of them;
        at most `timeout` seconds. Returns (history, timed out).

        The history is None while its key is only reserved. Raises NotFound HISTORY_NOT_FOUND.
        """
        deadline = asyncio.get_running_loop().time() + timeout
        progress = _TrackerProgress(touch_count)
        async with self._events.subscribe(key, progress.on_event):
            history = await self._current(key, tenant)
            while not _enough(history, touch_count):
                in_time = await progress.wait_until(deadline)
                history = await self._current(key, tenant)
                if not in_time:
                    break
        return history, not _enough(history, touch_count)

    async def _current(self, key: HistoryKey, tenant: str) -> History | None:
        """Return the history, read after this call; None for a reserved key."""
        try:
            return await self._shared_read(key, tenant)
        except NotFound:
            if await self._reader.is_reserved(key, tenant):
                return None
            raise

    async def _shared_read(self, key: HistoryKey, tenant: str) -> History:
        """Read a history. Callers of the same loop iteration share one read: it starts in the next iteration."""
        task = self._reads.get(key)
        if task is None:
            task = self._reads[key] = asyncio.create_task(self._read(key, tenant))
            task.add_done_callback(lambda read: read.cancelled() or read.exception())  # all callers may have left
        history = await asyncio.shield(task)
        if history.tenant != tenant:
            raise NotFound("HISTORY_NOT_FOUND", "There is no such delivery.")
        return history

    async def _read(self, key: HistoryKey, tenant: str) -> History:
        await asyncio.sleep(0)
        del self._reads[key]
        return await self._reader.page(key, tenant, 0, _RECIPIENTS)

    async def follow(
        self, key: HistoryKey, tenant: str, after: int = 0, *, answers: bool = False
    ) -> AsyncGenerator[HistoryChange, None]:
        """Yield every change with a version over `after`, in order: of outcomes and answers, of the due time, and at
        last the end. Each has a version of its own. A delivery report after the end moves the end behind itself. With
        `answers` it goes on after the end, until the question of the delivery is closed. Raises NotFound
        HISTORY_NOT_FOUND.
        """
        events: asyncio.Queue[HistoryEvent | None] = asyncio.Queue()
        has_ended = False
        async with self._events.subscribe(key, events.put_nowait):
            while True:
                fields = await self._reader.fields(key, tenant)
                version = int(fields["version"] or 0)
                changes = _with_new_time(await self._changes_so_far(key, fields, after), fields, after)
                # The outcomes were read after the fields: what came between is not part of `version`.
                if fields["finished"] and not has_ended and not any(change.version > version for change in changes):
                    has_ended = True
                    changes += [_end(fields)] if version > max([after, *(one.version for one in changes)]) else []
                for change in changes:
                    after = change.version
                    yield change
                if has_ended and not (answers and _is_open(fields)):
                    return
                if has_ended or not fields["finished"]:
                    async for change in _changes_from(events, version, ends=not has_ended):
                        if change.version > after:
                            after = change.version
                            yield change
                # The delivery has ended or has a new time, or events were missed: read the history again.

    async def changes(self, key: HistoryKey, tenant: str) -> list[HistoryChange]:
        """Return the latest change of each outcome and, if the delivery has ended, its end; the oldest first. Raises
        NotFound HISTORY_NOT_FOUND.
        """
        fields = await self._reader.fields(key, tenant)
        changes = await self._changes_so_far(key, fields, 0)
        return [*changes, _end(fields)] if fields["finished"] else changes

    async def _changes_so_far(self, key: HistoryKey, fields: HistoryFields, after: int) -> list[HistoryChange]:
        recipients = await self._reader.recipients(key, fields) if int(fields["version"] or 0) > after else []
        labels = projection.labels_of(fields)
        outcomes = await self._reader.outcomes(key, projection.outcome_fields(recipients, labels))
        changes = [change for one in recipients for change in _changes_of(one, labels, fields, outcomes)]
        if fields["answer"]:
            people = [*recipients, *await self._reader.members(key, fields)]
            changes += _answers_of(people, fields, await self._reader.answers(key, fields, people))
        return sorted((change for change in changes if change.version > after), key=lambda change: change.version)


class _TrackerProgress:
    """Wakes its waiter when enough channels may have reported."""

    def __init__(self, touch_count: int) -> None:
        self._touch_count = touch_count
        self._changed = asyncio.Event()

    def on_event(self, event: HistoryEvent | None) -> None:
        if event is None or event.finished or event.reported >= self._touch_count:
            self._changed.set()

    async def wait_until(self, deadline: float) -> bool:
        """Return whether there was progress before the deadline."""
        try:
            async with asyncio.timeout_at(deadline):
                await self._changed.wait()
        except TimeoutError:
            return False
        self._changed.clear()
        return True


def _enough(history: History | None, touch_count: int) -> bool:
    if history is None:
        return False
    return history.reported >= min(touch_count, len(history.channels)) or history.finished_at is not None


async def _changes_from(
    events: "asyncio.Queue[HistoryEvent | None]", version: int, *, ends: bool
) -> AsyncIterator[HistoryChange]:
    """Yield changes with a version over `version` until the end of the delivery if it `ends`, until events were missed
    (versions have no gap), until its time was changed, which the event does not have, or until its question was closed.
    """
    while True:
        event = await events.get()
        lines = event.changes.split("\n") if event and event.changes else []
        if event is None or event.version - max(1, len(lines)) > version:
            return
        if event.event in ("rescheduled", "closed") and event.version > version:
            return
        if event.answer and event.version > version:
            yield read_answer(event)
        for change in (read_change(line, event) for line in lines):
            if change.version > version:
                yield change
        # What comes after the end moves the end behind itself.
        version = max(version, event.version + (1 if event.finished and (lines or event.answer) else 0))
        if event.finished and ends:
            return


def read_change(line: str, event: HistoryEvent) -> HistoryChange:
    """Parse one line of `HistoryEvent.changes`."""
    recipient, label, text = line.split("\t", 2)
    outcome, (channel, wave) = read_outcome(text, over=False), split_label(label)
    state = DeliveryState(event.state)
    return HistoryChange(outcome.version, typed_id(recipient), channel, outcome, state, reminder=wave)


def read_answer(event: HistoryEvent) -> HistoryChange:
    """Parse `HistoryEvent.answer`."""
    recipient, text = event.answer.split("\t", 1)
    state, row = DeliveryState(event.state), load_row(text)
    return HistoryChange(event.version, typed_id(recipient), None, None, state, answer=row)


def _is_open(fields: HistoryFields) -> bool:
    """Return whether the delivery asks something, and its question is not closed."""
    return fields["answer"] is not None and fields["answers_closed"] is None


def _answers_of(
    recipients: Sequence[StoredRecipient], fields: HistoryFields, rows: HistoryFields
) -> Iterator[HistoryChange]:
    """Emit the latest answers, and the closing of the question."""
    state, question = DeliveryState(fields["state"] or ""), load_question(fields["answer"])
    for one in recipients:
        row = shown_row(question, load_row(rows[row_field(one.number)]))
        if row is not None and not (question and question.is_anonymous):
            yield HistoryChange(row.version, one.id, None, None, state, answer=row)
    if fields["answers_closed"]:
        closed_at = from_ms(fields["answers_closed"])
        yield HistoryChange(int(fields["answers_closing"] or 0), None, None, None, state, closed_at=closed_at)


def _changes_of(
    recipient: StoredRecipient, labels: list[str], fields: HistoryFields, outcomes: HistoryFields
) -> list[HistoryChange]:
    state, over = DeliveryState(fields["state"] or ""), fields["finished"] is not None
    changes = []
    for label, name in projection.labelled_fields(recipient, labels):
        if text := outcomes.get(name):
            channel, wave = split_label(label)
            outcome = read_outcome(text, over and not wave)
            changes.append(HistoryChange(outcome.version, recipient.id, channel, outcome, state, reminder=wave))
    return changes


def _with_new_time(changes: list[HistoryChange], fields: HistoryFields, after: int) -> list[HistoryChange]:
    """Return the changes and, if it came after `after`, the latest change of the due time."""
    version = int(fields["rescheduled"] or 0)
    if version <= after or fields["finished"]:
        return changes
    return sorted([*changes, _of_delivery(version, fields)], key=lambda change: change.version)


def _end(fields: HistoryFields) -> HistoryChange:
    return _of_delivery(int(fields["version"] or 0), fields)


def _of_delivery(version: int, fields: HistoryFields) -> HistoryChange:
    """Return a change of the delivery itself."""
    return HistoryChange(version, None, None, None, DeliveryState(fields["state"] or ""), from_ms(fields["due"] or 0))
