"""From which shard a worker claims next.

A shard is due when its bell has rung or something falls due in it. Else it is idle: all idle shards are checked
together every `max_sleep`, and one is due if the check shows that. It has a backlog if its last claim took as much as
there was room for; while there is room it is due. Of the due shards the one whose last claim is longest ago goes first.
So a worker takes full pages: some of one shard, then of the one that has waited longest.

Idle shards are found by their keys, for a hundredth of the price of a claim: nothing of the tube can be claimed in a
shard while the tube's bell exists; nothing falls due unnoticed while a worker keeps the shard's timer. The keys of all
shards of a primary are read in one command, in a cluster by one for each shard in one round trip.

Used by `core.queue.workers.worker`; `lua/queue/modules/claiming.lua` writes the keys.
"""

import asyncio
import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

from core.redis.keys import KEYS
from core.redis.store import Store

_TURNS = 4
"""Pages that a worker takes from a shard one after the other while others wait."""


class ClaimSchedule:
    """One per worker. Times are those of the event loop."""

    def __init__(self, shards: int) -> None:
        self._due = [0.0] * shards
        self._check = [math.inf] * shards
        self._claimed = [0.0] * shards
        self._turns = [0] * shards
        self._backlogs: set[int] = set()

    def ring(self, shard: int) -> None:
        """Have a shard claimed now."""
        self._due[shard] = 0.0

    def begin(self, shard: int, now: float) -> None:
        """Note that a claim begins. The shard is not due before it has ended, unless it rings."""
        self._due[shard], self._claimed[shard], self._turns[shard] = math.inf, now, 0
        self._backlogs.discard(shard)

    def end(self, shard: int, due: float, check: float = math.inf) -> None:
        """Note that a claim or a check has ended, and when the next ones are due; a shard that rang meanwhile stays
        due.
        """
        self._due[shard], self._check[shard] = min(self._due[shard], due), check

    def check_by(self, shard: int, moment: float) -> None:
        """Have an idle shard checked at this moment at the latest."""
        if self._check[shard] < math.inf:
            self._check[shard] = min(self._check[shard], moment)

    def note_backlog(self, shard: int, *, has_backlog: bool) -> None:
        (self._backlogs.add if has_backlog else self._backlogs.discard)(shard)

    def due_now(self, now: float, *, has_room: bool) -> list[int]:
        """Return the due shards, the one whose last claim is longest ago first."""
        due = [
            shard for shard, moment in enumerate(self._due) if moment <= now or (has_room and shard in self._backlogs)
        ]
        return sorted(due, key=lambda shard: self._claimed[shard])

    def to_check(self, now: float) -> list[int]:
        """Return all idle shards, if one of them is to be checked now."""
        if min(self._check) > now:
            return []
        return [shard for shard, check in enumerate(self._check) if check < math.inf and self._due[shard] > now]

    def next_moment(self, *, has_room: bool, aside: Collection[int] = ()) -> float:
        """Return when the next shard is due or to be checked, except those `aside`."""
        if has_room and not self._backlogs <= set(aside):
            return 0.0
        moments = map(min, self._due, self._check)
        return min((moment for shard, moment in enumerate(moments) if shard not in aside), default=math.inf)

    def takes_turn(self, shard: int) -> bool:
        """Return whether a worker without room takes the next page from this shard, too."""
        others_wait = not self._backlogs <= {shard}
        self._turns[shard] = self._turns[shard] + 1 if others_wait else 0
        return self._turns[shard] <= _TURNS


class Timer(NamedTuple):
    """`keeper`: the worker that claims at `moment`, the server's ms, -1 for none."""

    keeper: str
    moment: int


async def idle_shards(store: Store, tube: str, shards: Sequence[int]) -> dict[int, Timer]:
    """Return those of the shards that need no claim now, with their timers. The shards have one primary. Raises
    StoreError.
    """
    groups = store.in_one_command(shards)
    texts = await asyncio.gather(*(store.command("MGET", *_keys(tube, group)) for group in groups))
    found = {}
    for group, read in zip(groups, texts, strict=True):
        for shard, bell, timer in zip(group, read[::2], read[1::2], strict=True):
            if bell and timer:
                keeper, _, moment = timer.rpartition(" ")
                found[shard] = Timer(keeper, int(moment))
    return found


def _keys(tube: str, shards: Sequence[int]) -> list[str]:
    return [key for shard in shards for key in (KEYS["bell"].at(shard, tube), KEYS["timer"].at(shard))]
