"""The figures of the last hour and week: the differences of samples of all counters (W-11).

Samples stand in a ring of fixed size for each step. A sample has the counters as they are, not what was added:
whichever process takes it needs no other sample, and what happened between two samples is their difference.
"""

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from itertools import pairwise

import msgspec

from core.errors import StoreError
from core.model.states import Reason, Status
from core.queue import Queue, TubeStats
from core.redis.keys import KEYS
from core.redis.store import Store

log = logging.getLogger(__name__)

# Tubes that a sample names: those with the most tasks since the beginning. The others are added up.
TUBES = 100
_SHARD = 0
# Two samples that are further apart than this many steps have a gap between them.
_GAP = 2.5
# Samples from which the rate of the last minute is made.
_MINUTE = 7
NOT_REACHED = frozenset({"failed", "unknown", "expired"})


class SampleStep(IntEnum):
    """Seconds between two samples."""

    FINE = 10
    COARSE = 600


KEPT = {SampleStep.FINE: 361, SampleStep.COARSE: 1009}
"""Samples of each step: an hour, and seven days."""


class TubeSample(msgspec.Struct, frozen=True, array_like=True):
    """`put` to `lag_ms` count from the beginning; `waiting` to `oldest_ms` are as of the sample. `buried`: burials;
    `buried_now`: tasks that are buried then. `lag_ms`: by how much deferred tasks became ready late, all together.
    """

    put: int
    done: int
    failed: int
    cancelled: int
    expired: int
    retried: int
    lost: int
    buried: int
    promoted: int
    lag_ms: int
    waiting: int
    ready: int
    locked: int
    taken: int
    buried_now: int
    oldest_ms: int

    @classmethod
    def of(cls, stats: TubeStats, lag_ms: int) -> "TubeSample":
        now = stats.states
        counts = (stats.put, stats.done, stats.failed, stats.cancelled, stats.expired)
        faults = (stats.retried, stats.lost, stats.buried, stats.promoted, lag_ms)
        return cls(*counts, *faults, now.waiting, now.ready, now.locked, now.taken, now.buried, stats.oldest_ms)

    @classmethod
    def total(cls, samples: Sequence["TubeSample"]) -> "TubeSample":
        """Add up; `oldest_ms` is the largest."""
        sums = {name: sum(getattr(one, name) for one in samples) for name in cls.__struct_fields__}
        return cls(**{**sums, "oldest_ms": max((one.oldest_ms for one in samples), default=0)})


class Sample(msgspec.Struct, frozen=True, array_like=True):
    """`at`: the server's ms. `outcomes`: channel → `status|reason` → how many were written. `others`: the tubes that
    are not among `tubes`, added up; None: there are none, or in a sample of an earlier version with `TUBES` tubes it is
    not known.
    """

    at: int
    tubes: dict[str, TubeSample]
    outcomes: dict[str, dict[str, int]]
    others: TubeSample | None = None

    @property
    def total(self) -> TubeSample | None:
        """All tubes together; None if that is not known."""
        if self.others is None and len(self.tubes) >= TUBES:
            return None
        return TubeSample.total([*self.tubes.values(), *([self.others] if self.others else [])])

    def of_tube(self, tube: str) -> "Sample | None":
        """Return the sample of one tube and of the channel of this name; None if the tube may be among the others."""
        if tube not in self.tubes and self._hides_tubes():
            return None
        tubes = {name: one for name, one in self.tubes.items() if name == tube}
        return Sample(self.at, tubes, {name: one for name, one in self.outcomes.items() if name == tube})

    def _hides_tubes(self) -> bool:
        """Return whether there may be further tubes than those that are named."""
        return len(self.tubes) >= TUBES and (self.others is None or self.others.put > 0)


class Samples:
    """Takes, stores and reads samples."""

    def __init__(self, store: Store, queue: Queue) -> None:
        self._store = store
        self._queue = queue
        self._asked: dict[SampleStep, int] = {}  # the last sample of each step whose turn was asked for

    async def take(self, at: int) -> Sample:
        """Return the counters as they are now."""
        sums = await self._queue.inspector.sums_by_tube("counters")
        busiest = sorted((await self._queue.inspector.tube_stats(sums)).items(), key=lambda item: -item[1].put)
        tubes = [(name, TubeSample.of(one, sums[name].get("lag_ms", 0))) for name, one in busiest]
        others = TubeSample.total([one for _, one in tubes[TUBES:]]) if len(tubes) >= TUBES else None
        outcomes = await self._queue.inspector.sums_by_tube("outcome_counts")
        return Sample(at, dict(tubes[:TUBES]), outcomes, others)

    async def save(self, step: SampleStep, sample: Sample) -> None:
        """Put a sample in the place of the oldest."""
        place, text = _number(step, sample.at) % KEPT[step], msgspec.json.encode(sample).decode()
        await self._store.command("HSET", KEYS["figures"].at(_SHARD, str(int(step))), place, text)

    async def has_turn(self, step: SampleStep, at: int) -> bool:
        """Return whether this process takes the sample of this step; only one does, the first that asks, once."""
        number = _number(step, at)
        if self._asked.get(step) == number:
            return False
        turn = KEYS["figures_turn"].at(_SHARD, str(int(step)), str(number))
        is_first = bool(await self._store.command("SET", turn, 1, "NX", "PX", 2000 * step))
        self._asked[step] = number
        return is_first

    async def kept(self, step: SampleStep, now: int) -> list[Sample]:
        """Return the samples of the last hour or week, the oldest first."""
        ring: Mapping[str, str] = await self._store.command("HGETALL", KEYS["figures"].at(_SHARD, str(int(step))))
        return _read(list(ring.values()), now - KEPT[step] * step * 1000)

    async def newest(self, count: int, now: int) -> list[Sample]:
        """Return the last fine samples, the oldest first; those that were not taken are missing."""
        newest = _number(SampleStep.FINE, now)
        places = [(newest - n) % KEPT[SampleStep.FINE] for n in range(count)]
        texts = await self._store.command("HMGET", KEYS["figures"].at(_SHARD, str(int(SampleStep.FINE))), *places)
        return _read([text for text in texts if text], now - count * SampleStep.FINE * 1000)


def _number(step: SampleStep, at: int) -> int:
    return at // (step * 1000)


def _read(texts: Sequence[str], since: int) -> list[Sample]:
    samples = [msgspec.json.decode(text, type=Sample) for text in texts]
    return sorted((one for one in samples if one.at > since), key=lambda one: one.at)


_CRASHES_SINCE = 30
"""Samples up to which a gap is bridged, in which no process has recorded."""


class Recorder:
    """Takes a sample every ten seconds, beside the API. Of several processes one takes each sample. While none runs,
    the figures have a gap.
    """

    def __init__(self, store: Store, queue: Queue) -> None:
        self._store = store
        self._samples = Samples(store, queue)

    async def run(self) -> None:
        """Record until cancelled. While the server is away nothing is recorded."""
        logged = ""
        while True:
            await asyncio.sleep(SampleStep.FINE - self._store.now_ms() / 1000 % SampleStep.FINE)
            try:
                await self.record(self._store.now_ms())
                logged = ""
            except StoreError as fault:
                if str(fault) != logged:
                    log.warning("no figures are recorded: %s", fault)
                logged = str(fault)

    async def record(self, at: int) -> list[SampleStep]:
        """Take the samples of this moment, unless another process has. Returns the steps that were recorded."""
        steps = [step for step in SampleStep if await self._samples.has_turn(step, at)]
        if steps:
            sample = await self._samples.take(at)
            if SampleStep.FINE in steps:
                self._log_crashes(await self._samples.newest(_CRASHES_SINCE, at), sample)
            for step in steps:
                await self._samples.save(step, sample)
        return steps

    def _log_crashes(self, earlier: Sequence[Sample], sample: Sample) -> None:
        """Log how many messages ended as unknown because the process that was sending them was lost. Those that were
        cancelled or expired meanwhile have no other line: the server ends them, no courier sees them.
        """
        for one in _added(earlier[-1].outcomes, sample.outcomes) if earlier else ():
            if (one.status, one.reason) == (Status.UNKNOWN, Reason.CRASHED):
                log.warning("%s: %d ended as unknown, crashed: a process was lost while sending them", one.channel,
                            one.count)  # fmt: skip


class Flow(msgspec.Struct, frozen=True):
    """The counts since the previous point. `sent`, `not_reached`: outcomes written (sent; failed, unknown, expired).
    `lag_ms`: how late deferred tasks became ready, on average; None if none did.
    """

    put: int
    done: int
    failed: int
    cancelled: int
    expired: int
    retried: int
    lost: int
    buried: int
    sent: int
    not_reached: int
    lag_ms: float | None


class Point(msgspec.Struct, frozen=True):
    """One sample. `flow`: None behind a gap, in which no process has recorded. `buried`: tasks that are buried then."""

    at: int
    flow: Flow | None
    waiting: int
    ready: int
    locked: int
    taken: int
    buried: int
    oldest_ms: int


class OutcomeCount(msgspec.Struct, frozen=True):
    """The number of outcomes that were written. `reason`: "" without one."""

    channel: str
    status: str
    reason: str
    count: int


class Figures(msgspec.Struct, frozen=True):
    """`step`: seconds between two points. `outcomes`: of the whole time, those in gaps too, the most frequent first."""

    step: int
    points: Sequence[Point]
    outcomes: Sequence[OutcomeCount]


class FigureReader:
    """Reads the figures of tubes and channels."""

    def __init__(self, store: Store, queue: Queue) -> None:
        self._store = store
        self._samples = Samples(store, queue)

    async def read(
        self, step: int = SampleStep.FINE, tube: str = "", begin: int = 0, end: int | None = None
    ) -> Figures:
        """Return what is kept between two moments (Unix ms), the first point and one for each `step` seconds at most:
        below ten minutes of the last hour, else of the last week. `tube`: only this one; its outcomes are those of the
        channel of this name.
        """
        kept = await self._samples.kept(
            SampleStep.COARSE if step >= SampleStep.COARSE else SampleStep.FINE, self._store.now_ms()
        )
        samples = [one for one in kept if begin <= one.at and (end is None or one.at <= end)]
        if tube:
            samples = [found for one in samples if (found := one.of_tube(tube))]
        last = {one.at // (step * 1000): one for one in samples}.values()
        return figures_of([*(one for one in samples[:1] if one not in last), *last], step)

    async def outcomes(self) -> Sequence[OutcomeCount]:
        """Return the outcomes of the last hour, the most frequent first; it costs less than `read`."""
        return _outcomes_of(await self._samples.kept(SampleStep.FINE, self._store.now_ms()))

    async def rates(self) -> dict[str, float]:
        """Return tube → tasks ended per second in the last minute; {} if it was not recorded."""
        samples = await self._samples.newest(_MINUTE, self._store.now_ms())
        if len(samples) < 2:
            return {}
        first, last = samples[0], samples[-1]
        seconds = (last.at - first.at) / 1000
        return {
            name: max(0, _ended(one) - _ended(first.tubes[name])) / seconds
            for name, one in last.tubes.items()
            if name in first.tubes
        }


def figures_of(samples: Sequence[Sample], step: int) -> Figures:
    """Return the figures of samples in the order of their time. Pure."""
    points = [_point(one, None) for one in samples[:1]]
    for before, after in pairwise(samples):
        is_gap = after.at - before.at > _GAP * step * 1000
        points.append(_point(after, None if is_gap else _flow(before, after)))
    return Figures(int(step), points, _outcomes_of(samples))


def _outcomes_of(samples: Sequence[Sample]) -> Sequence[OutcomeCount]:
    counts = _added(samples[0].outcomes, samples[-1].outcomes) if samples else ()
    return sorted(counts, key=lambda one: -one.count)


def _point(sample: Sample, flow: Flow | None) -> Point:
    now = sample.total or TubeSample.total(list(sample.tubes.values()))
    return Point(
        at=sample.at,
        flow=flow,
        waiting=now.waiting,
        ready=now.ready,
        locked=now.locked,
        taken=now.taken,
        buried=now.buried_now,
        oldest_ms=now.oldest_ms,
    )


def _flow(before: Sample, after: Sample) -> Flow | None:
    """Return None if a counter has gone back, because the server was emptied in between, or a sample is not whole."""
    names = ("put", "done", "failed", "cancelled", "expired", "retried", "lost", "buried", "promoted", "lag_ms")
    first, last = before.total, after.total
    if first is None or last is None:
        return None
    sums = {name: getattr(last, name) - getattr(first, name) for name in names}
    if min(sums.values()) < 0:
        return None
    promoted, lag = sums.pop("promoted"), sums.pop("lag_ms")
    written = list(_added(before.outcomes, after.outcomes))
    return Flow(
        **sums,
        sent=sum(one.count for one in written if one.status == "sent"),
        not_reached=sum(one.count for one in written if one.status in NOT_REACHED),
        lag_ms=round(lag / promoted, 1) if promoted else None,
    )


def _added(before: Mapping[str, Mapping[str, int]], after: Mapping[str, Mapping[str, int]]) -> Iterator[OutcomeCount]:
    for channel, counts in after.items():
        for name, count in counts.items():
            status, _, reason = name.partition("|")
            added = count - before.get(channel, {}).get(name, 0)
            if added > 0:
                yield OutcomeCount(channel, status, reason, added)


def _ended(tube: TubeSample) -> int:
    return tube.done + tube.failed + tube.cancelled + tube.expired
