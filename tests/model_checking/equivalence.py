"""When two worlds are the same for every script that may follow: times as distances, numbers as ranks.

Left out is what no script reads to decide (counters of transitions, the stream of events, when a bell would end by
itself) and what only decides whose turn it is between tenants.
"""

import re
from collections.abc import Callable, Hashable, Mapping
from functools import cache
from typing import Any

from core.audit.invariant import taken_apart
from core.redis.keys import Key
from tests.model_checking.many_shards import HOUR_MS, World
from tests.support.audited import Kept

# Times are whole and half hours from now and pass by whole ones, so the seconds that a test takes decide nothing.
_STEP_MS = HOUR_MS // 2
_ORDERS = 4398046511104
_TIMES = frozenset({"due", "expires"})
_PRESENT = frozenset({"started", "ended", "created", "released", "finished", "version", "request", "answer"})
_OMITTED = frozenset({"counters", "turns", "puts", "events", "weights", "settings", "channels", "secret", "access"})

Scored = Mapping[str, float]


class _Ranks:
    """Orders of one world by their rank."""

    def __init__(self, world: World) -> None:
        hashes = [kept.value for name, kept in world.keys.items() if ":task:" in name]
        orders = sorted({int(facts["order"]) for facts in hashes if "order" in facts})
        self._rank = {order: rank for rank, order in enumerate(orders)}

    def of(self, order: int) -> int:
        """Of an order that no task has any more: after all."""
        return self._rank.get(order, len(self._rank))

    def of_score(self, score: float) -> tuple[int, int]:
        priority, order = divmod(int(score), _ORDERS)
        return priority, self.of(order)


@cache
def apart(name: str) -> Key:
    """The kind of a key. Raises AssertionError if it is not ours."""
    found = taken_apart(name)
    assert found is not None, f"{name} is not ours"
    return found[0]


def sameness(world: World) -> Hashable:
    """Equal for worlds that behave alike."""
    ranks, found = _Ranks(world), []
    for name, kept in world.keys.items():
        kind = apart(name).name
        if kind not in _OMITTED:
            found.append((name, _READ.get(kind, _plain)(kept, world, ranks)))
    tokens = tuple(sorted((task, min(len(given), 2)) for task, given in world.tokens.items()))
    return tuple(sorted(found, key=lambda pair: pair[0])), tokens


def _distance(world: World, moment: float) -> int:
    return round((moment - world.now) / _STEP_MS)


def _plain(kept: Kept, world: World, ranks: _Ranks) -> Hashable:
    if kept.kind == "hash":
        return tuple(sorted((name, value) for name, value in kept.value.items() if value != "0"))
    if kept.kind == "stream":
        return tuple(tuple(sorted(entry.items())) for entry in kept.value)
    return tuple(sorted(kept.value)) if kept.kind == "zset" else str(kept.value)


def _timed(kept: Kept, world: World, ranks: _Ranks) -> Hashable:
    return tuple((member, _distance(world, score)) for member, score in sorted(kept.value.items()))


def _in_order(kept: Kept, world: World, ranks: _Ranks) -> Hashable:
    return tuple(kept.value)


def _ranked(kept: Kept, world: World, ranks: _Ranks) -> Hashable:
    return tuple((member, ranks.of(int(score))) for member, score in kept.value.items())


def _offered(kept: Kept, world: World, ranks: _Ranks) -> Hashable:
    return tuple((member, ranks.of_score(score)) for member, score in kept.value.items())


def _there(kept: Kept, world: World, ranks: _Ranks) -> Hashable:
    return True


def _facts(kept: Kept, world: World, ranks: _Ranks) -> Hashable:
    return tuple(sorted((name, _fact(name, value, kept.value, world, ranks)) for name, value in kept.value.items()))


def _fact(name: str, value: str, facts: Mapping[str, str], world: World, ranks: _Ranks) -> Hashable:
    if name == "order":
        return ranks.of(int(value))
    if name == "token":
        return any(given and given[-1] == value for given in world.tokens.values())
    if name in _TIMES:
        return _distance(world, float(value))
    return name in _PRESENT or value


def _outcomes(kept: Kept, world: World, ranks: _Ranks) -> Hashable:
    """Without the moment and the version of each."""
    return tuple(sorted((name, re.sub(r"\|\d+\|\d+\|", "|", value)) for name, value in kept.value.items()))


_READ: Mapping[str, Callable[[Kept, World, _Ranks], Any]] = {
    **dict.fromkeys(("due", "lease", "expires", "finished"), _timed),
    **dict.fromkeys(("task", "history"), _facts),
    **dict.fromkeys(("order", "bell"), _there),
    "tenants": _in_order,
    "lane": _ranked,
    "ready": _offered,
    "outcomes": _outcomes,
}
