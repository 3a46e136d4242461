"""The model of tasks: their operations, their invariants, and the plain worker that drains them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.system.model_checking.explore import Operation
from tests.system.model_checking.invariants import NAMES, state_invariants, step_invariants
from tests.system.model_checking.many_shards import HOUR_MS, Call, ManyShards, PassTime, ShardState
from tests.system.model_checking.task_operations import FLOOR_MS, HOUR_AFTER, TUBE, VERBS, TubeVariant

_TICK = Call("claim", (TUBE, "drain", "", 0, 0, HOUR_AFTER, FLOOR_MS))
_CLAIM = Call("claim", (TUBE, "drain", "", 10, 10, HOUR_AFTER, FLOOR_MS))


def with_tokens(state: ShardState, call: Call | PassTime, reply: Any) -> ShardState:
    """The state with the tokens that a claim issued."""
    if isinstance(call, PassTime) or call.script != "claim":
        return state
    tokens = dict(state.tokens)
    for task, token, *_ in reply[6:]:
        tokens[task] = (*tokens.get(task, ()), str(token))
    return replace(state, tokens=tokens)


@dataclass(frozen=True)
class Tasks:
    """See `tests.system.model_checking.explore.Model`."""

    variant: TubeVariant

    def operations(self) -> Mapping[str, Operation]:
        return self.variant.operations()

    def state_invariants(self, state: ShardState) -> Iterator[str]:
        return state_invariants(state, self.variant)

    def step_invariants(
        self, before: ShardState, call: Call | PassTime, reply: Any, after: ShardState
    ) -> Iterator[str]:
        return step_invariants(before, call, reply, after, self.variant)

    def with_reply(self, state: ShardState, call: Call | PassTime, reply: Any) -> ShardState:
        return with_tokens(state, call, reply)

    async def drain(self, shards: ManyShards, states: Sequence[ShardState]) -> list[ShardState]:
        """Time passes until everything is due and every lease is over; buried tasks are kicked, and all are done."""
        shards.pass_time(2 * HOUR_MS)
        await shards.run([_TICK] * len(states))
        for name in NAMES:
            await shards.run([Call("kick", (name,)) if state.task(name) else None for state in states])
        replies = await shards.run([_CLAIM] * len(states))
        claimed = [with_tokens(state, _CLAIM, reply) for state, reply in zip(states, replies, strict=True)]
        for name in NAMES:
            await shards.run([_done(state, name, reply) for state, reply in zip(claimed, replies, strict=True)])
        return await shards.read(claimed)


def _done(state: ShardState, name: str, reply: Any) -> Call | None:
    is_claimed = any(task == name for task, *_ in reply[6:])
    return VERBS["done"](state, name, state.tokens[name][-1]) if is_claimed else None
