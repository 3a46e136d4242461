"""Conservation (I7): every task that was put is live or has ended. Pure.

Three checks, each as exact as it can be while tasks flow:
- The counters of one atomic read add up: put = waiting + ready + taken + buried + ended, and the indexes of taken and
  buried tasks have the counted length. Always exact.
- All tasks are counted in pages; the result is compared with the counters before and after. In a tube in which nothing
  changed meanwhile it must be equal, state by state. Exact.
- In a tube in which tasks moved, it must lie between the possible numbers. It never raises a false alarm and misses at
  most as many tasks as were put and ended meanwhile.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from core.audit.invariants.invariant import ENDS, LIVE, Repair, Violation
from core.model.json_form import compact_json
from core.redis.keys import KEYS

_LOCKED = "locked"


@dataclass(frozen=True, slots=True)
class Counts:
    """A shard's counters in one atomic read: `<tube>:<transition>`, `<tube>:<state>` → number; length of each index."""

    transitions: Mapping[str, int]
    states: Mapping[str, int]
    taken: int
    buried: int

    def tubes(self) -> set[str]:
        return {name.rpartition(":")[0] for name in (*self.transitions, *self.states)} - {""}

    def of(self, tube: str) -> "TubeCounts":
        numbers = {name: self.transitions.get(f"{tube}:{name}", 0) for name in ("put", *ENDS)}
        states = {str(name): self.states.get(f"{tube}:{name}", 0) for name in (*LIVE, _LOCKED)}
        return TubeCounts(numbers["put"], sum(numbers[end] for end in ENDS), states, numbers)


@dataclass(frozen=True, slots=True)
class TubeCounts:
    """The counters of one tube. `numbers`: put and each end."""

    put: int
    ended: int
    states: Mapping[str, int]
    numbers: Mapping[str, int]

    @property
    def live(self) -> int:
        return sum(self.states[state] for state in LIVE)


@dataclass(slots=True)
class Recount:
    """Tasks that the scan found, by tube and state. `locked`: behind the first task of their lane."""

    states: dict[str, Counter[str]] = field(default_factory=dict)

    def add(self, tube: str, state: str, n: int = 1) -> None:
        self.states.setdefault(tube, Counter())[state] += n

    def of(self, tube: str) -> dict[str, int]:
        found = self.states.get(tube, Counter())
        return {str(state): found[state] for state in (*LIVE, _LOCKED)}

    def live(self, tube: str) -> int:
        found = self.states.get(tube, Counter())
        return sum(found[state] for state in LIVE)


def count_violations(shard: int, counts: Counts) -> Iterator[Violation]:
    """Emit the first check: the counters of one read add up."""
    key, why = KEYS["states"].at(shard), "the counters of its tubes are repaired, not their sum"
    for state, size in (("taken", counts.taken), ("buried", counts.buried)):
        counted = sum(counts.of(tube).states[state] for tube in counts.tubes())
        if counted != size:
            yield Violation("I7", key, f"{counted} {state}", f"{size}, as many as their index has", why=why)


def recount_violations(shard: int, before: Counts, after: Counts, recount: Recount) -> Iterator[Violation]:
    """Emit the other two checks, for each tube."""
    for tube in sorted(before.tubes() | after.tubes() | recount.states.keys()):
        if is_still(before, after, tube):
            yield from _still(shard, tube, after.of(tube), recount)
        else:
            yield from _moving(shard, tube, before.of(tube), after.of(tube), recount)


def is_still(before: Counts, after: Counts, tube: str) -> bool:
    """Return whether no counter of this tube changed between the two."""

    def counted(counts: Counts) -> list[tuple[str, int]]:
        both = (*counts.transitions.items(), *counts.states.items())
        return sorted((name, n) for name, n in both if name.rpartition(":")[0] == tube)

    return counted(before) == counted(after)


def _still(shard: int, tube: str, counts: TubeCounts, recount: Recount) -> Iterator[Violation]:
    states, put = recount.of(tube), recount.live(tube) + counts.ended
    seen = {"counters": counts.numbers, "states": counts.states}
    repair = Repair(
        "repair_tally", (tube, compact_json(seen), compact_json({"counters": {"put": put}, "states": states}))
    )
    if counts.put != put:
        found = f"{tube}: {counts.put} put, {counts.ended} ended"
        yield Violation("I7", KEYS["counters"].at(shard), found, f"{put} put: {put - counts.ended} are live", repair)
    if counts.states != states:
        yield Violation("I7", KEYS["states"].at(shard), f"{tube}: {_shown(counts.states)}", _shown(states), repair)


def _moving(shard: int, tube: str, before: TubeCounts, after: TubeCounts, recount: Recount) -> Iterator[Violation]:
    key, why = (
        KEYS["counters"].at(shard),
        "tasks moved while they were counted; it can be repaired when the tube is still",
    )
    if after.put != after.live + after.ended:
        found = f"{tube}: {after.put} put, {after.ended} ended, {_shown(after.states)}"
        yield Violation("I7", key, found, "put = live + ended", why=why)
    expected = before.put - before.ended
    least, most = expected - (after.ended - before.ended), expected + (after.put - before.put)
    seen = recount.live(tube)
    if not least <= seen <= most:
        yield Violation("I7", key, f"{tube}: {seen} tasks are there", f"between {least} and {most}", why=why)


def uncertainty(before: Counts, after: Counts) -> dict[str, int]:
    """Return the tubes that changed while they were counted, with the number of tasks put and ended meanwhile."""
    moving = [tube for tube in before.tubes() | after.tubes() if not is_still(before, after, tube)]
    flows = {
        tube: after.of(tube).put - before.of(tube).put + after.of(tube).ended - before.of(tube).ended for tube in moving
    }
    return dict(sorted(flows.items()))


def _shown(states: Mapping[str, int]) -> str:
    return ", ".join(f"{n} {state}" for state, n in states.items() if n) or "none"


def numbers_of(flat: Sequence[str]) -> dict[str, int]:
    """Return a hash of numbers, which a function lists as name, value, …"""
    return {name: int(float(value)) for name, value in zip(flat[::2], flat[1::2], strict=True)}
