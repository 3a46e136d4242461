"""What the server has stored of each job, in order, and what of that may not happen. Pure.

The writes come from the append-only file, so that nothing depends on what the processes say about themselves.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from core.redis.keys import KEYS
from tests.jobs.soak.append_only_file import Write

_BLOCK = 128 * 1024
"""Bytes. What was written so shortly before a kill may not have been answered; and the file may be cut off there."""

_ENDED = ("done", "unknown", "failed")


@dataclass(frozen=True)
class Record:
    """A stored state of a job."""

    offset: int
    fields: dict[str, Any]

    @property
    def state(self) -> str:
        return str(self.fields["state"])

    @property
    def iteration(self) -> int:
        return int(self.fields.get("iteration", 0))

    @property
    def generation(self) -> int:
        return int(self.fields.get("generation", 0))

    @property
    def has_begun(self) -> bool:
        return bool(self.fields.get("begun", False))


@dataclass(frozen=True)
class Unit:
    """An item or effect as it was written; `status` is "" if it was removed."""

    offset: int
    name: str
    status: str


@dataclass
class JobHistory:
    """`events`: everything in order."""

    name: str
    records: list[Record] = field(default_factory=list)
    units: list[Unit] = field(default_factory=list)

    @property
    def events(self) -> list[Record | Unit]:
        return sorted([*self.records, *self.units], key=lambda event: event.offset)

    def statuses(self) -> dict[str, str]:
        """The last status of each item and effect that is there."""
        last = {unit.name: unit.status for unit in self.units}
        return {name: status for name, status in last.items() if status}

    @property
    def iterations(self) -> int:
        return self.records[-1].iteration

    @property
    def takeovers(self) -> int:
        """How often an attempt has begun an iteration that another attempt had begun."""
        return sum(
            one.has_begun and two.has_begun and one.generation == two.generation for one, two in pairwise(self.records)
        )


def histories(writes: Iterable[Write]) -> dict[str, JobHistory]:
    """Name of a job → its history."""
    found: dict[str, JobHistory] = {}
    for write in writes:
        for name, event in _events(write):
            history = found.setdefault(name, JobHistory(name))
            if isinstance(event, Record):
                history.records.append(event)
            else:
                history.units.append(event)
    return found


def _events(write: Write) -> Iterator[tuple[str, Record | Unit]]:
    command, key, *rest = (*write.words, "")
    if KEYS["job"].matches(key) and command in ("hset", "hmset"):
        fields = dict(zip(rest[::2], rest[1::2], strict=False))
        if "record" in fields:
            yield _job(key), Record(write.offset, json.loads(fields["record"]))
    elif KEYS["job_units"].matches(key) and command in ("hset", "hmset"):
        for name, value in zip(rest[::2], rest[1::2], strict=False):
            yield _job(key), Unit(write.offset, name, json.loads(value)["status"])
    elif KEYS["job_units"].matches(key) and command == "hdel":
        for name in rest[:-1]:
            yield _job(key), Unit(write.offset, name, "")


def _job(key: str) -> str:
    """`hunt.42`."""
    return key.rpartition("/")[2]


def findings_of(history: JobHistory, cuts: Sequence[int]) -> list[str]:
    """What may not happen. `cuts`: the lengths of the file when the server was killed."""
    found = [*_wrong_steps(history), *_repeated_units(history, cuts), *_units_while_paused(history)]
    return [f"{history.name}: {one}" for one in found]


def _wrong_steps(history: JobHistory) -> Iterator[str]:
    for before, after in pairwise(history.records):
        if not _follows(before, after):
            yield f"iteration {before.iteration}: after {before.fields} came {after.fields}"


def _follows(before: Record, after: Record) -> bool:
    """Return whether a job makes such a step: a change of its state, a begin, or an end. A job that gets a new task
    otherwise had lost its task.
    """
    if after.generation != before.generation:
        return after.generation == before.generation + 1 and after.iteration == before.iteration
    if after.iteration != before.iteration:
        return after.iteration == before.iteration + 1 and before.has_begun and not after.has_begun
    return after.has_begun and after.fields["task"] == before.fields["task"]


def _repeated_units(history: JobHistory, cuts: Sequence[int]) -> Iterator[str]:
    """What has ended is not written again, unless its answer was lost with the server."""
    ended: dict[str, Unit] = {}
    for unit in history.units:
        first = ended.setdefault(unit.name, unit) if unit.status in _ENDED else ended.get(unit.name)
        if first is not None and first is not unit and not _was_lost(first, unit, cuts):
            yield f"{unit.name} was {first.status}, and then written again: {unit.status or 'removed'}"


def _was_lost(first: Unit, repeat: Unit, cuts: Sequence[int]) -> bool:
    return first.status == repeat.status and any(
        abs(first.offset - cut) < _BLOCK and cut < repeat.offset + _BLOCK for cut in cuts
    )


def _units_while_paused(history: JobHistory) -> Iterator[str]:
    """The item in hand is finished; no other begins."""
    paused, items, effects = False, 0, 0
    for event in history.events:
        if isinstance(event, Record):
            paused, items, effects = event.state == "paused", 0, 0
        elif paused:
            items += event.name.startswith("unit:")
            effects += event.status == "begun"
            if items > 1 or effects > 1:
                yield f"{event.name} was begun while the job was paused"


def resumes_of(history: JobHistory, paused_by: str) -> int:
    """How often a pause by this actor has ended in `running`."""
    return sum(
        one.state == "paused" and one.fields.get("paused_by") == paused_by and two.state == "running"
        for one, two in pairwise(history.records)
    )
