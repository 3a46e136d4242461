"""One parcel on its way through one courier process.

State of an entry: *open* (in `_todo`), attempted side by side, then *closed* (its item waits for the next write) or
*left* (put off). What is left goes into the task's checkpoint as `[index, not before ms, attempts, unclear since ms]`,
so that the next holder goes on exactly here.

Invariant I17: before an attempt on a channel without repeat protection its entries are written as `sending` under our
token; who finds `sending` after a crash says `unknown` and never repeats. With protection a repeat carries the same
random id. Tests: tests/crash/test_couriers.py.
"""

import asyncio
import json
import logging
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Protocol

from core.archive import Archive
from core.errors import StoreError
from core.keys import KEYS
from core.orders import HistoryKey
from core.parcels import Entry, compact, load_parcel
from core.port import NEVER, Courier, Deferred, Halted, Message, Outcome, Scope, Split, Unknown
from core.queue import Claim, Queue, Task
from core.receipts import Receipts
from core.retry import Backoff
from core.store import Store
from core.verdicts import Closed, covered, judge
from core.words import OPEN, Reason, Status

log = logging.getLogger(__name__)

_WRITE_EVERY = 0.25
# Outcomes of one script.
_PAGE = 500
# Without news a cancellation is heard of this often; and a lease is renewed so many times before it would end.
_ASK_EVERY = 1.0
_RENEWALS = 3


@dataclass(frozen=True, slots=True)
class Manner:
    """How a courier process works. `report_url`: where the provider is to report to, "" if nowhere.

    `side_by_side`: messages under way at once for couriers that send one by one.
    """

    lease: timedelta = timedelta(seconds=30)
    floor: timedelta = timedelta(seconds=3)
    backoff: Backoff = field(default_factory=Backoff)
    report_url: str = ""
    side_by_side: int = 32


class Process(Protocol):
    """What a parcel needs of the courier process it is in (`core.runtime.Runtime`)."""

    store: Store
    courier: Courier
    manner: Manner
    queue: Queue
    receipts: Receipts
    slots: asyncio.Semaphore
    hands: int

    @property
    def stopping(self) -> bool: ...

    def lighten(self, task: Task, entries: int) -> None: ...

    async def halt(self, detail: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Open:
    """An entry that has no end yet. Times in the server's ms; `unclear_since` 0: no attempt's end is unclear."""

    index: int
    entry: Entry
    not_before: int = 0
    attempts: int = 0
    unclear_since: int = 0

    def row(self) -> list[int]:
        return [self.index, self.not_before, self.attempts, self.unclear_since]


class ParcelRun:
    """One claim of one parcel, from its entries to `settle`."""

    def __init__(self, runtime: Process, task: Task, claim: Claim) -> None:
        self._runtime = runtime
        self._courier = runtime.courier
        self._task = task
        self._waits_known = claim.waits > 0
        self._clock = task.claimed - time.monotonic() * 1000
        self._group, self._entries = load_parcel(task.parcel)
        sender, _, ns = task.history.rpartition(":")
        self._key = HistoryKey(task.shard, sender, int(ns))
        self._seed = f"{self._key.id}:{self._courier.channel}:{self._group}"
        self._number = int(task.id.rpartition(".")[2])
        self._todo: deque[Open] = deque()
        self._left: list[Open] = []
        self._items: list[Any] = []
        self._attempted = asyncio.Event()
        self._skip: frozenset[str] = frozenset()
        self._held_until = 0
        self._cancelled = False
        self._lost = False

    @property
    def _now(self) -> int:
        """The server's clock, by ours since the claim."""
        return int(self._clock + time.monotonic() * 1000)

    async def run(self) -> None:
        """Attempt what can be, write the outcomes, settle."""
        self._todo.extend(await self._open_entries())
        await self._set_waiting_aside()
        writing = asyncio.create_task(self._keep_writing())
        try:
            await self._attempt_all()
        finally:
            self._attempted.set()
            await asyncio.gather(writing, return_exceptions=True)
        if not self._lost:
            await self._settle()

    # Which entries are open

    async def _open_entries(self) -> list[Open]:
        rows = json.loads(self._task.checkpoint or "[]")
        found = [Open(row[0], self._entries[row[0]], *row[1:]) for row in rows]
        found = found or [Open(index, entry) for index, entry in enumerate(self._entries)]
        if self._task.crashed or self._task.closed or self._task.left < len(found):
            found = await self._without_closed(found)
        return found

    async def _without_closed(self, found: Sequence[Open]) -> list[Open]:
        """After a crash, a cancellation or a report the history knows better than the parcel."""
        fields = [item.entry.field(self._courier.channel) for item in found]
        stored = await self._runtime.store.command("HMGET", self._outcomes_name(), *fields) if fields else []
        statuses = [Status((text or Status.QUEUED).split("|")[0]) for text in stored]
        moved = await Archive(self._runtime.store).tried_again(self._key, self._courier.channel, self._number)
        still = [
            (item, status)
            for item, field, status in zip(found, fields, statuses, strict=True)
            if status in OPEN and field not in moved
        ]
        return [item for item, status in still if not self._died_sending(item, status)]

    def _outcomes_name(self) -> str:
        return KEYS["outcomes"].at(self._key.shard, self._key.suffix)

    def _died_sending(self, item: Open, status: Status) -> bool:
        """An attempt whose end nobody can tell, where a repeat could double it: it is closed as `unknown`."""
        since = item.unclear_since or (self._task.started if self._task.crashed else 0)
        age = timedelta(milliseconds=max(0, self._task.claimed - since))
        in_the_air = status is Status.SENDING if self._courier.remembers == NEVER else since > 0
        if not in_the_air or covered(age, self._courier.remembers):
            return False
        self._close(item, Closed(Status.UNKNOWN, Reason.CRASHED), item.attempts)
        return True

    # Who can be served now

    async def _set_waiting_aside(self) -> None:
        """Those whose own wait is not over, or whose chat was asked to wait, are left; the others are served first."""
        opens = await self._chats_open_at()
        for _ in range(len(self._todo)):
            item = self._todo.popleft()
            not_before = max(item.not_before, opens.get(item.entry.address, 0))
            if not_before > self._now:
                self._left.append(replace(item, not_before=not_before))
            else:
                self._todo.append(item)

    async def _chats_open_at(self) -> dict[str, int]:
        if not self._waits_known:
            return {}
        scopes = [f"{Scope.CHAT}:{item.entry.address}" for item in self._todo]
        waits = await self._runtime.queue.waits(self._courier.channel, self._task.shard, scopes)
        return {scope.partition(":")[2]: until for scope, until in waits.items()}

    # Attempts

    async def _attempt_all(self) -> None:
        """As many hands as this process has, each with one batch after the other. Parcels take turns at the slots."""
        batches = -(-len(self._todo) // self._courier.batch)
        async with asyncio.TaskGroup() as hands:
            for _ in range(min(batches, self._runtime.hands)):
                hands.create_task(self._lend_a_hand())

    async def _lend_a_hand(self) -> None:
        while self._todo:
            async with self._runtime.slots:
                if self._must_stop():
                    return
                if batch := self._next_batch():
                    await self._attempt_or_give_up(batch)
                    self._runtime.lighten(self._task, len(batch))

    def _must_stop(self) -> bool:
        return self._lost or self._cancelled or self._runtime.stopping or self._held_until > self._now

    def _next_batch(self) -> list[Open]:
        """The next entries to attempt; those too late or cancelled meanwhile are closed on the way."""
        batch: list[Open] = []
        while self._todo and len(batch) < self._courier.batch:
            item = self._todo.popleft()
            if self._task.expires and self._now >= self._task.expires:
                self._close(item, Closed(Status.EXPIRED, Reason.TOO_LATE), item.attempts)
            elif str(item.entry.id) in self._skip:
                self._close(item, Closed(Status.CANCELLED), item.attempts)
            else:
                batch.append(item)
        return batch

    async def _attempt_or_give_up(self, batch: list[Open]) -> None:
        try:
            if await self._announce(batch):
                await self._attempt(batch)
            else:
                self._put_back(batch)
        except StoreError as fault:
            # What was sent and is not written goes by the same rules as after a crash.
            self._lost = True
            log.warning("parcel %s left to its lease: %s", self._task.id, fault)

    async def _announce(self, batch: Sequence[Open]) -> bool:
        """Where a repeat could double a message, its attempt is written first, under our token. False: we do not hold
        it any more.
        """
        if self._courier.remembers != NEVER:
            return True
        await self._write([item.entry.item(Status.SENDING, attempts=item.attempts + 1) for item in batch])
        return not self._lost and not self._cancelled

    def _put_back(self, batch: Sequence[Open]) -> None:
        """Announced and then not attempted."""
        self._left.extend(batch)
        self._items += [item.entry.item(Status.QUEUED, attempts=item.attempts) for item in batch]

    async def _attempt(self, batch: list[Open]) -> None:
        messages = [await self._message(item.entry) for item in batch]
        started = self._now
        try:
            outcomes: Sequence[Outcome] = await self._courier.attempt(messages)
        except Exception as fault:  # the attempt: whatever a courier raises, its messages may have been sent
            log.exception("%s: an attempt failed", self._courier.channel)
            outcomes = [Unknown(f"{type(fault).__name__}: {fault}")] * len(batch)
        refused: list[tuple[Open, Split]] = []
        for item, outcome in zip(batch, outcomes, strict=True):
            if isinstance(outcome, Split):
                refused.append((item, outcome))
            else:
                await self._take(item, outcome, started)
        if refused:
            await self._split(refused, whole=len(refused) == len(batch))

    async def _message(self, entry: Entry) -> Message:
        report = await self._report_url(entry) if self._runtime.manner.report_url else ""
        return Message(entry.address, self._task.text, self._seed, f"{entry.id!r}:{entry.contact}", report)

    async def _report_url(self, entry: Entry) -> str:
        base = self._runtime.manner.report_url
        token = await self._runtime.receipts.token(self._key, self._courier.channel, self._number, entry)
        return f"{base}{'&' if '?' in base else '?'}token={token}"

    async def _split(self, refused: list[tuple[Open, Split]], *, whole: bool) -> None:
        """Halve down to the one message that the provider does not want. What it took beside them is not sent again."""
        if len(refused) == 1 and whole:
            await self._take(refused[0][0], refused[0][1].rejected, self._now)
            return
        half = (len(refused) + 1) // 2
        for part in (refused[:half], refused[half:]):
            if part:
                await self._attempt([item for item, _ in part])

    async def _take(self, item: Open, outcome: Outcome, started: int) -> None:
        """What follows from one outcome."""
        if isinstance(outcome, Halted):
            self._left.append(item)
            await self._runtime.halt(outcome.detail)
            return
        if isinstance(outcome, Deferred) and outcome.after is not None:
            await self._hold(item, outcome)
        since = item.unclear_since or started
        age = timedelta(milliseconds=self._now - since)
        follows = judge(outcome, item.attempts, age, self._courier.remembers, self._runtime.manner.backoff)
        if isinstance(follows, Closed):
            self._close(item, follows, item.attempts + 1)
            return
        not_before = self._now + int(follows.pause.total_seconds() * 1000)
        unclear = since if follows.unclear else item.unclear_since
        self._left.append(replace(item, not_before=not_before, attempts=follows.attempts, unclear_since=unclear))
        if self._courier.remembers == NEVER:
            self._items.append(item.entry.item(Status.QUEUED, follows.reason, attempts=follows.attempts))

    async def _hold(self, item: Open, outcome: Deferred) -> None:
        """A wait that concerns others too is told to all processes."""
        assert outcome.after is not None
        if outcome.scope in (Scope.ACCOUNT, Scope.METHOD):
            self._held_until = max(self._held_until, self._now + int(outcome.after.total_seconds() * 1000))
            await self._runtime.queue.hold(
                self._courier.channel, f"{outcome.scope}:{self._courier.account}", outcome.after
            )
        elif outcome.scope is Scope.CHAT:
            await self._runtime.queue.hold(self._courier.channel, f"{Scope.CHAT}:{item.entry.address}", outcome.after)

    def _close(self, item: Open, closed: Closed, attempts: int) -> None:
        self._items.append(item.entry.item(closed.status, closed.reason, closed.reference, attempts))

    # Writing

    async def _keep_writing(self) -> None:
        """Outcomes reach the history while the parcel is still at work; the answer tells of cancellations and a lost
        lease.
        """
        asked, ask_every = time.monotonic(), min(_ASK_EVERY, self._runtime.manner.lease.total_seconds() / _RENEWALS)
        while not self._lost and not await self._all_attempted_within(_WRITE_EVERY):
            if self._items or time.monotonic() - asked > ask_every:
                items, self._items = self._items, []
                await self._write_or_give_up(items)
                asked = time.monotonic()

    async def _all_attempted_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                return await self._attempted.wait()
        except TimeoutError:
            return False

    async def _write_or_give_up(self, items: Sequence[Any]) -> None:
        """Without the store nothing more is attempted: the lease runs out, and the next holder asks the history."""
        try:
            await self._write(items)
        except StoreError as fault:
            self._lost = True
            log.warning("parcel %s left to its lease: %s", self._task.id, fault)

    async def _write(self, items: Sequence[Any]) -> None:
        """In pages: while the server runs a script it serves nobody else."""
        for start in range(0, max(1, len(items)), _PAGE):
            page = items[start : start + _PAGE]
            answer = await self._runtime.queue.extend(self._task, self._runtime.manner.lease, page)
            self._lost = self._lost or not answer.held
            self._cancelled = self._cancelled or answer.cancelled
            self._skip = answer.skip

    async def _settle(self) -> None:
        left = [*self._left, *(replace(item, not_before=max(item.not_before, self._held_until)) for item in self._todo)]
        due = min((item.not_before for item in left), default=0)
        checkpoint = compact([item.row() for item in left]) if left else ""
        unclear = any(item.unclear_since for item in left)
        items, self._items = self._items[-_PAGE:], self._items[:-_PAGE]
        if self._items:
            await self._write(self._items)
            if self._lost:
                return
        ended = await self._runtime.queue.settle(
            self._task, outcomes=items, due=due, checkpoint=checkpoint, unclear=unclear
        )
        log.info("parcel %s: %d closed, %d left, %s", self._task.id, len(items), len(left), ended)
