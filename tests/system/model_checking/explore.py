"""Bounded model checking: runs every operation in every reachable state, up to a number of steps from the starts.

Two states that no script can distinguish (`equivalence.py`) have the same future, so only one of them is continued.
Every new state is checked: the audit, the invariants, and a drain by a plain worker that must leave nothing behind.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Protocol, TypeVar

from core.redis.keys import Lifetime
from tests.system.model_checking.equivalence import canonical_form, kind_of_key
from tests.system.model_checking.many_shards import AT_ONCE, Call, ManyShards, PassTime, ShardState, shard_of

T = TypeVar("T")
Operation = Callable[[ShardState], Call | PassTime | None]


class Model(Protocol):
    """What an explorer needs to know of a subject: its operations, its invariants, and how to drain it."""

    def operations(self) -> Mapping[str, Operation]: ...

    def state_invariants(self, state: ShardState) -> Iterator[str]: ...

    def step_invariants(
        self, before: ShardState, call: Call | PassTime, reply: Any, after: ShardState
    ) -> Iterator[str]: ...

    def with_reply(self, state: ShardState, call: Call | PassTime, reply: Any) -> ShardState:
        """The state with what the workers learned from the reply (tokens)."""

    async def drain(self, shards: ManyShards, states: Sequence[ShardState]) -> list[ShardState]:
        """Runs one round of a plain worker on the loaded states; returns the states after it."""


@dataclass
class Explorer:
    """Raises AssertionError with the path to the first state that violates an invariant."""

    shards: ManyShards
    model: Model
    states: int = 0
    steps: int = 0
    _seen: set[Hashable] = field(default_factory=set)
    _drained: set[Hashable] = field(default_factory=set)

    async def explore(self, starts: Sequence[ShardState], depth: int) -> None:
        """Tries every sequence of up to `depth` operations from each of the starts."""
        level = self._new(starts)
        await self._check(level)
        for _ in range(depth):
            found: list[ShardState] = []
            for batch in batches(self._tries(level)):
                found += await self._try(batch)
            await self._check(found)
            level = found

    async def follow(
        self, paths: Mapping[str, Sequence[str]], operations: Mapping[str, Operation], options: Mapping[str, str]
    ) -> dict[str, ShardState]:
        """The state at the end of each path, which begins with an empty shard.

        Every operation on a path must be possible; anything else is an error in the test.
        """
        states = dict.fromkeys(paths, await self.shards.empty_state(options))
        for n in range(max(map(len, paths.values()))):
            names = [name for name, path in paths.items() if len(path) > n]
            tries = [(states[name], paths[name][n], operations[paths[name][n]](states[name])) for name in names]
            possible = [(state, name, call) for state, name, call in tries if call is not None]
            assert len(possible) == len(tries), f"some of these are impossible: {[name for _, name, _ in tries]}"
            after = await self._step(possible)
            states |= dict(zip(names, await self.shards.save(list(enumerate(after))), strict=True))
        return states

    def _tries(self, level: Sequence[ShardState]) -> Iterator[tuple[ShardState, str, Call | PassTime]]:
        for state in level:
            for name, operation in self.model.operations().items():
                call = operation(state)
                if call is not None:
                    yield state, name, call

    async def _try(self, batch: Sequence[tuple[ShardState, str, Call | PassTime]]) -> list[ShardState]:
        after = await self._step(batch)
        fresh = [(shard, state) for shard, state in enumerate(after) if self._is_new(state)]
        return await self.shards.save(fresh)

    async def _step(self, batch: Sequence[tuple[ShardState, str, Call | PassTime]]) -> list[ShardState]:
        self.steps += len(batch)
        stepped = await self.shards.step([(state, call) for state, _, call in batch])
        found = []
        for (before, operation, call), (after, reply) in zip(batch, stepped, strict=True):
            state = replace(self.model.with_reply(after, call, reply), path=(*before.path, operation))
            broken = list(self.model.step_invariants(before, call, reply, state))
            assert not broken, f"{' → '.join(state.path)}: {'; '.join(broken)}"
            found.append(state)
        return found

    def _new(self, states: Iterable[ShardState]) -> list[ShardState]:
        return [state for state in states if self._is_new(state)]

    def _is_new(self, state: ShardState) -> bool:
        form = canonical_form(state)
        if form in self._seen:
            return False
        self._seen.add(form)
        self.states += 1
        return True

    async def _check(self, states: Sequence[ShardState]) -> None:
        for state in states:
            broken = list(self.model.state_invariants(state))
            assert not broken, f"{' → '.join(state.path)}: {'; '.join(broken)}"
        for batch in batches(states):
            await self._audit(batch)
            await self._drain(batch)

    async def _audit(self, batch: Sequence[ShardState]) -> None:
        found = await self.shards.audit(batch)
        if found:
            path = batch[shard_of(found[0].key)].path
            raise AssertionError(f"{' → '.join(path)}: {'; '.join(map(str, found))}")

    async def _drain(self, batch: Sequence[ShardState]) -> None:
        """Runs rounds of a worker until no work is left; states that are equal after a round continue as one."""
        left = list(batch)
        for _ in range(ROUNDS):
            after = []
            await self.shards.load(left)
            drained = await self.model.drain(self.shards, left)
            for shard, state in enumerate(drained):
                form = canonical_form(state)
                if form not in self._drained:
                    self._drained.add(form)
                    if remains(state):
                        after.append((shard, state))
            left = await self.shards.save(after)
            if not left:
                return
        raise AssertionError(
            f"{' → '.join(left[0].path)}: after {ROUNDS} rounds these keys are left: {remains(left[0])}"
        )


ROUNDS = 9
"""More than any state of this model needs."""


def remains(state: ShardState) -> list[str]:
    """Keys of work that are left although all work is done."""
    found = []
    for name, kept in state.keys.items():
        kind = kind_of_key(name)
        is_ended_task = kind.name == "task" and "ended" in kept.value
        if kind.lifetime is Lifetime.WORK and not is_ended_task:
            found.append(name)
    return found


def batches(items: Iterable[T]) -> Iterator[list[T]]:
    rest = iter(items)
    while batch := list(islice(rest, AT_ONCE)):
        yield batch
