"""What breaks a law, what mends it, and the law of keys. Pure.

A law judges what a script of lua/audit/*.lua saw in one moment, so what it finds was really so. The numbers I1 to I17
are the invariants of the design. Laws of tasks are in core/audit/task_invariants.py, of lanes, tenants and indexes in
core/audit/lane_invariants.py, of deliveries in core/audit/history_invariants.py.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from core.model.states import TaskState
from core.redis.keys import KEYS, Key, Lifetime

# `lua/shared/ready.lua` score_of: one step of priority outweighs every order.
_STEP = 4398046511104
ENDS = (TaskState.DONE, TaskState.FAILED, TaskState.CANCELLED, TaskState.EXPIRED)
LIVE = (TaskState.WAITING, TaskState.READY, TaskState.TAKEN, TaskState.BURIED)

# What a key that lost its end is given: the longest it lives in good order.
_MINUTE, _DAY = 60_000, 86_400_000
_TTL_MS = {
    "bell": _MINUTE,
    "timer": _MINUTE,
    "pace": _MINUTE,
    "waits": 60 * _MINUTE,
    "puts": 60 * _MINUTE,
    "reply": 60 * _MINUTE,
    "reserved": _DAY,
    "idempotency": _DAY,
}

Word = str | int


@dataclass(frozen=True, slots=True)
class Repair:
    """The script that mends it, looking again before it writes."""

    script: str
    arguments: tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class Violation:
    """`rule`: the invariant. `key`: where. `mend` None: nothing can be mended safely; `why` says why not."""

    rule: str
    key: str
    found: str
    wanted: str
    mend: Repair | None = None
    why: str = ""

    def __str__(self) -> str:
        return f"{self.rule} {self.key}: {self.found}; should be {self.wanted}"


# Keys


_PATTERNS = [
    (key, re.compile(re.sub(r"<(\w+)>", "(.+?)", re.escape(key.pattern).replace(r"\{s\}", r"\{(\d+)\}")), re.DOTALL))
    for key in sorted(KEYS.values(), key=lambda key: -len(key.pattern))
]


def taken_apart(name: str) -> tuple[Key, int, list[str]] | None:
    """The kind of a key, its shard, and its parts; None: it is not ours."""
    for key, pattern in _PATTERNS:
        if found := pattern.fullmatch(name):
            return key, int(found[1]), list(found.groups()[1:])
    return None


def key_violations(name: str, kind: str, ttl: int) -> Iterator[Violation]:
    """I16. Every key is declared, with its type and with what ends it. `ttl` -2: it is gone."""
    if ttl == -2:
        return
    apart = taken_apart(name)
    if apart is None:
        why = "whose it is, is not known"
        yield Violation("I16", name, f"a {kind}", "a key that core/redis/keys.py declares", why=why)
        return
    key = apart[0]
    if kind != key.type:
        why = "what it held is not known"
        yield Violation("I16", name, f"a {kind}", f"a {key.type}", why=why)
    elif key.lifetime is Lifetime.TTL and ttl == -1:
        yield _without_end(name, key)
    elif key.lifetime in (Lifetime.FOREVER, Lifetime.WORK) and ttl >= 0 and key.name != "task":
        yield Violation("I16", name, f"ends in {ttl} ms", "without an end", Repair("repair_lifetime", (name, 0)))


def _without_end(name: str, key: Key) -> Violation:
    ttl = _TTL_MS.get(key.name)
    mend = Repair("repair_lifetime", (name, ttl)) if ttl else None
    return Violation("I16", name, "without an end", "a time to live", mend, "its delivery is judged by itself")


def score_of(priority: str, order: str) -> int:
    """Where a task of this priority and order is offered."""
    return int(float(priority)) * _STEP + int(float(order))
