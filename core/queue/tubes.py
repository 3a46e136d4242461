"""Tubes and their options: created from code at run time, known to every process and function at once.

A tube that was never created has the default options. Creating it again replaces its options. The functions read the
options where they matter.
"""

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from difflib import get_close_matches
from numbers import Real

import msgspec

from core.errors import Invalid, NotFound
from core.model.clock import Backoff
from core.queue.checks import check_texts, check_type
from core.redis.keys import KEYS
from core.redis.store import Store

KEEP, PARK = "keep", "park"

JOBS = ("jobs.", "job-notices")
"""Prefix of the tubes of jobs. A cancellation leaves their tasks unless it names the tube: a job without its task
stands still until it is missed."""

_RETRIES = (KEEP, PARK)
_WEIGHTS = range(1, 101)


@dataclass(frozen=True, slots=True)
class Tube:
    """A tube's options. `expires`: how long a task may wait for a worker after it is due. `attempts`: a task is buried
    after this many; 0: the installation's setting. `retry`: "keep": a retried task keeps its place in the lane; "park":
    it goes to the tail. `pace`: tasks per second over all processes. `keep`: how long ended tasks are kept.
    """

    name: str
    expires: timedelta | None = None
    attempts: int = 0
    retry: str = KEEP
    pace: float | None = None
    keep: timedelta | None = None
    backoff: Backoff = field(default_factory=Backoff)

    def options(self, shards: int) -> dict[str, str]:
        """Return the options as functions read them. Each shard gets its share of the pace."""
        values = {
            "expires_ms": _ms(self.expires),
            "attempts": self.attempts or None,
            "retry": self.retry if self.retry == PARK else None,
            "interval_ms": 1000 * shards / self.pace if self.pace else None,
            "keep_ms": _ms(self.keep),
            "backoff_first_ms": _ms(self.backoff.first),
            "backoff_longest_ms": _ms(self.backoff.longest),
        }
        return {name: "" if value is None else str(value) for name, value in values.items()}

    @classmethod
    def read(cls, name: str, options: Mapping[str, str], shards: int) -> "Tube":
        """Read what `options` returned."""
        backoff = Backoff(
            _span(options.get("backoff_first_ms")) or Backoff().first,
            _span(options.get("backoff_longest_ms")) or Backoff().longest,
        )
        return cls(
            name,
            expires=_span(options.get("expires_ms")),
            attempts=int(options.get("attempts", 0)),
            retry=options.get("retry", KEEP),
            pace=1000 * shards / float(options["interval_ms"]) if "interval_ms" in options else None,
            keep=_span(options.get("keep_ms")),
            backoff=backoff,
        )


_OPTIONS = (
    *("expires_ms", "attempts", "retry", "interval_ms", "keep_ms"),
    *("backoff_first_ms", "backoff_longest_ms"),
)


_PAUSED = ":paused"


class TubePause(msgspec.Struct, frozen=True):
    """The pause of a tube: by whom, why, and since when (Unix ms)."""

    by: str
    reason: str
    at: int


class Tubes:
    """The tubes that were created, and the weights of tenants."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def create(self, tube: Tube) -> Tube:
        """Create a tube, or replace its options, in every shard. Raises TypeError; Invalid TUBE_MALFORMED."""
        _check(tube)
        options = tube.options(self._store.shards)
        set_ = [word for name, value in options.items() if value for word in (f"{tube.name}:{name}", value)]
        unset = [f"{tube.name}:{name}" for name, value in options.items() if not value]
        for shard in range(self._store.shards):
            await self._store.write("HSET", KEYS["options"].at(shard), *set_)
            if unset:
                await self._store.write("HDEL", KEYS["options"].at(shard), *unset)
        return tube

    async def get(self, name: str) -> Tube:
        """Return a tube; with the default options if it was never created."""
        values = await self._store.command("HMGET", KEYS["options"].at(0), *(f"{name}:{option}" for option in _OPTIONS))
        options = {option: value for option, value in zip(_OPTIONS, values, strict=True) if value is not None}
        return Tube.read(name, options, self._store.shards)

    async def known(self) -> list[Tube]:
        """Return all tubes that were created."""
        flat = await self._store.command("HGETALL", KEYS["options"].at(0))
        tubes: dict[str, dict[str, str]] = {}
        for field_, value in flat.items():
            name, _, option = field_.rpartition(":")
            if option in _OPTIONS:
                tubes.setdefault(name, {})[option] = value
        return [Tube.read(name, options, self._store.shards) for name, options in sorted(tubes.items())]

    async def check_name(self, name: str, others: Collection[str]) -> None:
        """Check that a tube was created, is paused or is one of `others`. Raises NotFound TUBE_UNKNOWN."""
        tubes = {*others, *(tube.name for tube in await self.known()), *await self.pauses()}
        if name not in tubes:
            similar = get_close_matches(name, sorted(tubes), n=1)
            hint = f"; did you mean {similar[0]}?" if similar else "."
            raise NotFound("TUBE_UNKNOWN", f"There is no tube {name}{hint}", about=name)

    async def pause(self, name: str, by: str, reason: str) -> bool:
        """Let no task of a tube be claimed until `resume`. Returns False if it was paused before; that note stays."""
        note = msgspec.json.encode(TubePause(by, reason, int(time.time() * 1000))).decode()
        return any([await self._store.run("pause", shard, name, note) for shard in range(self._store.shards)])

    async def resume(self, name: str) -> bool:
        """Let the tasks of a tube be claimed again, at once. Returns whether it was paused."""
        return any([await self._store.run("resume", shard, name) for shard in range(self._store.shards)])

    async def pauses(self) -> dict[str, TubePause]:
        """Return tube → who paused it and why, for those that are paused."""
        flat = await self._store.command("HGETALL", KEYS["options"].at(0))
        return {
            name.removesuffix(_PAUSED): msgspec.json.decode(note, type=TubePause)
            for name, note in flat.items()
            if name.endswith(_PAUSED)
        }

    async def set_weight(self, tenant: str, weight: int) -> None:
        """Set a tenant's weight: with 3 it gets three turns while a tenant with weight 1 gets one (K-05). Raises
        Invalid WEIGHT_OUT_OF_RANGE.
        """
        if weight not in _WEIGHTS:
            raise Invalid("WEIGHT_OUT_OF_RANGE", "A weight is a whole number from 1 to 100.", "weight")
        for shard in range(self._store.shards):
            key = KEYS["weights"].at(shard)
            await self._store.command(*(("HSET", key, tenant, weight) if weight > 1 else ("HDEL", key, tenant)))

    async def weights(self) -> dict[str, int]:
        """Return tenant → weight, for the tenants whose weight is not 1."""
        flat = await self._store.command("HGETALL", KEYS["weights"].at(0))
        return {tenant: int(weight) for tenant, weight in flat.items()}


def _check(tube: Tube) -> None:
    _check_types(tube)
    faults = {
        "name": not tube.name or not tube.name.isprintable(),
        "expires": tube.expires is not None and tube.expires <= timedelta(0),
        "attempts": tube.attempts < 0,
        "retry": tube.retry not in _RETRIES,
        "pace": tube.pace is not None and not 0 < tube.pace <= 1_000_000,
        "keep": tube.keep is not None and tube.keep <= timedelta(0),
    }
    for name, is_wrong in faults.items():
        if is_wrong:
            raise Invalid("TUBE_MALFORMED", f"A tube's {name} can not be {getattr(tube, name)!r}.", name)


def _check_types(tube: Tube) -> None:
    check_texts("tube", name=tube.name)
    check_type("tube", "attempts", tube.attempts, int)
    check_type("tube", "backoff", tube.backoff, Backoff)
    spans = {
        "expires": tube.expires,
        "keep": tube.keep,
        "pauses": tube.backoff.first,
        "longest pause": tube.backoff.longest,
    }
    for name, span in spans.items():
        if span is not None:
            check_type("tube", name, span, timedelta)
    if tube.pace is not None:
        check_type("tube", "pace", tube.pace, Real)


def _ms(span: timedelta | None) -> int | None:
    return None if span is None else max(1, int(span.total_seconds() * 1000))


def _span(ms: str | None) -> timedelta | None:
    return None if ms is None else timedelta(milliseconds=int(ms))
