"""The figures of the last hour and week: the differences of the samples that were recorded (W-11)."""

import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import msgspec

from core.monitoring.samples import Sample, Samples, SampleStep, TubeSample
from core.queue import Queue
from core.redis.store import Store

# Two samples that are further apart than this many steps have a gap between them.
_GAP = 2.5
# Samples from which the rate of the last minute is made.
_MINUTE = 7
NOT_REACHED = frozenset({"failed", "unknown", "expired"})


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
            SampleStep.COARSE if step >= SampleStep.COARSE else SampleStep.FINE, self._now_ms()
        )
        samples = [one for one in kept if begin <= one.at and (end is None or one.at <= end)]
        if tube:
            samples = [found for one in samples if (found := one.of_tube(tube))]
        last = {one.at // (step * 1000): one for one in samples}.values()
        return figures_of([*(one for one in samples[:1] if one not in last), *last], step)

    async def outcomes(self) -> Sequence[OutcomeCount]:
        """Return the outcomes of the last hour, the most frequent first; it costs less than `read`."""
        return _outcomes_of(await self._samples.kept(SampleStep.FINE, self._now_ms()))

    async def rates(self) -> dict[str, float]:
        """Return tube → tasks ended per second in the last minute; {} if it was not recorded."""
        samples = await self._samples.newest(_MINUTE, self._now_ms())
        if len(samples) < 2:
            return {}
        first, last = samples[0], samples[-1]
        seconds = (last.at - first.at) / 1000
        return {
            name: max(0, _ended(one) - _ended(first.tubes[name])) / seconds
            for name, one in last.tubes.items()
            if name in first.tubes
        }

    def _now_ms(self) -> int:
        return int(time.time() * 1000) + self._store.clock_offset_ms


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
