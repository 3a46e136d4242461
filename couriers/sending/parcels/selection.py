"""Selects the entries of a claimed parcel that can be attempted in this claim. The others wait, or end without an
attempt.

An entry ends here if an earlier channel has reached its recipient (strategy `first`), if its question was answered
before a reminder is sent, or if the channel can show nothing of the delivery.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from core.model.states import Reason, Status
from core.queue import Task
from couriers.sending.interface import Scope
from couriers.sending.messages import Messages
from couriers.sending.parcels.parcel import Parcel
from couriers.sending.parcels.parcel_services import ParcelServices
from couriers.sending.parcels.pending_entries import PendingEntries, PendingEntry, opens_at, reached_earlier
from couriers.sending.retry_policy import Final


class Selected(NamedTuple):
    """`ready`: to be attempted in this claim. `postponed`: for the next claim. `ended`: with their outcomes."""

    ready: Sequence[PendingEntry]
    postponed: Sequence[PendingEntry]
    ended: Sequence[tuple[PendingEntry, Final]]


class EntrySelection:
    """The selection of one claim, from the open entries of `entries`."""

    def __init__(
        self, services: ParcelServices, task: Task, parcel: Parcel, messages: Messages, entries: PendingEntries
    ) -> None:
        self._services = services
        self._task = task
        self._parcel = parcel
        self._messages = messages
        self._entries = entries
        self._ready: list[PendingEntry] = []
        self._ended: list[tuple[PendingEntry, Final]] = []

    async def select(self, *, tube_has_throttles: bool) -> Selected:
        """Return what becomes of each open entry. Raises StoreError."""
        throttled = await self._throttled_chats() if tube_has_throttles else {}
        postponed = []
        for pending in self._entries.open:
            not_before = max(pending.not_before, throttled.get(pending.entry.address, 0), self._opens(pending))
            # As of the claim: after a crash this shows which entries may have been attempted.
            if not_before > self._task.claimed:
                postponed.append(pending._replace(not_before=not_before))
            else:
                self._ready.append(pending)
        await self._skip_reached()
        await self._skip_answered()
        self._refuse_empty()
        return Selected(self._ready, postponed, self._ended)

    def _opens(self, pending: PendingEntry) -> int:
        """Return when the recipient wants the message; 0 if a lost claim has moved it to the message of the day."""
        if pending.unclear_since and self._entries.joins_day(pending.entry):
            return 0
        return opens_at(pending.entry, self._parcel.history_key, self._task.claimed)

    async def _throttled_chats(self) -> dict[str, int]:
        """Return address → the server ms until which it is throttled."""
        scopes = [f"{Scope.CHAT}:{pending.entry.address}" for pending in self._entries.open]
        throttles = await self._services.queue.throttles(self._services.courier.channel, self._task.shard, scopes)
        return {scope.partition(":")[2]: until for scope, until in throttles.items()}

    async def _skip_reached(self) -> None:
        """End the entries that were never attempted and whose recipients an earlier channel has reached (D-36)."""
        fresh = {pending.entry.number for pending in self._ready if _is_fresh(pending)}
        channel = self._services.courier.channel
        reached = await reached_earlier(self._services.reader, self._parcel, channel, fresh)
        self._end(
            lambda pending: _is_fresh(pending) and pending.entry.number in reached,
            Final(Status.SKIPPED, Reason.REACHED_ELSEWHERE),
        )

    async def _skip_answered(self) -> None:
        """End the entries of recipients with an answer before a parcel that asks again is sent. Later answers are left
        out in the step that writes `sending` (lua/answers/modules/reminders.lua).
        """
        if not self._parcel.asks_again:
            return
        numbers = {pending.entry.number for pending in self._ready if not pending.unclear_since}
        answered = await self._services.reader.answered(self._parcel.history_key, numbers)
        self._end(lambda pending: pending.entry.number in answered, Final(Status.SKIPPED, Reason.ANSWERED))

    def _refuse_empty(self) -> None:
        """End the entries to which the channel can show nothing of the delivery."""
        self._end(
            lambda pending: self._messages.presented(pending.entry).is_empty,
            Final(Status.FAILED, Reason.CONTENT_REFUSED),
        )

    def _end(self, has_ended: Callable[[PendingEntry], bool], final: Final) -> None:
        ready, self._ready = self._ready, []
        for pending in ready:
            if has_ended(pending):
                self._ended.append((pending, self._entries.unattempted(pending, final)))
            else:
                self._ready.append(pending)


def _is_fresh(pending: PendingEntry) -> bool:
    return not pending.attempts and not pending.unclear_since
