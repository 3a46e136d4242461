"""One parcel on its way through one courier process.

State of an entry: *open* (in `_todo`), attempted side by side, then *closed* (its outcome is in the ledger) or *left*
(put off, for the next holder: `core.courier.pending_entries`).

Invariant I17: before an attempt on a channel without repeat protection its entries are written as `sending` under our
token. With protection a repeat carries the same random id. Tests: tests/crash/test_couriers.py.

Before: `core.courier.runtime` claims it. After: `core.courier.attempt_pool` attempt its batches,
`core.courier.outcome_writer` writes what became of them.
"""

import logging
import random
import time
from collections import deque
from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from core.courier.interface import NEVER, Deferred, Halted, Message, Outcome, Scope, Split, Unknown
from core.courier.options import Process
from core.courier.outcome_writer import OutcomeWriter
from core.courier.parcel import Parcel
from core.courier.pending_entries import PendingEntries, PendingEntry, checkpoint_of
from core.courier.retry_policy import Final, decide
from core.errors import StoreError
from core.history.parcels import Entry
from core.history.reader import HistoryReader
from core.model.states import Reason, Status
from core.queue.queue import Claim, Task

log = logging.getLogger(__name__)


class _AttemptTimes(NamedTuple):
    """What a batch has in common: when the courier was asked and when it answered, in ms of the server's clock, and the
    chance of the back-off. By them it is put off as one: each on its own would come back alone.
    """

    started: int
    ended: int
    chance: float


class ParcelExecutor:
    """One claim of one parcel, from its entries to `settle`."""

    def __init__(self, runtime: Process, task: Task, claim: Claim) -> None:
        self._runtime = runtime
        self._courier = runtime.courier
        self._task = task
        self._waits_known = claim.waits > 0
        self._clock = task.claimed - time.monotonic() * 1000
        self._parcel = parcel = Parcel.of(task)
        self._seed = f"{parcel.history_key.id}:{self._courier.channel}:{parcel.group}"
        self._entries = PendingEntries(task, parcel, self._courier.channel, self._courier.remembers)
        self._ledger = OutcomeWriter(runtime.queue, task, runtime.options.lease)
        self._todo: deque[PendingEntry] = deque()
        self._left: list[PendingEntry] = []
        self._held_until = 0

    @property
    def _now(self) -> int:
        """The server's clock, by ours since the claim."""
        return int(self._clock + time.monotonic() * 1000)

    async def run(self) -> None:
        """Attempt what can be, write the outcomes, settle."""
        await self._entries.compare(HistoryReader(self._runtime.store))
        for item in self._entries.died:
            self._close(item, Final(Status.UNKNOWN, Reason.CRASHED), item.attempts)
        await self._set_waiting_aside()
        async with self._ledger.being_written():
            await self._runtime.attempt_pool.attempt_all(self, -(-len(self._todo) // self._courier.batch))
        await self._settle()

    # Who can be served now

    async def _set_waiting_aside(self) -> None:
        """Those whose own wait is not over, or whose chat was asked to wait, are left; the others are served first."""
        opens = await self._chats_open_at()
        for item in self._entries.open:
            not_before = max(item.not_before, opens.get(item.entry.address, 0))
            if not_before > self._now:
                self._left.append(item._replace(not_before=not_before))
            else:
                self._todo.append(item)

    async def _chats_open_at(self) -> dict[str, int]:
        if not self._waits_known:
            return {}
        scopes = [f"{Scope.CHAT}:{item.entry.address}" for item in self._entries.open]
        waits = await self._runtime.queue.throttles(self._courier.channel, self._task.shard, scopes)
        return {scope.partition(":")[2]: until for scope, until in waits.items()}

    # Attempts

    def next_batch(self) -> list[PendingEntry]:
        """The next entries to attempt, none if it is better to stop; those too late or cancelled meanwhile are closed
        on the way.
        """
        batch: list[PendingEntry] = []
        if self._must_stop():
            return batch
        room = self._courier.batch
        while self._todo and len(batch) < (room := min(room, self._room_beside(self._todo[0]))):
            item = self._todo.popleft()
            if self._task.expires and self._now >= self._task.expires:
                self._close(item, _unattempted(item, Final(Status.EXPIRED, Reason.TOO_LATE)), item.attempts)
            elif self._ledger.skip and str(item.entry.id) in self._ledger.skip:
                self._close(item, _unattempted(item, Final(Status.CANCELLED)), item.attempts)
            else:
                batch.append(item)
        return batch

    def _room_beside(self, item: PendingEntry) -> int:
        """In how large a batch an entry may go. What ended unclear is repeated in halves, down to the one for whose
        sake a whole batch may have no answer: a repeat has the same random id, in whatever batch.
        """
        return max(1, self._courier.batch >> item.attempts) if item.unclear_since else self._courier.batch

    def _must_stop(self) -> bool:
        if self._ledger.lost or self._ledger.cancelled or self._runtime.stopping:
            return True
        return self._held_until > 0 and self._held_until > self._now

    async def attempt(self, batch: Sequence[PendingEntry]) -> None:
        """One batch. A fault of the store ends the whole run: the parcel is left to its lease."""
        try:
            if await self._announce(batch):
                await self._send(batch)
            else:
                self._put_back(batch)
        except StoreError as fault:
            self._ledger.give_up(fault)
        self._runtime.release_capacity(self._task, len(batch))

    async def _announce(self, batch: Sequence[PendingEntry]) -> bool:
        """Where a repeat could double a message, its attempt is written first, under our token. False: we do not hold
        it any more.
        """
        if self._courier.remembers != NEVER:
            return True
        await self._ledger.write([item.entry.item(Status.SENDING, attempts=item.attempts + 1) for item in batch])
        return not self._ledger.lost and not self._ledger.cancelled

    def _put_back(self, batch: Sequence[PendingEntry]) -> None:
        """Announced and then not attempted."""
        self._left.extend(batch)
        for item in batch:
            self._ledger.note(item.entry.item(Status.QUEUED, attempts=item.attempts))

    async def _send(self, batch: Sequence[PendingEntry]) -> None:
        messages = [await self._message(item.entry) for item in batch]
        started = self._now
        try:
            outcomes: Sequence[Outcome] = await self._courier.attempt(messages)
        except Exception as fault:  # the attempt: whatever a courier raises, its messages may have been sent
            log.exception("%s: an attempt failed", self._courier.channel)
            outcomes = [Unknown(f"{type(fault).__name__}: {fault}")] * len(batch)
        attempt = _AttemptTimes(started, self._now, random.random())
        refused: list[tuple[PendingEntry, Split]] = []
        for item, outcome in zip(batch, outcomes, strict=True):
            if isinstance(outcome, Split):
                refused.append((item, outcome))
            else:
                await self._take(item, outcome, attempt)
        if refused:
            await self._split(refused, whole=len(refused) == len(batch))

    async def _message(self, entry: Entry) -> Message:
        report = await self._report_url(entry) if self._runtime.options.report_url else ""
        return Message(entry.address, self._parcel.text, self._seed, f"{entry.id!r}:{entry.contact}", report)

    async def _report_url(self, entry: Entry) -> str:
        base = self._runtime.options.report_url
        token = await self._runtime.delivery_reports.token(
            self._parcel.history_key, self._courier.channel, self._parcel.number, entry
        )
        return f"{base}{'&' if '?' in base else '?'}token={token}"

    async def _split(self, refused: list[tuple[PendingEntry, Split]], *, whole: bool) -> None:
        """Halve down to the one message that the provider does not want. What it took beside them is not sent again."""
        if len(refused) == 1 and whole:
            await self._take(refused[0][0], refused[0][1].rejected, _AttemptTimes(self._now, self._now, 0.0))
            return
        half = (len(refused) + 1) // 2
        for part in (refused[:half], refused[half:]):
            if part:
                await self._send([item for item, _ in part])

    # What follows from an outcome

    async def _take(self, item: PendingEntry, outcome: Outcome, attempt: _AttemptTimes) -> None:
        if isinstance(outcome, Halted):
            self._left.append(item)
            await self._runtime.halt(outcome.detail)
            return
        if isinstance(outcome, Deferred) and outcome.after is not None:
            await self._hold(item, outcome)
        since = item.unclear_since or attempt.started
        age, backoff = timedelta(milliseconds=attempt.ended - since), self._runtime.options.backoff
        follows = decide(outcome, item.attempts, age, self._courier.remembers, backoff, attempt.chance)
        if isinstance(follows, Final):
            self._close(item, follows, item.attempts + 1)
            return
        not_before = attempt.ended + int(follows.pause.total_seconds() * 1000)
        unclear = since if follows.unclear else item.unclear_since
        self._left.append(item._replace(not_before=not_before, attempts=follows.attempts, unclear_since=unclear))
        if self._courier.remembers == NEVER:
            self._ledger.note(item.entry.item(Status.QUEUED, follows.reason, attempts=follows.attempts))

    async def _hold(self, item: PendingEntry, outcome: Deferred) -> None:
        """A wait that concerns others too is told to all processes."""
        assert outcome.after is not None
        if outcome.scope in (Scope.ACCOUNT, Scope.METHOD):
            self._held_until = max(self._held_until, self._now + int(outcome.after.total_seconds() * 1000))
            await self._runtime.queue.throttle(
                self._courier.channel, f"{outcome.scope}:{self._courier.account}", outcome.after
            )
        elif outcome.scope is Scope.CHAT:
            await self._runtime.queue.throttle(
                self._courier.channel, f"{Scope.CHAT}:{item.entry.address}", outcome.after
            )

    def _close(self, item: PendingEntry, closed: Final, attempts: int) -> None:
        self._ledger.note(item.entry.item(closed.status, closed.reason, closed.reference, attempts))

    async def _settle(self) -> None:
        left = [*self._left, *(item._replace(not_before=max(item.not_before, self._held_until)) for item in self._todo)]
        due = min((item.not_before for item in left), default=0)
        unclear = [
            item.entry.item(Status.UNKNOWN, Reason.PROVIDER_DOWN, attempts=item.attempts)
            for item in left
            if item.unclear_since
        ]
        await self._ledger.settle(due=due, left=len(left), checkpoint=checkpoint_of(left), unclear=unclear)


def _unattempted(item: PendingEntry, closed: Final) -> Final:
    """The end of an entry that is not tried again: unknown if the last attempt may have sent it (D-38)."""
    return Final(Status.UNKNOWN, Reason.PROVIDER_DOWN) if item.unclear_since else closed
