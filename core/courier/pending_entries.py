"""Which entries of a claimed parcel have no end yet: what the holder before left, less what the history knows better.

What was left stands in the task's checkpoint as `[place, not before ms, attempts, unclear since ms]`, so that the next
holder goes on exactly there.

Invariant I17: who finds `sending` after a crash, where a repeat could double the message, says `unknown` and never
repeats. Tests: tests/crash/test_couriers.py.
"""

import json
from collections.abc import Iterable
from datetime import timedelta
from typing import NamedTuple

from core.courier.interface import NEVER
from core.courier.parcel import Parcel
from core.courier.retry_policy import covered
from core.history.parcels import Entry
from core.history.reader import HistoryReader
from core.model.compact_json import compact_json
from core.model.states import OPEN, Status
from core.queue.task import Task


class PendingEntry(NamedTuple):
    """An entry that has no end yet, and its `place` in the parcel. Times in the server's ms; `unclear_since` 0: no
    attempt's end is unclear.
    """

    place: int
    entry: Entry
    not_before: int = 0
    attempts: int = 0
    unclear_since: int = 0

    def row(self) -> list[int]:
        return [self.place, self.not_before, self.attempts, self.unclear_since]


def checkpoint_of(left: Iterable[PendingEntry]) -> str:
    rows = [item.row() for item in left]
    return compact_json(rows) if rows else ""


class PendingEntries:
    """Of one claim. `open`: to be attempted; `died`: those whose last attempt's end nobody can tell any more."""

    def __init__(self, task: Task, parcel: Parcel, channel: str, remembers: timedelta) -> None:
        self._task = task
        self._channel = channel
        self._remembers = remembers
        self._parcel = parcel
        rows = json.loads(task.checkpoint or "[]")
        found = [PendingEntry(row[0], parcel.entries[row[0]], *row[1:]) for row in rows]
        self.open = found or [PendingEntry(place, entry) for place, entry in enumerate(parcel.entries)]
        self.died: list[PendingEntry] = []
        self._in_doubt = task.crashed or parcel.closed or task.left < len(self.open)

    async def compare(self, reader: HistoryReader) -> None:
        """After a crash, a cancellation or a report the history knows better than the parcel."""
        if not self._in_doubt or not self.open:
            return
        key = self._parcel.history_key
        fields = [item.entry.field(self._channel) for item in self.open]
        stored = await reader.outcomes(key, fields)
        moved = await reader.tried_again(key, self._channel, self._parcel.number)
        statuses = [Status((stored[field] or Status.QUEUED).split("|")[0]) for field in fields]
        still = [
            (item, status)
            for item, field, status in zip(self.open, fields, statuses, strict=True)
            if status in OPEN and field not in moved
        ]
        self.died = [item for item, status in still if self._died_sending(item, status)]
        self.open = [item for item, status in still if not self._died_sending(item, status)]

    def _died_sending(self, item: PendingEntry, status: Status) -> bool:
        """Whether a repeat of an attempt that was cut off could double the message."""
        since = item.unclear_since or (self._task.started if self._task.crashed else 0)
        age = timedelta(milliseconds=max(0, self._task.claimed - since))
        in_the_air = status is Status.SENDING if self._remembers == NEVER else since > 0
        return in_the_air and not covered(age, self._remembers)
