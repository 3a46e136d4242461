"""One pipeline for each primary, and which of them gets the calls of a shard.

    send(home) ─▶ the pipeline of its primary            the map changes ─▶ the pipeline is left ─▶ its waiting calls
                                                                            go to the new one, later ones after them

Guarantee: the calls of a shard keep their order over a move. They go to the new primary when nothing is in flight at
the old one any more; until then they wait there. The old one's connection stays for the shards that it still has.
"""

import asyncio
from collections.abc import Callable

from redis.exceptions import RedisError

from core.redis.cluster import ShardMap
from core.redis.connection import Reply
from core.redis.library import Library, is_loaded
from core.redis.pipelines.pipeline import Pipeline, Routes
from core.redis.topology import Topology

Load = asyncio.Future[Reply]


class LibraryLoads:
    """One per store: once on each pipeline for all callers that find the library missing at once."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._last: dict[Pipeline, Load] = {}

    def last(self, pipeline: Pipeline) -> Load | None:
        return self._last.get(pipeline)

    def load(self, pipeline: Pipeline, home: int, before: Load | None) -> None:
        """Load it, unless that was done since the call was sent. `before`: the last load at that time. Raises what that
        load ended with.
        """
        if before and before.done() and (failure := before.exception()) and not is_loaded(failure):
            if self._last.get(pipeline) is before:
                del self._last[pipeline]
            raise failure
        if self._last.get(pipeline) is before:
            # The calls that follow on this connection are written behind it.
            load = pipeline.call("FUNCTION", "LOAD", self._library.text, home=home)
            load.add_done_callback(lambda load: load.cancelled() or load.exception())
            self._last[pipeline] = load


class Pipelines:
    """`make`: returns the pipeline of a primary."""

    def __init__(self, shard_map: ShardMap, make: Callable[[Topology, Routes], Pipeline]) -> None:
        self._map = shard_map
        self._make = make
        self._known: dict[Topology, Pipeline] = {}
        self._of = [self._at(shard_map.of(home)) for home in range(shard_map.homes)]
        shard_map.on_change(self._follow)

    def of(self, home: int) -> Pipeline:
        """Return the pipeline that gets the calls of a home now."""
        return self._of[home]

    def each(self) -> dict[Pipeline, int]:
        """Return the pipelines in use, each with a home that it has."""
        return {pipeline: home for home, pipeline in reversed(list(enumerate(self._of)))}

    @property
    def commands(self) -> int:
        return sum(pipeline.commands for pipeline in self._known.values())

    async def close(self) -> None:
        for pipeline in self._known.values():
            await pipeline.close()

    def _at(self, primary: Topology) -> Pipeline:
        if primary not in self._known:
            self._known[primary] = self._make(primary, self)
        return self._known[primary]

    def _moved(self, pipeline: Pipeline) -> set[int]:
        """Return the homes whose calls a pipeline gets although another primary has them."""
        return {
            home for home, at in enumerate(self._of) if at is pipeline and pipeline is not self._at(self._map.of(home))
        }

    def _follow(self) -> None:
        """Leave the primaries that have lost a shard: at once if they have none left, else when they have answered."""
        used = self._map.primaries()
        for primary, pipeline in list(self._known.items()):
            if self._moved(pipeline):
                pipeline.pass_on(at_once=primary not in used)

    # Routes

    async def read_again(self, primary: Topology) -> bool:
        await self._map.refresh()
        self.pass_on(primary)
        return self._at(primary) in self._of

    def is_redirected(self, primary: Topology, home: int, refusal: RedisError) -> bool:
        """Return whether a refusal is a MOVED with which this home has gone to another primary, at once: the node that
        had it knows best. The rest of the map is read beside that.
        """
        return str(refusal).startswith("MOVED ") and self._map.follow(primary, home, str(refusal))

    def pass_on(self, primary: Topology) -> None:
        pipeline = self._at(primary)
        moved = self._moved(pipeline)
        for home in moved:
            self._of[home] = self._at(self._map.of(home))
            self._of[home].take_over(home)
        for call in pipeline.give_up(moved):
            self._of[call.home].resume(call)
