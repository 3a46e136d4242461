"""All orders of scripts: every move from every start, every move from what comes of it, and so on, so many steps deep.

Worlds that are the same (tests/model_checking/equivalence.py) have the same future, so it is tried once. Every world
that is new is
judged: the audit, the laws, and a drain by a plain worker that must leave nothing behind.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Protocol, TypeVar

from core.redis.keys import Lifetime
from tests.model_checking.equivalence import apart, sameness
from tests.model_checking.many_shards import AT_ONCE, Call, Ground, Pass, World, shard_of

T = TypeVar("T")
Move = Callable[[World], Call | Pass | None]


class Subject(Protocol):
    """What is explored."""

    def moves(self) -> Mapping[str, Move]: ...

    def world_laws(self, world: World) -> Iterator[str]: ...

    def step_laws(self, before: World, call: Call | Pass, reply: Any, after: World) -> Iterator[str]: ...

    def learned(self, world: World, call: Call | Pass, reply: Any) -> World:
        """With what its actors know from the reply."""

    async def drain(self, ground: Ground, worlds: Sequence[World]) -> list[World]:
        """One round of a plain worker on worlds that are built; what it learned."""


@dataclass
class Explorer:
    """Raises AssertionError with the path to the first world that breaks a law."""

    ground: Ground
    subject: Subject
    worlds: int = 0
    steps: int = 0
    _seen: set[Hashable] = field(default_factory=set)
    _drained: set[Hashable] = field(default_factory=set)

    async def explore(self, starts: Sequence[World], depth: int) -> None:
        """Every sequence of up to `depth` moves from each of the starts."""
        level = self._new(starts)
        await self._judge(level)
        for _ in range(depth):
            found: list[World] = []
            for batch in batches(self._tries(level)):
                found += await self._try(batch)
            await self._judge(found)
            level = found

    async def follow(
        self, paths: Mapping[str, Sequence[str]], moves: Mapping[str, Move], options: Mapping[str, str]
    ) -> dict[str, World]:
        """The world at the end of each path, from nothing. A move that cannot be made is a mistake of the test."""
        worlds = dict.fromkeys(paths, await self.ground.nothing(options))
        for n in range(max(map(len, paths.values()))):
            names = [name for name, path in paths.items() if len(path) > n]
            tries = [(worlds[name], paths[name][n], moves[paths[name][n]](worlds[name])) for name in names]
            assert all(call is not None for _, _, call in tries), [move for _, move, call in tries if call is None]
            after = await self._step([(world, move, call) for world, move, call in tries if call is not None])
            worlds |= dict(zip(names, await self.ground.save(list(enumerate(after))), strict=True))
        return worlds

    def _tries(self, level: Sequence[World]) -> Iterator[tuple[World, str, Call | Pass]]:
        for world in level:
            for name, move in self.subject.moves().items():
                call = move(world)
                if call is not None:
                    yield world, name, call

    async def _try(self, batch: Sequence[tuple[World, str, Call | Pass]]) -> list[World]:
        after = await self._step(batch)
        fresh = [(shard, world) for shard, world in enumerate(after) if self._is_new(world)]
        return await self.ground.save(fresh)

    async def _step(self, batch: Sequence[tuple[World, str, Call | Pass]]) -> list[World]:
        self.steps += len(batch)
        stepped = await self.ground.step([(world, call) for world, _, call in batch])
        found = []
        for (before, move, call), (after, reply) in zip(batch, stepped, strict=True):
            world = replace(self.subject.learned(after, call, reply), path=(*before.path, move))
            told = list(self.subject.step_laws(before, call, reply, world))
            assert not told, f"{' → '.join(world.path)}: {'; '.join(told)}"
            found.append(world)
        return found

    def _new(self, worlds: Iterable[World]) -> list[World]:
        return [world for world in worlds if self._is_new(world)]

    def _is_new(self, world: World) -> bool:
        same = sameness(world)
        if same in self._seen:
            return False
        self._seen.add(same)
        self.worlds += 1
        return True

    async def _judge(self, worlds: Sequence[World]) -> None:
        for world in worlds:
            told = list(self.subject.world_laws(world))
            assert not told, f"{' → '.join(world.path)}: {'; '.join(told)}"
        for batch in batches(worlds):
            await self._audit(batch)
            await self._drain(batch)

    async def _audit(self, batch: Sequence[World]) -> None:
        found = await self.ground.audit(batch)
        if found:
            path = batch[shard_of(found[0].key)].path
            raise AssertionError(f"{' → '.join(path)}: {'; '.join(map(str, found))}")

    async def _drain(self, batch: Sequence[World]) -> None:
        """Rounds of a worker until nothing is left; worlds that are the same after a round go on as one."""
        left = list(batch)
        for _ in range(ROUNDS):
            after = []
            await self.ground.build(left)
            drained = await self.subject.drain(self.ground, left)
            for shard, world in enumerate(drained):
                same = sameness(world)
                if same not in self._drained:
                    self._drained.add(same)
                    if remains(world):
                        after.append((shard, world))
            left = await self.ground.save(after)
            if not left:
                return
        raise AssertionError(f"{' → '.join(left[0].path)}: after {ROUNDS} rounds there is still {remains(left[0])}")


ROUNDS = 9
"""More than any world here needs."""


def remains(world: World) -> list[str]:
    """Keys that are there although nothing is to be done any more."""
    found = []
    for name, kept in world.keys.items():
        kind = apart(name)
        is_ended_task = kind.name == "task" and "ended" in kept.value
        if kind.lifetime is Lifetime.WORK and not is_ended_task:
            found.append(name)
    return found


def batches(items: Iterable[T]) -> Iterator[list[T]]:
    rest = iter(items)
    while batch := list(islice(rest, AT_ONCE)):
        yield batch
