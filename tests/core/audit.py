"""Audit: proves the invariants of design.md on everything a server holds. Read-only.

    dump(url) ─▶ Dump ─▶ violations(dump) ─▶ [Violation, …]        the second step is pure

The dump is one script, hence one moment. `violations` knows nothing of how a state came about: whatever the history,
these hold.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from redis.asyncio import Redis

from core.keys import Lifetime, kind_of
from core.parcels import Leg, Person, load_parcel, load_people, load_plan, outcome_field
from core.words import OPEN, REACHED, Status, best

_DUMP = """
local found = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  local kind = redis.call('TYPE', key).ok
  local value
  if kind == 'hash' then value = redis.call('HGETALL', key)
  elseif kind == 'zset' then value = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  elseif kind == 'stream' then value = redis.call('XRANGE', key, '-', '+')
  else value = redis.call('GET', key) end
  found[#found + 1] = { key, kind, redis.call('PTTL', key), value }
end
return found
"""

# `lua/parts/ready.lua` score_of: one step of priority outweighs every order.
_PRIORITY = 4398046511104
_ENDS = ("done", "failed", "cancelled", "expired")
# The stream is trimmed beyond this; then it does not hold every event any more.
_STREAM_KEPT = 18000


@dataclass(frozen=True, slots=True)
class Violation:
    """`rule`: the invariant's number in design.md; `subject`: the key, task or delivery."""

    rule: str
    subject: str
    detail: str

    def __str__(self) -> str:
        return f"{self.rule} {self.subject}: {self.detail}"


@dataclass(frozen=True, slots=True)
class Kept:
    """One key. `value`: dict for a hash, member → score in order for a zset, entries for a stream, text for a string."""

    kind: str
    pttl: int
    value: Any


Dump = Mapping[str, Kept]


async def dump(url: str) -> Dump:
    """All keys of one moment."""
    async with Redis.from_url(url, protocol=2) as client:
        return await dump_through(client)


async def dump_through(client: Redis) -> Dump:
    """The same through a client that does not decode. What is no UTF-8 (the bitmaps) comes as surrogates."""
    rows: list[Any] = await client.eval(_DUMP, 0)  # type: ignore[misc]
    return {_text(key): Kept(_text(kind), pttl, _value(_text(kind), value)) for key, kind, pttl, value in rows}


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def _value(kind: str, raw: Any) -> Any:
    if kind == "hash":
        return {_text(raw[n]): _text(raw[n + 1]) for n in range(0, len(raw), 2)}
    if kind == "zset":
        return {_text(raw[n]): float(raw[n + 1]) for n in range(0, len(raw), 2)}
    if kind == "stream":
        return [_value("hash", fields) for _, fields in raw]
    return _text(raw)


def violations(found: Dump) -> list[Violation]:
    """Everything that is not as it must be; empty: the invariants hold."""
    shards = {tag[1] for key in found if (tag := re.search(r"\{(\d+)\}", key))}
    return [violation for shard in sorted(shards) for violation in _Shard.of(found, shard).violations()]


def orders(found: Dump) -> list[str]:
    """What is still to be done: tasks and unreleased deliveries."""
    return [key for key in found if re.match(r"queue:\{\d+\}:task:|delivery:\{\d+\}:(?!idle:)", key)]


@dataclass
class _Shard:
    """One shard's keys, taken apart."""

    found: Dump
    tasks: dict[str, dict[str, str]] = field(default_factory=dict)
    histories: dict[str, dict[str, str]] = field(default_factory=dict)
    lanes: dict[tuple[str, str], dict[str, float]] = field(default_factory=dict)
    ready: dict[tuple[str, str], dict[str, float]] = field(default_factory=dict)
    held: dict[tuple[str, str], str] = field(default_factory=dict)
    rings: dict[str, dict[str, float]] = field(default_factory=dict)
    listed: dict[str, str] = field(default_factory=dict)
    live: dict[str, str] = field(default_factory=dict)
    ended: dict[str, dict[str, str]] = field(default_factory=dict)
    by: set[tuple[str, str, str]] = field(default_factory=set)
    shard: str = "0"

    @classmethod
    def of(cls, found: Dump, shard: str) -> "_Shard":
        tag = f"{{{shard}}}"
        self = cls({key: kept for key, kept in found.items() if tag in key}, shard=shard)
        for key, kept in self.found.items():
            self._sort_in(key.replace(tag, "s", 1), kept)
        return self

    def _sort_in(self, key: str, kept: Kept) -> None:
        match key.split(":"):
            case ["queue", "s", "task", *rest]:
                found = self.ended if kept.value["state"] in _ENDS else self.tasks
                found[":".join(rest)] = kept.value
            case ["queue", "s", "by", field_, *rest]:
                self.by |= {(field_, ":".join(rest), task) for task in kept.value}
            case ["queue", "s", "lane", tube, *rest]:
                self.lanes[tube, ":".join(rest)] = kept.value
            case ["queue", "s", "ready", tube, *rest]:
                self.ready[tube, ":".join(rest)] = kept.value
            case ["queue", "s", "held", tube]:
                self.held |= {(tube, lane): task for lane, task in kept.value.items()}
            case ["queue", "s", "tenants", tube]:
                self.rings[tube] = kept.value
            case ["deliveries", "s", "listed", *tenant]:
                self.listed |= dict.fromkeys(kept.value, ":".join(tenant))
            case ["deliveries", "s", "live", *tenant]:
                self.live |= dict.fromkeys(kept.value, ":".join(tenant))
            case ["history", "s", *rest] if kept.kind == "hash" and rest[-1] != "outcomes":
                self.histories[":".join(rest)] = kept.value

    def zset(self, name: str) -> dict[str, float]:
        kept = self.found.get(f"queue:{{{self.shard}}}:{name}")
        return kept.value if kept else {}

    @property
    def retained(self) -> dict[str, float]:
        kept = self.found.get(f"deliveries:{{{self.shard}}}:retained")
        return kept.value if kept else {}

    @property
    def counters(self) -> dict[str, str]:
        kept = self.found.get(f"queue:{{{self.shard}}}:counters")
        return kept.value if kept else {}

    def violations(self) -> Iterator[Violation]:
        for task_id, task in self.tasks.items():
            yield from self._places(task_id, task)
        yield from self._lanes()
        yield from self._rings()
        yield from self._indexes()
        yield from self._marks()
        yield from self._states()
        yield from self._ended()
        yield from self._conservation()
        yield from self._numbers()
        for suffix, history in self.histories.items():
            yield from self._history(suffix, history)
        yield from self._events()
        yield from self._keys()

    # I1, I5: a live task is in exactly the places of its state

    def _places(self, task_id: str, task: dict[str, str]) -> Iterator[Violation]:
        wanted = self._wanted_places(task_id, task)
        actual = self._actual_places(task_id, task)
        if wanted != actual:
            yield Violation("I1", task_id, f"{task['state']}, is in {sorted(actual)}, not in {sorted(wanted)}")
        if (task["state"] == "taken") != (task_id in self.zset("lease")):
            yield Violation("I5", task_id, f"{task['state']} and lease disagree")

    def _wanted_places(self, task_id: str, task: dict[str, str]) -> set[str]:
        lane = {"lane", "held"} if self._holds(task_id, task) else set[str]()
        expires = {"expires"} if "expires" in task else set[str]()
        match task["state"]:
            case "waiting":
                return {"due"} | lane | expires
            case "ready":
                return {"lane" if "lane" in task else "ready"} | expires
            case "taken":
                return {"lease"} | ({"lane", "held"} if "lane" in task else set[str]())
            case "buried":
                return {"buried"}
            case other:
                return {f"no state {other}"}

    def _holds(self, task_id: str, task: dict[str, str]) -> bool:
        return self.held.get((task["tube"], task.get("lane", ""))) == task_id

    def _actual_places(self, task_id: str, task: dict[str, str]) -> set[str]:
        places = {name for name in ("due", "lease", "expires", "buried") if task_id in self.zset(name)}
        places |= {"lane" for members in self.lanes.values() if task_id in members}
        places |= {"ready" for members in self.ready.values() if task_id in members}
        return places | ({"held"} if task_id in self.held.values() else set())

    # I2, I3, I9: lanes

    def _lanes(self) -> Iterator[Violation]:
        offered = self._offers()
        for lane, members in self.lanes.items():
            head = min(members, key=lambda member: members[member])
            holder = self.held.get(lane)
            if holder and holder != head:
                yield Violation("I2", str(lane), f"held by {holder}, its head is {head}")
            taken = [member for member in members if self.tasks.get(member, {}).get("state") == "taken"]
            if len(taken) > 1 or (taken and taken[0] != holder):
                yield Violation("I2", str(lane), f"taken: {taken}, held by {holder}")
            yield from self._offer(lane, head, holder, offered.pop(lane, []))
        for lane, places in offered.items():
            yield Violation("I3", str(lane), f"is empty and offered in {places}")
        for lane, holder in self.held.items():
            if lane not in self.lanes:
                yield Violation("I2", str(lane), f"is empty and held by {holder}")

    def _offers(self) -> dict[tuple[str, str], list[tuple[str, float]]]:
        """Lane → the tenants under which it is offered, with the score."""
        offers: dict[tuple[str, str], list[tuple[str, float]]] = defaultdict(list)
        for (tube, tenant), members in self.ready.items():
            for member, score in members.items():
                if member.startswith("@"):
                    offers[tube, member[1:]].append((tenant, score))
        return offers

    def _offer(
        self, lane: tuple[str, str], head: str, holder: str | None, offers: list[tuple[str, float]]
    ) -> Iterator[Violation]:
        task = self.tasks.get(head, {})
        wanted = [] if holder else [(task.get("tenant"), self._score(task))]
        if offers != wanted:
            yield Violation("I3", str(lane), f"offered as {offers}, not as {wanted}")

    @staticmethod
    def _score(task: dict[str, str]) -> float:
        return int(task.get("priority", 0)) * _PRIORITY + int(task.get("order", 0))

    # I4: the ring

    def _rings(self) -> Iterator[Violation]:
        ringed = {(tube, tenant) for tube, ring in self.rings.items() for tenant in ring}
        for tube, tenant in ringed ^ set(self.ready):
            yield Violation("I4", f"{tube}:{tenant}", "the ring and the ready sets disagree")

    # I6: indexes name live tasks

    def _indexes(self) -> Iterator[Violation]:
        for name in ("due", "lease", "expires", "buried"):
            for member in self.zset(name):
                if not member.startswith("order:") and member not in self.tasks:
                    yield Violation("I6", name, f"names {member}, which is no task")
        yield from self._due_orders()
        for lane, members in self.lanes.items():
            for member, score in members.items():
                if self.tasks.get(member, {}).get("order") != f"{score:.0f}":
                    yield Violation("I6", str(lane), f"{member} stands at {score}")
        for (tube, tenant), members in self.ready.items():
            for member, score in members.items():
                if not member.startswith("@") and self._score(self.tasks.get(member, {})) != score:
                    yield Violation("I6", f"ready:{tube}:{tenant}", f"{member} is offered at {score}")

    def _due_orders(self) -> Iterator[Violation]:
        waiting = {member: score for member, score in self.zset("due").items() if member.startswith("order:")}
        for suffix, history in self.histories.items():
            sender, ns = suffix.rsplit(":", 1)
            score = waiting.pop(f"order:{ns}:{sender}", None)
            wanted = float(history["due"]) if history["state"] == "scheduled" else None
            if score != wanted:
                yield Violation("I6", suffix, f"{history['state']}, stands in the due index at {score}")
        for member in waiting:
            yield Violation("I6", "due", f"names {member}, which is no delivery")

    def _marks(self) -> Iterator[Violation]:
        """Whoever looks for a task by what it has finds it, and nothing else."""
        wanted = {(name, value, task_id) for task_id, task in self.tasks.items() for name, value in _marks(task)}
        for name, value, task_id in sorted(wanted ^ self.by):
            yield Violation("I6", f"by:{name}:{value}", f"and {task_id} disagree")
        kinds = {value for name, value, _ in wanted if name == "kind"}
        if kinds != set(self.zset("kinds")):
            yield Violation("I6", "kinds", f"{sorted(self.zset('kinds'))}, in truth {sorted(kinds)}")

    # The counts by state are what a recount finds

    def _states(self) -> Iterator[Violation]:
        kept = self.found.get(f"queue:{{{self.shard}}}:states")
        told = {name: int(count) for name, count in (kept.value if kept else {}).items() if int(count)}
        recount = Counter(f"{task['tube']}:{task['state']}" for task in self.tasks.values())
        for (tube, _), members in self.lanes.items():
            recount[f"{tube}:locked"] += len(members) - 1
        if told != {name: count for name, count in recount.items() if count}:
            yield Violation("I7", "states", f"{told}, in truth {dict(recount)}")

    # I16: what ended is kept as long as its tube wants, and no longer

    def _ended(self) -> Iterator[Violation]:
        if set(self.ended) != set(self.zset("finished")):
            yield Violation("I16", "finished", f"{sorted(self.zset('finished'))}, kept are {sorted(self.ended)}")
        for task_id in self.ended:
            if self.found[f"queue:{{{self.shard}}}:task:{task_id}"].pttl < 0:
                yield Violation("I16", task_id, "has ended and no time to live")

    # I7: what was put and has not ended is there

    def _conservation(self) -> Iterator[Violation]:
        transitions: dict[str, Counter[str]] = defaultdict(Counter)
        for name, value in self.counters.items():
            tube, colon, transition = name.rpartition(":")
            if colon:
                transitions[tube][transition] = int(value)
        for tube, counts in transitions.items():
            live = sum(1 for task in self.tasks.values() if task["tube"] == tube)
            if counts["put"] != live + sum(counts[end] for end in _ENDS):
                yield Violation("I7", tube, f"{dict(counts)} and {live} live")

    # I8: numbers only grow, and nobody has another's

    def _numbers(self) -> Iterator[Violation]:
        for name, fields in (("token", "token"), ("order", "order")):
            given = [int(task[fields]) for task in self.tasks.values() if fields in task]
            if len(given) != len(set(given)) or max(given, default=0) > int(self.counters.get(name, 0)):
                yield Violation("I8", name, f"{sorted(given)}, the counter is at {self.counters.get(name)}")
        for task_id, task in self.tasks.items():
            if task["state"] == "taken" and "token" not in task:
                yield Violation("I8", task_id, "is taken without a token")

    # I13 and the arithmetic of a history

    def _history(self, suffix: str, history: dict[str, str]) -> Iterator[Violation]:
        stored = self._outcomes(suffix)
        plan = load_plan(history["plan"])
        people = _people(history)
        yield from self._versions(suffix, history, stored)
        yield from _counts(suffix, history, plan, people, stored)
        yield from self._left(suffix, history, plan, stored)
        yield from self._reached(suffix, history, plan, people, stored)
        yield from self._retention(suffix, history)

    def _outcomes(self, suffix: str) -> dict[str, str]:
        kept = self.found.get(f"history:{{{self.shard}}}:{suffix}:outcomes")
        return kept.value if kept else {}

    def _versions(self, suffix: str, history: dict[str, str], stored: dict[str, str]) -> Iterator[Violation]:
        versions = [int(text.split("|")[3]) for text in stored.values()]
        if len(versions) != len(set(versions)) or max(versions, default=0) > int(history.get("version", 0)):
            yield Violation("I13", suffix, f"versions {sorted(versions)} of {history.get('version')}")

    def _left(
        self, suffix: str, history: dict[str, str], plan: list[Leg], stored: dict[str, str]
    ) -> Iterator[Violation]:
        if history["state"] == "scheduled" or (history["state"] == "cancelled" and "released" not in history):
            return
        for leg in plan:
            told = int(history.get(f"left:{leg.channel}", 0))
            tasks = [
                task for task in self.tasks.values() if (task.get("history"), task["tube"]) == (suffix, leg.channel)
            ]
            if told != sum(int(task["left"]) for task in tasks):
                yield Violation(
                    "I13", suffix, f"left:{leg.channel} is {told}, its parcels have {[t['left'] for t in tasks]}"
                )
            if tasks:
                fields = {entry.field(leg.channel) for entry in _entries(history, leg)}
                entries = [name for name in fields if _status(stored, name) in OPEN]
                if len(entries) != told:
                    yield Violation("I13", suffix, f"left:{leg.channel} is {told}, open are {len(entries)}")

    def _reached(
        self, suffix: str, history: dict[str, str], plan: list[Leg], people: list[Person], stored: dict[str, str]
    ) -> Iterator[Violation]:
        bitmap = self.found.get(f"history:{{{self.shard}}}:{suffix}:reached")
        bits = bitmap.value.encode("utf-8", "surrogateescape") if bitmap else b""
        marked = {n for n in range(len(bits) * 8) if bits[n // 8] & (128 >> n % 8)}
        wanted = {
            person.number
            for person in people
            for leg, contacts in zip(plan, person.contacts, strict=True)
            for contact in range(contacts)
            if _status(stored, outcome_field(person.id, leg.channel, contact)) in REACHED
        }
        if marked != wanted or int(history.get("reached", 0)) != len(wanted):
            yield Violation("I13", suffix, f"reached {history.get('reached')}, marked {marked}, in truth {wanted}")

    # I16: every history has an end

    def _retention(self, suffix: str, history: dict[str, str]) -> Iterator[Violation]:
        over = "finished" in history
        retained = f"{history['tenant']}|{suffix}" in self.retained
        expiring = self.found[f"history:{{{self.shard}}}:{suffix}"].pttl > 0
        if not over == retained == expiring:
            yield Violation("I16", suffix, f"{history['state']}: over {over}, retained {retained}, expiring {expiring}")
        if over == (suffix in self.live) or self.listed.get(suffix) != history["tenant"]:
            yield Violation("I16", suffix, f"over {over}, live {suffix in self.live}, listed {suffix in self.listed}")
        if not over and history["state"] == "released" and not self._has_work(suffix):
            yield Violation("I7", suffix, "is released, not over, and nobody works on it")

    def _has_work(self, suffix: str) -> bool:
        return any(task.get("history") == suffix for task in self.tasks.values())

    def _events(self) -> Iterator[Violation]:
        """Every outcome was told, as it stands."""
        kept = self.found.get(f"events:{{{self.shard}}}")
        entries = kept.value if kept else []
        if len(entries) > _STREAM_KEPT:
            return
        told = set(_lines(entries))
        for suffix in self.histories:
            for name, text in self._outcomes(suffix).items():
                if (suffix, text) not in told:
                    yield Violation("I13", suffix, f"{name} is {text}, which no event told")

    # I16: nothing else stays

    def _keys(self) -> Iterator[Violation]:
        for suffix in (set(self.listed) | set(self.live)) - set(self.histories):
            yield Violation("I16", suffix, "is in an index and has no history")
        for key, kept in self.found.items():
            kind = kind_of(key)
            if kind is None:
                yield Violation("I16", key, "is no key of ours")
            elif kind.lifetime is Lifetime.TTL and kept.pttl < 0:
                yield Violation("I16", key, "has no time to live")
            elif kind.lifetime is Lifetime.WORK and not self.tasks and not self.live and kept.pttl < 0:
                yield Violation("I16", key, "is left although there is no work")


def _marks(task: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What a task is found by; a parcel is found through its delivery."""
    if "history" not in task:
        yield from ((name, task[name]) for name in ("tenant", "lane", "kind", "user") if name in task)
        yield from (("tag", tag) for tag in task.get("tags", "").split("\n") if tag)


def _status(stored: Mapping[str, str], name: str) -> Status:
    return Status(stored[name].split("|")[0]) if name in stored else Status.QUEUED


def _people(history: Mapping[str, str]) -> list[Person]:
    pages = sorted(int(name[7:]) for name in history if name.startswith("people:"))
    return [person for page in pages for person in load_people(history[f"people:{page}"], page)]


def _entries(history: Mapping[str, str], leg: Leg) -> Iterable[Any]:
    for n in range(len(leg.parcels)):
        yield from load_parcel(history[f"parcel:{leg.channel}:{n}"])[1]


def _counts(
    suffix: str, history: Mapping[str, str], plan: list[Leg], people: list[Person], stored: Mapping[str, str]
) -> Iterator[Violation]:
    """The counters are what a recount finds."""
    for index, leg in enumerate(plan):
        recount = Counter(
            best([_status(stored, outcome_field(person.id, leg.channel, n)) for n in range(person.contacts[index])])
            for person in people
            if person.contacts[index]
        )
        del recount[Status.QUEUED]
        prefix = f"n:{leg.channel}:"
        told = {name[len(prefix) :]: int(n) for name, n in history.items() if name.startswith(prefix) and int(n)}
        if told != {str(status): n for status, n in recount.items()}:
            yield Violation("I13", suffix, f"{leg.channel} counts {told}, in truth {dict(recount)}")


def _lines(entries: Iterable[Mapping[str, str]]) -> Iterator[tuple[str, str]]:
    """(delivery, stored outcome) of every change in the stream."""
    for entry in entries:
        for line in filter(None, entry["changes"].split("\n")):
            yield entry["history"], line.split("\t", 2)[2]
