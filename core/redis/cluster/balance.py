"""Which shards to move so that the primaries of a cluster have about the same load. Pure.

Used by the verb `cluster`.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

_TOLERANCE = 0.1
"""Part of a primary's fair share: for less difference nothing is moved, and no move makes less of a difference."""


@dataclass(frozen=True, slots=True)
class Move:
    """A shard goes from one primary to another one; both by name."""

    shard: int
    source: str
    target: str


def balancing_moves(loads: Mapping[int, float], owners: Mapping[int, str], primaries: Collection[str]) -> list[Move]:
    """Return moves in order, each from the most loaded primary to the least loaded one. `loads`: of the shards;
    `owners`: their primaries; `primaries`: also those without a shard.
    """
    places = dict(owners)
    totals = {one: sum(loads[shard] for shard, at in owners.items() if at == one) for one in sorted(primaries)}
    least_gap = _TOLERANCE * sum(totals.values()) / len(totals)
    moves: list[Move] = []
    while True:
        source, target = max(totals, key=totals.__getitem__), min(totals, key=totals.__getitem__)
        gap = totals[source] - totals[target]
        useful = [
            shard
            for shard, at in places.items()
            if at == source and loads[shard] and min(loads[shard], gap - loads[shard]) >= least_gap / 2
        ]
        if gap <= least_gap or not useful:
            return moves
        shard = min(useful, key=lambda one: abs(gap / 2 - loads[one]))
        totals[source] -= loads[shard]
        totals[target] += loads[shard]
        places[shard] = target
        moves.append(Move(shard, source, target))
