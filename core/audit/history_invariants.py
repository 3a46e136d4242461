"""The laws of a delivery: its outcomes, its counters, its parcels, its indexes and its end (I6, I7, I13, I16). Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from core.audit.invariant import Repair, Violation
from core.history.parcels import Leg, Person, outcome_field
from core.model.compact_json import compact_json
from core.model.states import OPEN, REACHED, Status, best
from core.redis.keys import KEYS

FACTS = (
    *("tenant", "state", "version", "created", "due", "released", "finished", "plan", "recipients"),
    *("reached", "reported"),
)
_ABSENT, _ENDLESS, _ENDING = range(3)


class HistorySnapshot(NamedTuple):
    """A row of lua/audit/audit_histories.lua; two equal ones: nothing has moved between them."""

    suffix: str
    facts: Sequence[str | None]
    counters: Sequence[str]
    listed: str | None
    live: str | None
    retained: str | None
    due: str | None
    order: int
    history: int
    outcomes: int
    bitmap: int
    bits: str


@dataclass(frozen=True, slots=True)
class ParcelSnapshot:
    """A parcel's open entries as its task has them, None without a task; and the outcome fields of all its entries."""

    left: int | None
    fields: Sequence[str]


@dataclass(slots=True)
class DeliverySnapshot:
    """What a delivery holds, read in pages. `outcomes`: field → stored text. `parcels`: by channel."""

    people: list[Person] = field(default_factory=list)
    outcomes: dict[str, str] = field(default_factory=dict)
    parcels: dict[str, list[ParcelSnapshot]] = field(default_factory=dict)


def history_index_violations(shard: int, tenant: str, seen: HistorySnapshot, now: int) -> Iterator[Violation]:
    """I6, I16. A delivery is in the indexes of its state. `tenant`: under whom an index names it, "" for its own."""
    facts = dict(zip(FACTS, seen.facts, strict=True))
    key, owner = KEYS["history"].at(shard, seen.suffix), facts["tenant"]
    mend = Repair("repair_history", (tenant or owner or "", seen.suffix))
    named = [name for name in ("listed", "live", "retained", "due") if getattr(seen, name) is not None]
    if owner is None or (tenant and owner != tenant):
        rest = [name for name in ("outcomes", "bitmap") if owner is None and getattr(seen, name)]
        named = [name for name in named if owner is None or name != "due"] + rest
        if named:
            rule = "I6" if named == ["due"] else "I16"
            yield Violation(
                rule, key, f"{'no delivery' if owner is None else f'of {owner}'}, in {named}", "in none", mend
            )
        return
    if facts["state"] is None or facts["due"] is None or facts["plan"] is None:
        yield Violation("I16", key, f"{facts}", "a delivery with state, due, plan", why="what it was is not known")
        return
    yield from _due(key, seen, facts, now, mend)
    yield from _retention(key, seen, facts, mend)


def _due(
    key: str, seen: HistorySnapshot, facts: Mapping[str, str | None], now: int, mend: Repair
) -> Iterator[Violation]:
    wanted = float(facts["due"] or 0) if facts["state"] == "scheduled" else None
    score = None if seen.due is None else float(seen.due)
    if score != wanted:
        yield Violation("I6", key, f"{facts['state']}, in due at {score}", f"in due at {wanted}", mend)
    elif wanted is not None and wanted > now and seen.order == _ABSENT:
        yield Violation("I6", key, "scheduled, without its order key", "with it until it is due", mend)


def _retention(key: str, seen: HistorySnapshot, facts: Mapping[str, str | None], mend: Repair) -> Iterator[Violation]:
    is_over = facts["finished"] is not None
    ends = [
        name for name in ("history", "outcomes", "bitmap") if getattr(seen, name) == (_ENDLESS if is_over else _ENDING)
    ]
    wrong = [f"{name} {'without' if is_over else 'with'} an end" for name in ends]
    if is_over != (seen.retained is not None):
        wrong.append("not retained" if is_over else "retained")
    if is_over == (seen.live is not None):
        wrong.append("among the unfinished" if is_over else "not among the unfinished")
    if seen.listed is None:
        wrong.append("not listed")
    if wrong:
        yield Violation("I16", key, f"{'over' if is_over else facts['state']}, {', '.join(wrong)}", "none of it", mend)


def delivery_violations(
    shard: int, seen: HistorySnapshot, content: DeliverySnapshot, legs: Sequence[Leg]
) -> Iterator[Violation]:
    """I7, I13. Outcomes, counters and parcels add up."""
    facts = dict(zip(FACTS, seen.facts, strict=True))
    counters = dict(zip(seen.counters[::2], seen.counters[1::2], strict=True))
    key = KEYS["history"].at(shard, seen.suffix)
    yield from _versions(key, facts, content)
    recount = _Recount(key, seen, facts, content, legs)
    yield from recount.violations(counters)
    if facts["state"] != "scheduled" and not (facts["state"] == "cancelled" and not facts["released"]):
        yield from _parcels(key, counters, content, legs)
    tasks = [parcel for parcels in content.parcels.values() for parcel in parcels if parcel.left is not None]
    if facts["finished"] is None and facts["state"] == "released" and not tasks:
        why = "whether those who are open were sent to is not known"
        yield Violation("I7", key, "released, not over, without a task", "somebody at work on it", why=why)


def _versions(key: str, facts: Mapping[str, str | None], content: DeliverySnapshot) -> Iterator[Violation]:
    versions = [version_of(text) for text in content.outcomes.values()]
    last = int(facts["version"] or 0)
    if len(versions) != len(set(versions)) or max(versions, default=0) > last:
        found = f"{len(versions)} outcomes with {len(set(versions))} versions up to {max(versions)}"
        yield Violation("I13", key, found, f"one version each, up to {last}", why="which came first is not known")


def version_of(text: str) -> int:
    return int(text.split("|", 4)[3])


def status_of(content: DeliverySnapshot, name: str) -> Status:
    text = content.outcomes.get(name)
    return Status(text.split("|", 1)[0]) if text else Status.QUEUED


def _parcels(
    key: str, counters: Mapping[str, str], content: DeliverySnapshot, legs: Sequence[Leg]
) -> Iterator[Violation]:
    why = "a wrong number ends the delivery too early or never: cancel it, or send what is open anew"
    for leg in legs:
        told = int(counters.get(f"left:{leg.channel}", 0))
        parcels = content.parcels.get(leg.channel, [])
        lefts = [parcel.left for parcel in parcels if parcel.left is not None]
        if told != sum(lefts):
            yield Violation("I13", key, f"left:{leg.channel} is {told}", f"{sum(lefts)}, as its parcels say", why=why)
        # What is open in a parcel that has ended (expired, cancelled) ended with it; who is tried again is in the last.
        latest = {name: parcel for parcel in parcels for name in parcel.fields}
        still = sum(parcel.left is not None and status_of(content, name) in OPEN for name, parcel in latest.items())
        if still != sum(lefts):
            found = f"{leg.channel}: {sum(lefts)} left in its parcels"
            yield Violation("I13", key, found, f"{still}, as many are open", why=why)


@dataclass(frozen=True, slots=True)
class _Recount:
    """Counters by status and who was reached, counted anew from the outcomes."""

    key: str
    seen: HistorySnapshot
    facts: Mapping[str, str | None]
    content: DeliverySnapshot
    legs: Sequence[Leg]

    def violations(self, counters: Mapping[str, str]) -> Iterator[Violation]:
        told = {name: int(value) for name, value in counters.items() if name.startswith("n:") and int(value)}
        counted, reached = self._counted(), self._reached()
        bits = bytes.fromhex(self.seen.bits)
        marked = {n for n in range(len(bits) * 8) if bits[n // 8] & (128 >> n % 8)}
        zeros = dict.fromkeys(told.keys() - counted.keys(), 0)
        fields = counted | zeros | {"reached": len(reached)}
        arguments = (self.seen.suffix, self.facts["version"] or "", compact_json(fields), compact_json(sorted(reached)))
        mend = Repair("repair_recount", arguments)
        if told != counted:
            yield Violation("I13", self.key, f"counts {told}", f"{dict(counted)}", mend)
        if marked != reached or int(self.facts["reached"] or 0) != len(reached):
            found = f"reached {self.facts['reached']}, marked {_shown(marked)}"
            yield Violation("I13", self.key, found, f"{len(reached)}, {_shown(reached)}", mend)

    def _counted(self) -> dict[str, int]:
        counts: Counter[str] = Counter()
        for index, leg in enumerate(self.legs):
            for person in self.content.people:
                status = best(
                    [status_of(self.content, name) for name in self._fields(person, index, leg)] or [Status.QUEUED]
                )
                if status is not Status.QUEUED:
                    counts[f"n:{leg.channel}:{status}"] += 1
        return dict(counts)

    def _reached(self) -> set[int]:
        return {
            person.number
            for person in self.content.people
            for index, leg in enumerate(self.legs)
            if any(status_of(self.content, name) in REACHED for name in self._fields(person, index, leg))
        }

    @staticmethod
    def _fields(person: Person, index: int, leg: Leg) -> list[str]:
        return [outcome_field(person.id, leg.channel, contact) for contact in range(person.contacts[index])]


def _shown(numbers: set[int]) -> str:
    some = sorted(numbers)
    return f"{some[:10]}{' …' if len(some) > 10 else ''}"
