"""Violations, their repairs, and the invariant of keys (I16). Pure.

An invariant is checked on one atomic read of a function of lua/audit, so a violation really existed. I1 to I31 are
numbered as in docs/proof.md. The invariants of tasks are in core/audit/invariants/tasks.py, those of lanes, tenants and
indexes in lane_invariants.py, those of deliveries in history_invariants.py, those of jobs in
jobs_invariants.py, I7 in conservation.py.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from core.model.states import TASK_ENDS, TaskState
from core.redis.constants import DAY_MS, PRIORITY_STEP, REPLY_MS
from core.redis.keys import KEYS, Key, Lifetime

ENDS = tuple(state for state in TaskState if state in TASK_ENDS)
LIVE = (TaskState.WAITING, TaskState.READY, TaskState.TAKEN, TaskState.BURIED)

# The TTL for a key that lost its own: the longest that such a key is given.
_MINUTE = 60_000
_TTL_MS = {
    "bell": _MINUTE,
    "timer": _MINUTE,
    "pace": _MINUTE,
    "waits": 60 * _MINUTE,
    "rate": 60 * _MINUTE,
    "signal": _MINUTE,
    "puts": 60 * _MINUTE,
    "seen": DAY_MS,
    "reply": REPLY_MS,
    "reserved": DAY_MS,
    "idempotency": DAY_MS,
}

Word = str | int


@dataclass(frozen=True, slots=True)
class Repair:
    """The function that repairs a violation; it checks again before it writes."""

    script: str
    arguments: tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class Violation:
    """`rule`: the invariant. `key`: where. `repair` None: it cannot be repaired safely; `why` is the reason."""

    rule: str
    key: str
    found: str
    wanted: str
    repair: Repair | None = None
    why: str = ""

    def __str__(self) -> str:
        return f"{self.rule} {self.key}: {self.found}; should be {self.wanted}"


_PATTERNS = [
    (key, re.compile(re.sub(r"<(\w+)>", "(.+?)", re.escape(key.pattern).replace(r"\{s\}", r"\{(\d+)\}")), re.DOTALL))
    for key in sorted(KEYS.values(), key=lambda key: -len(key.pattern))
]
# By the first word of the name, since an audit parses every key of the server.
_PATTERNS_OF = {
    word: [one for one in _PATTERNS if one[0].pattern.partition(":")[0] == word]
    for word in {key.pattern.partition(":")[0] for key in KEYS.values()}
}


@lru_cache(1024)
def parse_key(name: str) -> tuple[Key, int, Sequence[str]] | None:
    """Return the kind of a key, its shard (0 if it belongs to the server) and its parts; None if it is not one of
    ours."""
    for key, pattern in _PATTERNS_OF.get(name.partition(":")[0], ()):
        if found := pattern.fullmatch(name):
            shard, *parts = found.groups() if "{s}" in key.pattern else ("0", *found.groups())
            return key, int(shard), parts
    return None


MAY_END = ("task", "progress", "job_steps", "job_order", "import", "importpages")
"""Keys that may be kept for a time after the end of their work, which other invariants check; and those of an import
that is still checked, which end with its process.
"""


def key_violations(name: str, kind: str, ttl: int) -> Iterator[Violation]:
    """Yield the violations of I16: every key is declared, with its type and what ends it. `ttl`: as of PTTL; -2 if the
    key is gone.
    """
    if ttl == -2:
        return
    parsed = parse_key(name)
    if parsed is None:
        why = "its owner is unknown"
        yield Violation("I16", name, f"a {kind}", "a key that core/redis/keys declares", why=why)
        return
    key = parsed[0]
    if key.name == "damaged":
        if ttl == -1:
            yield _damaged(name, kind, parsed[2][0])
    elif kind != key.type:
        yield _of_wrong_type(name, kind, key)
    elif key.lifetime is Lifetime.TTL and ttl == -1:
        yield _without_ttl(name, key)
    elif key.lifetime in (Lifetime.FOREVER, Lifetime.WORK) and ttl >= 0 and key.name not in MAY_END:
        yield Violation("I16", name, f"ends in {ttl} ms", "no TTL", Repair("repair_lifetime", (name, 0)))


# Keys without which Ada goes on. To lose another one can have effects that no repair sees.
_REPLACEABLE = ("task", "history", "outcomes", "reached")


def _of_wrong_type(name: str, kind: str, key: Key) -> Violation:
    repair = _damage_repair(name) if key.name in _REPLACEABLE else None
    why = "its former content is unknown"
    return Violation("I16", name, f"a {kind} in the place of a {key.type}", f"a {key.type}", repair, why)


def _damaged(name: str, kind: str, replaced: str) -> Violation:
    """Return a key that a function has set aside."""
    found = f"a {kind} in the place of {replaced}"
    return Violation("I16", name, found, "an end of what was lost", _damage_repair(replaced))


def _damage_repair(name: str) -> Repair | None:
    parsed = parse_key(name)
    if parsed is None:
        return None
    key, _, parts = parsed
    return Repair("repair_damaged", (name, key.type, parts[0] if key.name == "task" else ""))


def _without_ttl(name: str, key: Key) -> Violation:
    ttl = _TTL_MS.get(key.name)
    repair = Repair("repair_lifetime", (name, ttl)) if ttl else None
    return Violation("I16", name, "no TTL", "a TTL", repair, "its delivery is checked on its own")


def score_of(priority: str, order: str) -> int:
    return int(float(priority)) * PRIORITY_STEP + int(float(order))
