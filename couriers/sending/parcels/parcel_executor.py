"""Executes one claimed parcel.

An entry is *ready* (to be attempted in this claim), then *closed* (its final outcome was noted) or *postponed* (it
stays in the checkpoint for the next claim: `couriers.sending.parcels.pending_entries`).

Invariant I17: before an attempt on a channel without repeat protection, its entries are written as `sending` under our
token. With protection, a repeat carries the same random id. Tests: tests/system/crash/test_couriers.py.

Called by `couriers.sending.runtime`. `couriers.sending.attempt_pool` attempts the batches,
`couriers.sending.outcome_writer` writes the outcomes.
"""

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import NamedTuple

from core.deliveries.received import ReceivedMessage
from core.errors import StoreError
from core.model.states import Reason, Status
from core.queue import Claim, Settlement, Task
from core.queue.checks import error_text
from core.redis.cancel_and_wait import is_cancelled_from_outside
from couriers.exchanges import NotedCall, noting_calls
from couriers.sending.interface import (
    NEVER,
    Announces,
    Deferred,
    Halted,
    Message,
    NotWanted,
    Outcome,
    Partly,
    Scope,
    Sent,
    SharesTexts,
    Split,
    Unknown,
)
from couriers.sending.messages import Messages
from couriers.sending.outcome_writer import OutcomeWriter
from couriers.sending.parcels.checked_outcomes import checked
from couriers.sending.parcels.exchange_notes import ExchangeNote
from couriers.sending.parcels.parcel import Parcel
from couriers.sending.parcels.parcel_services import ParcelServices
from couriers.sending.parcels.pending_entries import PendingEntries, PendingEntry, checkpoint_of, reached_earlier
from couriers.sending.retry_policy import Final, decide

log = logging.getLogger(__name__)


class _AttemptTimes(NamedTuple):
    """Start and end of an attempt in server ms, and one jitter for its batch, so that its retries stay together.
    `triggered`: it triggered a throttle of the account.
    """

    started: int
    ended: int
    jitter: float
    triggered: bool = False


class _Announcement:
    """The announcement of one attempt of an entry: written at the first call."""

    __slots__ = ("_announce", "_is_made", "_pending")

    def __init__(self, announce: Callable[[PendingEntry], Awaitable[None]], pending: PendingEntry) -> None:
        self._announce = announce
        self._pending = pending
        self._is_made = False

    async def __call__(self) -> None:
        if not self._is_made:
            await self._announce(self._pending)
            self._is_made = True


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
        self._entries = PendingEntries(task, self._parcel, self._courier.remembers)
        self._announces = self._courier.remembers == NEVER or self._parcel.asks_again
        self._writer = OutcomeWriter(services, task, self._parcel)
        self._ready: deque[PendingEntry] = deque()
        self._postponed: list[PendingEntry] = []
        self._notes: dict[int, ExchangeNote] = {}  # of the last attempt, by place
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
            self._close(pending, Final(Status.UNKNOWN, self._unclear_reason(pending)), pending.attempts)
        await self._select_ready()
        await self._skip_reached()
        await self._skip_answered()
        self._refuse_empty()
        if self._ready:
            await self._attempt_ready()
        await self._settle()

    async def _attempt_ready(self) -> None:
        async with self._files_on_disk(), self._writer.writing():
            batch = self._most_texts or self._courier.batch
            await self._services.attempt_pool.attempt_all(self, -(-len(self._ready) // batch))

    @asynccontextmanager
    async def _files_on_disk(self) -> AsyncIterator[None]:
        """Keep uploaded files on the disk of this machine, where the messages name them meanwhile."""
        shared = self._messages.shared
        async with self._services.files.on_disk(self._task.tenant, shared.content) as content:
            self._messages.shared = shared._replace(content=content)
            yield

    # Which entries can be served now

    async def _select_ready(self) -> None:
        """Postpone entries whose own wait is not over or whose chat is throttled."""
        throttled = await self._throttled_chats()
        for pending in self._entries.open:
            not_before = max(pending.not_before, throttled.get(pending.entry.address, 0))
            # As of the claim: after a crash this shows which entries may have been attempted.
            if not_before > self._task.claimed:
                self._postponed.append(pending._replace(not_before=not_before))
            else:
                self._ready.append(pending)
        if self._most_texts:  # what can share a call stands together
            self._ready = deque(sorted(self._ready, key=lambda pending: self._messages.values(pending.entry)))

    async def _skip_reached(self) -> None:
        """Close the entries that were never attempted and whose recipients an earlier channel has reached (D-36)."""
        fresh = {pending.entry.number for pending in self._ready if not pending.attempts and not pending.unclear_since}
        reached = await reached_earlier(self._services.reader, self._parcel, self._courier.channel, fresh)
        if not reached:
            return
        ready, self._ready = self._ready, deque()
        for pending in ready:
            if pending.entry.number in reached and not pending.attempts and not pending.unclear_since:
                self._close(pending, Final(Status.SKIPPED, Reason.REACHED_ELSEWHERE), 0)
            else:
                self._ready.append(pending)

    async def _skip_answered(self) -> None:
        """Close the entries of those who have answered before a parcel that asks again is sent. Who answers later is
        left out in the step that writes `sending` (lua/answers/modules/reminders.lua).
        """
        if not self._parcel.asks_again:
            return
        fresh = {pending.entry.number for pending in self._ready if not pending.unclear_since}
        answered = await self._services.reader.answered(self._parcel.history_key, fresh)
        ready, self._ready = self._ready, deque()
        for pending in ready:
            if pending.entry.number in answered:
                self._close(pending, Final(Status.SKIPPED, Reason.ANSWERED), pending.attempts)
            else:
                self._ready.append(pending)

    def _refuse_empty(self) -> None:
        """Close the entries to which the channel can show nothing of the delivery."""
        ready, self._ready = self._ready, deque()
        for pending in ready:
            if self._messages.presented(pending.entry).is_empty:
                self._close(pending, self._unattempted(pending, Final(Status.FAILED, Reason.CONTENT_REFUSED)), 0)
            else:
                self._ready.append(pending)

    async def _throttled_chats(self) -> dict[str, int]:
        """Return address → the server ms until which it is throttled."""
        if not self._tube_has_throttles:
            return {}
        scopes = [f"{Scope.CHAT}:{pending.entry.address}" for pending in self._entries.open]
        throttles = await self._services.queue.throttles(self._courier.channel, self._task.shard, scopes)
        return {scope.partition(":")[2]: until for scope, until in throttles.items()}

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
        self._close(pending, self._unattempted(pending, final), pending.attempts)
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
            with noting_calls() as calls:
                outcomes = await self._outcomes_of(batch, messages)
        except NotWanted:
            self._put_back_open(batch)
            return
        self._note_exchanges(batch, messages, outcomes, calls, started)
        triggered = await self._learn(batch, outcomes)
        times = _AttemptTimes(started, self._now, random.random(), triggered)
        attempted = list(zip(batch, outcomes, strict=True))
        for pending, outcome in attempted:
            if not isinstance(outcome, Split):
                self._apply(pending, outcome, times)
        await self._pass_on(attempted)
        if to_split := [(pending, outcome) for pending, outcome in attempted if isinstance(outcome, Split)]:
            await self._split(to_split, whole=len(to_split) == len(batch))

    async def _outcomes_of(self, batch: Sequence[PendingEntry], messages: Sequence[Message]) -> Sequence[Outcome]:
        """Make one attempt. After a fault of the courier its messages may have been sent. Raises NotWanted."""
        try:
            outcomes = await self._courier.attempt(await self._announced(batch, messages))
            if len(outcomes) != len(messages):
                raise ValueError(f"{len(outcomes)} outcomes for {len(messages)} messages")
            outcomes = [checked(outcome) for outcome in outcomes]
        except NotWanted:
            raise
        except BaseException as fault:  # whatever a courier raises, unless the pool has cancelled the attempt
            if isinstance(fault, asyncio.CancelledError) and is_cancelled_from_outside():
                raise
            self._services.exchange_notes.log_fault(fault)
            outcomes = [Unknown(error_text(fault))] * len(messages)
        cleaned = self._services.exchange_notes.cleaned
        return [cleaned(outcome, message) for outcome, message in zip(outcomes, messages, strict=True)]

    def _note_exchanges(
        self,
        batch: Sequence[PendingEntry],
        messages: Sequence[Message],
        outcomes: Sequence[Outcome],
        calls: Sequence[NotedCall],
        started: int,
    ) -> None:
        """Note what the provider said about each message of an attempt."""
        note, shared = self._services.exchange_notes.of, len(batch) > 1
        for pending, message, outcome in zip(batch, messages, outcomes, strict=True):
            is_repeat = pending.attempts > 0 or pending.unclear_since > 0
            if isinstance(outcome, Sent) and not is_repeat:
                continue
            self._notes[pending.place] = note(outcome, message, calls, started, shared=shared, is_repeat=is_repeat)

    async def _announced(self, batch: Sequence[PendingEntry], messages: Sequence[Message]) -> Sequence[Message]:
        """Announce the messages where a repeat could double them, or where who has answered is not asked again, unless
        the courier does it. Raises NotWanted.
        """
        if not self._announces:
            return messages
        announcements = [_Announcement(self._announce, pending) for pending in batch]
        if isinstance(self._courier, Announces):
            return [replace(one, announce=announce) for one, announce in zip(messages, announcements, strict=True)]
        await asyncio.gather(*(announce() for announce in announcements))
        return messages

    async def _announce(self, pending: PendingEntry) -> None:
        """Write `sending`. Raises NotWanted if nothing may be sent any more by then."""
        await self._writer.announce(pending.entry.item(Status.SENDING, attempts=pending.attempts + 1))
        is_skipped = str(pending.entry.id) in self._writer.skip
        if is_skipped or self._writer.lost or self._writer.cancelled or self._services.account.is_throttled:
            raise NotWanted

    async def _learn(self, batch: Sequence[PendingEntry], outcomes: Sequence[Outcome]) -> bool:
        """Throttle the account if the provider asks for it. Returns whether this attempt triggered the throttle."""
        try:
            is_first = any(pending.attempts == 0 for pending in batch)
            return await self._services.account.learn(outcomes, is_first=is_first)
        except StoreError as fault:
            self._writer.give_up(fault)
            return False

    async def _pass_on(self, attempted: Sequence[tuple[PendingEntry, Outcome]]) -> None:
        """Pass on what the outcomes say about chats, the account and dialogs. They are noted before."""
        try:
            for pending, outcome in attempted:
                rest = outcome.rest if isinstance(outcome, Partly) else outcome
                if isinstance(rest, Halted):
                    await self._services.halt(rest.detail)
                elif isinstance(rest, Deferred) and rest.after is not None and rest.scope is Scope.CHAT:
                    scope = f"{Scope.CHAT}:{pending.entry.address}"
                    await self._services.queue.throttle(self._courier.channel, scope, rest.after)
        except StoreError as fault:
            self._writer.give_up(fault)
        sent = [(pending.entry, outcome) for pending, outcome in attempted if isinstance(outcome, Sent)]
        await self._services.read_marks.note(self._parcel, sent)
        if self._parcel.takes_replies or self._parcel.is_answered_in_words:
            await self._note_received(attempted)

    async def _note_received(self, attempted: Sequence[tuple[PendingEntry, Outcome]]) -> None:
        """Note messages that may be replied to. If the store fails, a reply that quotes one is placed without it."""
        key, channel = self._parcel.history_key, self._courier.channel
        received = [
            (
                pending.entry.address,
                ReceivedMessage(outcome.reference if isinstance(outcome, Sent) else "", key, pending.entry.number),
            )
            for pending, outcome in attempted
            if isinstance(outcome, Sent | Unknown)
        ]
        try:
            await self._services.received.note(self._task.tenant, channel, received)
        except StoreError as fault:
            log.warning("%s: %d messages not noted for replies: %s", channel, len(received), fault)

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
        since = pending.unclear_since or times.started
        age, backoff = timedelta(milliseconds=times.ended - since), self._services.options.backoff
        unclear, remembers = pending.unclear_since > 0, self._courier.remembers
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
        note = self._notes.get(pending.place, ExchangeNote())
        self._services.exchange_notes.log("tried again later", decision.reason, note.detail)
        # Elsewhere an entry that waits stays as it is stored, and only the exchange is kept.
        if self._announces or note.line:
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
        note = self._notes.get(pending.place, ExchangeNote())
        if final.status in (Status.FAILED, Status.UNKNOWN) and note.detail:
            self._services.exchange_notes.log(final.status, final.reason, note.detail)
        known = final.status, final.reason, final.reference, attempts, not_shown
        paid = self._messages.paid_parts(pending.entry) if final.status in (Status.SENT, Status.UNKNOWN) else None
        self._writer.note(pending.entry.item(*known, *note, paid=paid))

    async def _settle(self) -> None:
        postponed = [*self._postponed, *self._until_throttle_ends(self._ready)]
        due = min((pending.not_before for pending in postponed), default=0)
        unclear = [
            pending.entry.item(
                Status.UNKNOWN,
                self._unclear_reason(pending),
                attempts=pending.attempts,
                detail=self._notes.get(pending.place, ExchangeNote()).detail,
                paid=self._messages.paid_parts(pending.entry),
            )
            for pending in postponed
            if pending.unclear_since
        ]
        end = Settlement(due=due, checkpoint=checkpoint_of(postponed), unclear=unclear, error=self._error)
        await self._writer.settle(end, len(postponed))

    def _unattempted(self, pending: PendingEntry, final: Final) -> Final:
        """Return the end of an entry that is not attempted again: unknown if an attempt may have sent the message
        (D-38)."""
        return Final(Status.UNKNOWN, self._unclear_reason(pending)) if pending.unclear_since else final

    def _unclear_reason(self, pending: PendingEntry) -> Reason:
        may_have_crashed = self._task.crashed or self._courier.remembers == NEVER
        crashed = may_have_crashed and pending.unclear_since == self._task.started
        return Reason.CRASHED if crashed else Reason.ANSWER_LOST
