"""Entries still to attempt of a claimed parcel: those of the checkpoint, minus those that are already final.

The previous claim left them in the task's checkpoint as `[place, not before ms, attempts, unclear since ms]`, so that
the next claim continues exactly there.

Invariant I17: where a repeat could double the message, an entry found as `sending` after a crash becomes `unknown` and
is never repeated. Tests: tests/crash/test_couriers.py.
"""

import json
from collections.abc import Iterable
from datetime import timedelta
from typing import NamedTuple

from core.courier.interface import NEVER
from core.courier.parcel import Parcel
from core.courier.retry_policy import still_remembered
from core.history.parcels import Entry
from core.history.reader import HistoryReader
from core.model.compact_json import compact_json
from core.model.states import OPEN, Status
from core.queue import Task


class PendingEntry(NamedTuple):
    """An entry without a final outcome, and its `place` in the parcel. Times are server ms. `unclear_since` 0: no
    attempt has had an unclear end.
    """

    place: int
    entry: Entry
    not_before: int = 0
    attempts: int = 0
    unclear_since: int = 0

    def row(self) -> list[int]:
        return [self.place, self.not_before, self.attempts, self.unclear_since]


def checkpoint_of(postponed: Iterable[PendingEntry]) -> str:
    rows = [pending.row() for pending in postponed]
    return compact_json(rows) if rows else ""


class PendingEntries:
    """One per claim. `open`: entries to attempt. `unclear`: entries whose last attempt was cut off by a crash and
    cannot be repeated safely.
    """

    def __init__(self, task: Task, parcel: Parcel, channel: str, remembers: timedelta) -> None:
        self._task = task
        self._parcel = parcel
        self._channel = channel
        self._remembers = remembers
        rows = json.loads(task.checkpoint or "[]")
        resumed = [PendingEntry(row[0], parcel.entries[row[0]], *row[1:]) for row in rows]
        self.open = resumed or [PendingEntry(place, entry) for place, entry in enumerate(parcel.entries)]
        self.unclear: list[PendingEntry] = []
        self._may_be_outdated = task.crashed or parcel.closed or task.left < len(self.open)

    async def compare(self, reader: HistoryReader) -> None:
        """Remove the entries that are final in the history, after a crash, a cancellation or a delivery report."""
        if not self._may_be_outdated or not self.open:
            return
        key = self._parcel.history_key
        fields = [pending.entry.field(self._channel) for pending in self.open]
        stored = await reader.outcomes(key, fields)
        retried = await reader.retried_entries(key, self._channel, self._parcel.number)
        open_entries, self.open = self.open, []
        for pending, field in zip(open_entries, fields, strict=True):
            status = Status((stored[field] or Status.QUEUED).split("|")[0])
            if status in OPEN and field not in retried:
                (self.unclear if self._is_unclear(pending, status) else self.open).append(pending)

    def _is_unclear(self, pending: PendingEntry, status: Status) -> bool:
        """Whether repeating an attempt that was cut off could double the message."""
        since = pending.unclear_since or (self._task.started if self._task.crashed else 0)
        age = timedelta(milliseconds=max(0, self._task.claimed - since))
        may_have_been_sent = status is Status.SENDING if self._remembers == NEVER else since > 0
        return may_have_been_sent and not still_remembered(age, self._remembers)
