"""Executes one claimed parcel.

An entry is *ready* (to be attempted in this claim), then *closed* (its final outcome was noted) or *postponed* (it
stays in the checkpoint for the next claim: `couriers.sending.parcel`).

Invariant I17: before an attempt on a channel without repeat protection, its entries are written as `sending` under our
token. With protection, a repeat carries the same random id. Tests: tests/system/crash/test_couriers.py.

Called by `couriers.sending.runtime`. `couriers.sending.parcel` selects the entries,
`couriers.sending.attempt_pool` attempts the batches by `couriers.sending.courier_attempts`,
`couriers.sending.outcome_writer` writes the outcomes.
"""

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import NamedTuple

from core.errors import StoreError
from core.model.states import Reason, Status
from core.queue import Claim, Settlement, Task
from couriers.sending.courier_attempts import CourierAttempts
from couriers.sending.interface import (
    NEVER,
    NotWanted,
    Outcome,
    SharesTexts,
    Split,
)
from couriers.sending.messages import Messages
from couriers.sending.outcome_writer import OutcomeWriter
from couriers.sending.parcel import EntrySelection, Parcel, PendingEntries, PendingEntry, checkpoint_of
from couriers.sending.retry_policy import Final, decide
from couriers.sending.services import ParcelServices

log = logging.getLogger(__name__)


class _AttemptTimes(NamedTuple):
    """Start and end of an attempt in server ms, and one jitter for its batch, so that its retries stay together.
    `triggered`: it triggered a throttle of the account.
    """

    started: int
    ended: int
    jitter: float
    triggered: bool = False


class ParcelExecutor:
    """One claim of one parcel."""

    def __init__(self, services: ParcelServices, task: Task, claim: Claim) -> None:
        self._services = services
        self._courier = services.courier
        self._task = task
        self._tube_has_throttles = claim.throttles > 0
        self._clock_offset = task.claimed - claim.asked * 1000
        self._parcel = Parcel.of(task)
        self._messages = Messages(services, self._parcel, task.tenant)
        self._writer = OutcomeWriter(services, task, self._parcel)
        self._attempts = CourierAttempts(services, task, self._parcel, self._writer)
        self._entries = PendingEntries(task, self._parcel, self._courier.remembers, in_sms=self._messages.limits.in_sms)
        self._ready: deque[PendingEntry] = deque()
        self._of_day: list[PendingEntry] = []
        self._postponed: list[PendingEntry] = []
        courier = self._courier
        self._most_texts = courier.most_texts if self._parcel.is_personal and isinstance(courier, SharesTexts) else 0
        self._error = ""  # why the last entry that failed is attempted again

    @property
    def _now(self) -> int:
        """Server ms, not behind the server's clock: nothing is sent after its expiry."""
        return int(self._clock_offset + time.monotonic() * 1000)

    async def run(self) -> None:
        """Attempt the entries that can be served now, write their outcomes, settle. Raises StoreError: if it does after
        the first attempt, the process stops while the store fails.
        """
        await self._entries.compare(self._services.reader)
        await self._messages.read_values(self._services.reader)
        for pending in self._entries.unclear:
            self._close(pending, Final(Status.UNKNOWN, self._entries.unclear_reason(pending)), pending.attempts)
        await self._select()
        if self._ready or self._of_day:
            await self._attempt_ready()
        await self._settle()

    async def _attempt_ready(self) -> None:
        async with self._files_on_disk(), self._writer.writing():
            batch = self._most_texts or self._courier.batch
            attempts = self._services.attempt_pool.attempt_all(self, -(-len(self._ready) // batch))
            await (asyncio.gather(attempts, self._join_day_messages()) if self._of_day else attempts)

    async def _join_day_messages(self) -> None:
        """Hand over the texts for messages of the day, all at the same time: they wait for those of other parcels."""
        self._services.release_capacity(self._task, len(self._of_day))
        if self._must_stop():
            self._put_back(self._of_day)
        else:
            await self._send(self._of_day)

    @asynccontextmanager
    async def _files_on_disk(self) -> AsyncIterator[None]:
        """Keep uploaded files on the disk of this machine, where the messages name them meanwhile."""
        shared = self._messages.shared
        async with self._services.files.on_disk(self._task.tenant, shared.content) as content:
            self._messages.shared = shared._replace(content=content)
            yield

    async def _select(self) -> None:
        selection = EntrySelection(self._services, self._task, self._parcel, self._entries, self._messages.is_empty)
        selected = await selection.select(tube_has_throttles=self._tube_has_throttles)
        self._postponed.extend(selected.postponed)
        for pending, final in selected.ended:
            self._close(pending, final, pending.attempts)
        ready = [one for one in selected.ready if not one.is_of_day]
        self._of_day = [one for one in selected.ready if one.is_of_day]
        if selected.ready and self._entries.must_be_saved(selected.postponed):
            # Also of those whose outcomes are not written yet: an entry that is missing here is taken for final.
            ended = [*self._entries.unclear, *(pending for pending, _ in selected.ended)]
            await self._writer.save(checkpoint_of([*ended, *selected.ready, *selected.postponed]))
        if self._most_texts:  # what can share a call stands together
            ready = sorted(ready, key=lambda pending: self._messages.values(pending.entry))
        self._ready.extend(ready)

    # Attempts

    def next_batch(self) -> list[PendingEntry]:
        """Return the entries of the next attempt; empty if no attempt should start. Closes expired and cancelled
        entries on the way.
        """
        batch: list[PendingEntry] = []
        if self._must_stop():
            return batch
        limit = self._courier.batch
        texts = set[tuple[tuple[str, str], ...]]()
        while self._ready and len(batch) < (limit := min(limit, self._batch_limit(self._ready[0]))):
            if self._most_texts and len(texts | {self._messages.values(self._ready[0].entry)}) > self._most_texts:
                break
            pending = self._ready.popleft()
            if not self._closed_early(pending):
                batch.append(pending)
                texts.add(self._messages.values(pending.entry))
        return batch

    def _closed_early(self, pending: PendingEntry) -> bool:
        """Close an entry that has expired or was cancelled; return whether it was."""
        if self._task.expires and self._now >= self._task.expires:
            final = Final(Status.EXPIRED, Reason.TOO_LATE)
        elif str(pending.entry.id) in self._writer.skip:
            final = Final(Status.CANCELLED)
        else:
            return False
        self._close(pending, self._entries.unattempted(pending, final), pending.attempts)
        return True

    def _batch_limit(self, pending: PendingEntry) -> int:
        """Return the largest batch this entry may join. The limit is quartered with each attempt, because one message
        may be the reason why a whole batch gets no response or a refusal: it must be alone before its attempts end. The
        random id does not depend on the batch.
        """
        largest = min(self._courier.batch, len(self._parcel.entries))
        return max(1, largest >> 2 * pending.attempts)

    def _must_stop(self) -> bool:
        if self._writer.lost or self._writer.cancelled or self._services.is_stopping():
            return True
        return self._services.account.is_throttled

    async def attempt(self, batch: Sequence[PendingEntry]) -> None:
        """Attempt one batch. After a fault of the store nothing more is attempted, and no outcome is lost."""
        try:
            if await self._services.account.wait_for_turn():
                # What was right before may have changed meanwhile.
                self._ready.extendleft(reversed(batch))
                batch = self.next_batch()
        except StoreError as fault:
            self._writer.give_up(fault)
            self._put_back(batch)
        else:
            await self._send(batch)
        self._services.release_capacity(self._task, len(batch))

    def _put_back(self, batch: Sequence[PendingEntry]) -> None:
        """Postpone entries that were not attempted, also if they were announced."""
        self._postponed.extend(self._until_throttle_ends(batch))
        for pending in batch:
            self._writer.note(pending.entry.item(Status.QUEUED, attempts=pending.attempts))

    def _put_back_open(self, batch: Iterable[PendingEntry]) -> None:
        """Close what has expired or was cancelled meanwhile, put back the rest."""
        self._put_back([pending for pending in batch if not self._closed_early(pending)])

    async def _send(self, chosen: Sequence[PendingEntry]) -> None:
        """Attempt what is still wanted."""
        if not (batch := [pending for pending in chosen if not self._closed_early(pending)]):
            return
        try:
            messages = await self._messages.of([pending.entry for pending in batch])
        except StoreError as fault:
            self._writer.give_up(fault)
            self._put_back(batch)
            return
        started = self._now
        try:
            outcomes = await self._attempts.make(batch, messages, started)
        except NotWanted:
            self._put_back_open(batch)
            return
        triggered = await self._learn(batch, outcomes)
        jitter = 0.0 if batch[0].is_of_day else random.random()  # parts of other parcels wait alike
        times = _AttemptTimes(started, self._now, jitter, triggered)
        attempted = list(zip(batch, outcomes, strict=True))
        for pending, outcome in attempted:
            if not isinstance(outcome, Split):
                self._apply(pending, outcome, times)
        await self._attempts.pass_on(attempted)
        if to_split := [(pending, outcome) for pending, outcome in attempted if isinstance(outcome, Split)]:
            await self._split(to_split, whole=len(to_split) == len(batch))

    async def _learn(self, batch: Sequence[PendingEntry], outcomes: Sequence[Outcome]) -> bool:
        """Throttle the account if the provider asks for it. Returns whether this attempt triggered the throttle."""
        try:
            is_first = any(pending.attempts == 0 for pending in batch)
            return await self._services.account.learn(outcomes, is_first=is_first)
        except StoreError as fault:
            self._writer.give_up(fault)
            return False

    async def _split(self, refused: list[tuple[PendingEntry, Split]], *, whole: bool) -> None:
        """Attempt each half, down to the one message that the provider refuses. `whole`: the provider took none of the
        batch.
        """
        if len(refused) == 1 and whole:
            self._apply(refused[0][0], refused[0][1].rejected, _AttemptTimes(self._now, self._now, 0.0))
            return
        middle = (len(refused) + 1) // 2
        for half in (refused[:middle], refused[middle:]):
            await self._send_half([pending for pending, _ in half])

    async def _send_half(self, half: Sequence[PendingEntry]) -> None:
        try:
            await self._services.account.wait_for_turn()
        except StoreError as fault:
            self._writer.give_up(fault)
        if self._must_stop():
            self._put_back(half)
        elif half:
            await self._send(half)

    # What follows from an outcome

    def _apply(self, pending: PendingEntry, outcome: Outcome, times: _AttemptTimes) -> None:
        if pending.is_of_day:  # the outcome is that of its text, whichever claim has moved it there
            pending = pending._replace(unclear_since=0)
        since = pending.unclear_since or times.started
        age, backoff = timedelta(milliseconds=times.ended - since), self._services.options.backoff
        unclear, remembers = pending.unclear_since > 0, NEVER if pending.is_of_day else self._courier.remembers
        flags = {"unclear": unclear, "triggered": times.triggered}
        decision = decide(outcome, pending.attempts, age, remembers, backoff, times.jitter, **flags)
        if isinstance(decision, Final):
            self._close(pending, decision, pending.attempts + 1)
            return
        self._error = decision.reason or ""
        not_before = times.ended + int(decision.pause.total_seconds() * 1000)
        unclear_since = since if decision.unclear else pending.unclear_since
        self._postponed.append(
            pending._replace(not_before=not_before, attempts=decision.attempts, unclear_since=unclear_since)
        )
        note = self._attempts.note_of(pending)
        self._services.exchange_notes.log("tried again later", decision.reason, note.detail)
        # Elsewhere an entry that waits stays as it is stored, and only the exchange is kept.
        if self._attempts.are_announced or pending.is_of_day or note.line:
            known = Status.QUEUED, decision.reason, "", decision.attempts, ()
            self._writer.note(pending.entry.item(*known, *note))

    def _until_throttle_ends(self, unserved: Iterable[PendingEntry]) -> list[PendingEntry]:
        if not self._services.account.is_throttled:
            return list(unserved)
        until = int(self._clock_offset + self._services.account.until * 1000)
        return [pending._replace(not_before=max(pending.not_before, until)) for pending in unserved]

    def _close(self, pending: PendingEntry, final: Final, attempts: int) -> None:
        """Note the outcome; with what was not shown if the recipient may have received the rest, or if nothing else
        was left.
        """
        with_content = final.status in (Status.SENT, Status.UNKNOWN) or final.reason == Reason.CONTENT_REFUSED
        not_shown = (*self._messages.presented(pending.entry).not_shown, *final.not_shown) if with_content else ()
        note = self._attempts.note_of(pending)
        if final.status in (Status.FAILED, Status.UNKNOWN) and note.detail:
            self._services.exchange_notes.log(final.status, final.reason, note.detail)
        if final.reason == Reason.CRASHED:
            self._log_crash(pending)
        known = final.status, final.reason, final.reference, attempts, not_shown
        paid = self._messages.paid_parts(pending.entry) if final.status in (Status.SENT, Status.UNKNOWN) else None
        self._writer.note(pending.entry.item(*known, *note, paid=paid))

    def _log_crash(self, pending: PendingEntry) -> None:
        """Log the recipient of a message that a lost process may have sent. An id with a colon contains an address."""
        name = str(pending.entry.id)
        recipient = f"number {pending.entry.number + 1}" if ":" in name else name
        delivery = self._parcel.history_key.id
        log.warning(
            "%s: unknown, crashed: delivery %s, recipient %s; the process that was sending it was lost",
            self._courier.channel, delivery, recipient,
        )  # fmt: skip

    async def _settle(self) -> None:
        postponed = [*self._postponed, *self._until_throttle_ends(self._ready)]
        due = min((pending.not_before for pending in postponed), default=0)
        unclear = [
            pending.entry.item(
                Status.UNKNOWN,
                self._entries.unclear_reason(pending),
                attempts=pending.attempts,
                detail=self._attempts.note_of(pending).detail,
                paid=self._messages.paid_parts(pending.entry),
            )
            for pending in postponed
            if pending.unclear_since
        ]
        end = Settlement(due=due, checkpoint=checkpoint_of(postponed), unclear=unclear, error=self._error)
        await self._writer.settle(end, len(postponed))
