"""A canonical form of a state: equal for two states if no later script can distinguish them.

Times become distances from now, and order numbers become ranks. Left out is what no script reads to decide (counters of
transitions, the event stream, the TTL of a bell) and the turns of tenants.
"""

import re
from collections.abc import Callable, Hashable, Mapping
from functools import cache
from typing import Any

from core.audit.invariants.invariant import parse_key
from core.redis.constants import PRIORITY_STEP
from core.redis.keys import Key
from tests.support.audited import StoredKey
from tests.system.model_checking.invariants import number_of
from tests.system.model_checking.many_shards import HOUR_MS, ShardState

# Times are whole and half hours from now and pass by whole hours, so the seconds that a test takes make no difference.
_STEP_MS = HOUR_MS // 2
_TIMES = frozenset({"due", "expires"})
_PRESENT = frozenset({"started", "ended", "created", "released", "finished", "version", "request", "answer"})
_OMITTED = frozenset({"counters", "turns", "puts", "events", "weights", "settings", "channels", "secret", "access"})

Scored = Mapping[str, float]


class _Ranks:
    """The rank of each order number in one state."""

    def __init__(self, state: ShardState) -> None:
        hashes = [kept.value for name, kept in state.keys.items() if ":task:" in name]
        orders = sorted({int(facts["order"]) for facts in hashes if "order" in facts})
        self._rank = {order: rank for rank, order in enumerate(orders)}

    def of(self, order: int) -> int:
        """An order number that no task has any more ranks last."""
        return self._rank.get(order, len(self._rank))

    def of_score(self, score: float) -> tuple[int, int]:
        priority, order = divmod(int(score), PRIORITY_STEP)
        return priority, self.of(order)


@cache
def kind_of_key(name: str) -> Key:
    """The kind of a key. Raises AssertionError for an unknown key."""
    found = parse_key(name)
    assert found is not None, f"{name} is no key of Ada"
    return found[0]


def canonical_form(state: ShardState) -> Hashable:
    """Equal for states with the same future."""
    ranks, found = _Ranks(state), []
    for name, kept in state.keys.items():
        kind = kind_of_key(name).name
        if kind not in _OMITTED:
            found.append((name, _READ.get(kind, _plain)(kept, state, ranks)))
    tokens = tuple(sorted((task, min(len(given), 2)) for task, given in state.tokens.items()))
    return tuple(sorted(found, key=lambda pair: pair[0])), tokens


def _distance(state: ShardState, moment: float) -> int:
    return round((moment - state.now) / _STEP_MS)


def _plain(kept: StoredKey, state: ShardState, ranks: _Ranks) -> Hashable:
    if kept.kind == "hash":
        return tuple(sorted((name, value) for name, value in kept.value.items() if value != "0"))
    if kept.kind == "stream":
        return tuple(tuple(sorted(entry.items())) for entry in kept.value)
    return tuple(sorted(kept.value)) if kept.kind == "zset" else str(kept.value)


def _timed(kept: StoredKey, state: ShardState, ranks: _Ranks) -> Hashable:
    return tuple((member, _distance(state, score)) for member, score in sorted(kept.value.items()))


def _in_order(kept: StoredKey, state: ShardState, ranks: _Ranks) -> Hashable:
    return tuple(kept.value)


def _ranked(kept: StoredKey, state: ShardState, ranks: _Ranks) -> Hashable:
    return tuple((member, ranks.of(int(score))) for member, score in kept.value.items())


def _offered(kept: StoredKey, state: ShardState, ranks: _Ranks) -> Hashable:
    return tuple((member, ranks.of_score(score)) for member, score in kept.value.items())


def _exists(kept: StoredKey, state: ShardState, ranks: _Ranks) -> Hashable:
    return True


def _facts(kept: StoredKey, state: ShardState, ranks: _Ranks) -> Hashable:
    return tuple(sorted((name, _fact(name, value, kept.value, state, ranks)) for name, value in kept.value.items()))


def _fact(name: str, value: str, facts: Mapping[str, str], state: ShardState, ranks: _Ranks) -> Hashable:
    if name == "order":
        return ranks.of(int(value))
    if name == "token":
        return any(given and number_of(given[-1]) == value for given in state.tokens.values())
    if name in _TIMES:
        return _distance(state, float(value))
    return name in _PRESENT or value


def _outcomes(kept: StoredKey, state: ShardState, ranks: _Ranks) -> Hashable:
    """Without the time and the version of each."""
    return tuple(sorted((name, re.sub(r"\|\d+\|\d+\|", "|", value)) for name, value in kept.value.items()))


_READ: Mapping[str, Callable[[StoredKey, ShardState, _Ranks], Any]] = {
    **dict.fromkeys(("due", "lease", "expires", "finished"), _timed),
    **dict.fromkeys(("task", "history"), _facts),
    **dict.fromkeys(("order", "bell"), _exists),
    "tenants": _in_order,
    "lane": _ranked,
    "ready": _offered,
    "outcomes": _outcomes,
}
