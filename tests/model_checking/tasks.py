"""Tasks as what is explored: their moves, their laws, and the plain worker that drains them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.model_checking.explore import Move
from tests.model_checking.invariants import NAMES, step_laws, world_laws
from tests.model_checking.many_shards import HOUR_MS, Call, Ground, Pass, World
from tests.model_checking.task_moves import FLOOR_MS, HOUR_AFTER, TUBE, VERBS, Ways

_TICK = Call("claim", (TUBE, "drain", "", 0, 0, HOUR_AFTER, FLOOR_MS))
_CLAIM = Call("claim", (TUBE, "drain", "", 10, 10, HOUR_AFTER, FLOOR_MS))


def with_tokens(world: World, call: Call | Pass, reply: Any) -> World:
    """With the tokens that a claim gave."""
    if isinstance(call, Pass) or call.script != "claim":
        return world
    tokens = dict(world.tokens)
    for task, token, *_ in reply[6:]:
        tokens[task] = (*tokens.get(task, ()), str(token))
    return replace(world, tokens=tokens)


@dataclass(frozen=True)
class Tasks:
    """See `tests.model_checking.explore.Subject`."""

    ways: Ways

    def moves(self) -> Mapping[str, Move]:
        return self.ways.moves()

    def world_laws(self, world: World) -> Iterator[str]:
        return world_laws(world, self.ways)

    def step_laws(self, before: World, call: Call | Pass, reply: Any, after: World) -> Iterator[str]:
        return step_laws(before, call, reply, after, self.ways)

    def learned(self, world: World, call: Call | Pass, reply: Any) -> World:
        return with_tokens(world, call, reply)

    async def drain(self, ground: Ground, worlds: Sequence[World]) -> list[World]:
        """Whatever waits is due and whoever held anything is gone; what was buried gets another life."""
        ground.pass_time(2 * HOUR_MS)
        await ground.run([_TICK] * len(worlds))
        for name in NAMES:
            await ground.run([Call("kick", (name,)) if world.task(name) else None for world in worlds])
        replies = await ground.run([_CLAIM] * len(worlds))
        learned = [with_tokens(world, _CLAIM, reply) for world, reply in zip(worlds, replies, strict=True)]
        for name in NAMES:
            await ground.run([_done(world, name, reply) for world, reply in zip(learned, replies, strict=True)])
        return await ground.look(learned)


def _done(world: World, name: str, reply: Any) -> Call | None:
    given = any(task == name for task, *_ in reply[6:])
    return VERBS["done"](world, name, world.tokens[name][-1]) if given else None
