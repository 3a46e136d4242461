"""One pipeline for each primary, and which of them gets the calls of a shard.

    send(home) ─▶ the pipeline of its primary            the map changes ─▶ the pipeline is left ─▶ its waiting calls
                                                                            go to the new one, later ones after them

Guarantee: the calls of a shard keep their order over a move. They go to the new primary when nothing is in flight at
the old one any more; until then they wait there.
"""

from collections.abc import Awaitable, Callable

from core.redis.cluster.shard_map import ShardMap
from core.redis.pipelines.pipeline import Pipeline
from core.redis.topology import Topology

Between = Callable[[Pipeline], Awaitable[bool]]
"""Awaited by a pipeline between two connections; returns whether it is still used."""


class Pipelines:
    """`make`: returns the pipeline of a primary."""

    def __init__(self, shard_map: ShardMap, make: Callable[[Topology, Between], Pipeline]) -> None:
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
            self._known[primary] = self._make(primary, self._between)
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
                pipeline.leave(at_once=primary not in used)
                if pipeline.is_idle:
                    self._pass_on(pipeline)

    async def _between(self, pipeline: Pipeline) -> bool:
        await self._map.refresh()
        self._pass_on(pipeline)
        return pipeline in self._of

    def _pass_on(self, pipeline: Pipeline) -> None:
        """Hand over the waiting calls whose home another primary has. Nothing is in flight."""
        moved = self._moved(pipeline)
        for home in moved:
            self._of[home] = self._at(self._map.of(home))
        for call in pipeline.give_up(moved):
            self._of[call.home].resume(call)
