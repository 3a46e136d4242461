"""The invariants of a delivery: outcomes, counters, parcels, indexes and lifetime (I6, I7, I13, I16). Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from core.audit.invariants.answers import answer_violations, reminder_violations, wave_violations
from core.audit.invariants.invariant import Repair, Violation
from core.deliveries.histories.encoding import ChannelPlan, StoredRecipient
from core.deliveries.histories.parcels import outcome_field
from core.model.json_form import compact_json
from core.model.states import OPEN, REACHED, Status, best
from core.redis.constants import HISTORY_FACTS
from core.redis.keys import KEYS

_ABSENT, _WITHOUT_TTL, _WITH_TTL = range(3)


class HistorySnapshot(NamedTuple):
    """A row of lua/audit/functions/audit_histories.lua. Two equal rows: nothing changed between them."""

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
    """`left`: open entries as its task counts them, None without a task. `fields`: outcome fields of all entries."""

    left: int | None
    fields: Sequence[str]


@dataclass(slots=True)
class DeliverySnapshot:
    """The content of a delivery, read in pages. `outcomes`: field → stored text. `parcels`: by channel. `answers`: the
    fields of its question and answers.
    """

    people: list[StoredRecipient] = field(default_factory=list)
    outcomes: dict[str, str] = field(default_factory=dict)
    parcels: dict[str, list[ParcelSnapshot]] = field(default_factory=dict)
    answers: dict[str, str] = field(default_factory=dict)


def history_index_violations(shard: int, tenant: str, seen: HistorySnapshot, now: int) -> Iterator[Violation]:
    """Yield the violations of I6 and I16: a delivery is in the indexes of its state. `tenant`: under which an index
    names it, "" for its own.
    """
    facts = dict(zip(HISTORY_FACTS, seen.facts, strict=True))
    key, owner = KEYS["history"].at(shard, seen.suffix), facts["tenant"]
    repair = Repair("repair_history", (tenant or owner or "", seen.suffix))
    named = [name for name in ("listed", "live", "retained", "due") if getattr(seen, name) is not None]
    if owner is None or (tenant and owner != tenant):
        rest = [name for name in ("outcomes", "bitmap") if owner is None and getattr(seen, name)]
        named = [name for name in named if owner is None or name != "due"] + rest
        if named:
            rule = "I6" if named == ["due"] else "I16"
            yield Violation(
                rule, key, f"{'no delivery' if owner is None else f'of {owner}'}, in {named}", "in none", repair
            )
        return
    if facts["state"] is None or facts["due"] is None or facts["plan"] is None:
        yield Violation("I16", key, f"{facts}", "a delivery with state, due, plan", why="its former content is unknown")
        return
    yield from _due(key, seen, facts, now, repair)
    yield from _retention(key, seen, facts, repair)


def _due(
    key: str, seen: HistorySnapshot, facts: Mapping[str, str | None], now: int, repair: Repair
) -> Iterator[Violation]:
    wanted = float(facts["due"] or 0) if facts["state"] == "scheduled" else None
    score = None if seen.due is None else float(seen.due)
    if score != wanted:
        yield Violation("I6", key, f"{facts['state']}, in due at {score}", f"in due at {wanted}", repair)
    elif wanted is not None and wanted > now and seen.order == _ABSENT:
        yield Violation("I6", key, "scheduled, without its order key", "with it until it is due", repair)


def _retention(key: str, seen: HistorySnapshot, facts: Mapping[str, str | None], repair: Repair) -> Iterator[Violation]:
    is_over = facts["finished"] is not None
    ends = [
        name
        for name in ("history", "outcomes", "bitmap")
        if getattr(seen, name) == (_WITHOUT_TTL if is_over else _WITH_TTL)
    ]
    wrong = [f"{name} {'without' if is_over else 'with'} a TTL" for name in ends]
    if is_over != (seen.retained is not None):
        wrong.append("not retained" if is_over else "retained")
    if is_over == (seen.live is not None):
        wrong.append("among the unfinished" if is_over else "not among the unfinished")
    if seen.listed is None:
        wrong.append("not listed")
    if wrong:
        yield Violation(
            "I16", key, f"{'over' if is_over else facts['state']}, {', '.join(wrong)}", "none of it", repair
        )


def delivery_violations(
    shard: int, seen: HistorySnapshot, content: DeliverySnapshot, plans: Sequence[ChannelPlan]
) -> Iterator[Violation]:
    """Yield the violations of I7 and I13: outcomes, counters and parcels agree."""
    facts = dict(zip(HISTORY_FACTS, seen.facts, strict=True))
    counters = dict(zip(seen.counters[::2], seen.counters[1::2], strict=True))
    key = KEYS["history"].at(shard, seen.suffix)
    yield from _versions(key, facts, content)
    recount = _Recount(key, seen, facts, content, plans)
    yield from recount.violations(counters)
    yield from answer_violations(key, content.answers, len(content.people), recount.reached())
    yield from reminder_violations(key, content.answers, content.people, content.outcomes)
    channels = [one.channel for one in plans]
    yield from wave_violations(key, content.answers, content.people, content.outcomes, channels)
    if facts["state"] != "scheduled" and not (facts["state"] == "cancelled" and not facts["released"]):
        yield from _parcels(key, counters, content, plans)
    tasks = [parcel for parcels in content.parcels.values() for parcel in parcels if parcel.left is not None]
    if facts["finished"] is None and facts["state"] == "released" and not tasks:
        why = "whether the open recipients were sent to is unknown"
        yield Violation("I7", key, "released, not over, without a task", "a task for its open entries", why=why)


def _versions(key: str, facts: Mapping[str, str | None], content: DeliverySnapshot) -> Iterator[Violation]:
    versions = [version_of(text) for text in content.outcomes.values()]
    last = int(facts["version"] or 0)
    if len(versions) != len(set(versions)) or max(versions, default=0) > last:
        found = f"{len(versions)} outcomes with {len(set(versions))} versions up to {max(versions)}"
        yield Violation("I13", key, found, f"one version each, up to {last}", why="which came first is unknown")


def version_of(text: str) -> int:
    return int(text.split("|", 4)[3])


def time_of(text: str) -> int:
    """Return the ms at which a stored outcome was written."""
    return int(text.split("|", 3)[2])


def status_of(content: DeliverySnapshot, name: str) -> Status:
    text = content.outcomes.get(name)
    return Status(text.split("|", 1)[0]) if text else Status.QUEUED


def _parcels(
    key: str, counters: Mapping[str, str], content: DeliverySnapshot, plans: Sequence[ChannelPlan]
) -> Iterator[Violation]:
    why = "a wrong number ends the delivery too early or never: cancel it, or send the open part again"
    for plan in plans:
        counted = int(counters.get(f"left:{plan.channel}", 0))
        parcels = content.parcels.get(plan.channel, [])
        lefts = [parcel.left for parcel in parcels if parcel.left is not None]
        if counted != sum(lefts):
            yield Violation("I13", key, f"left:{plan.channel} is {counted}", f"{sum(lefts)}, as its parcels", why=why)
        # Open entries of a parcel that ended (expired, cancelled) ended with it; a retried entry is in its last parcel.
        latest = {name: parcel for parcel in parcels for name in parcel.fields}
        still = sum(parcel.left is not None and status_of(content, name) in OPEN for name, parcel in latest.items())
        if still != sum(lefts):
            found = f"{plan.channel}: {sum(lefts)} left in its parcels"
            yield Violation("I13", key, found, f"{still}, the number of open entries", why=why)


@dataclass(frozen=True, slots=True)
class _Recount:
    """Counters by status and the recipients reached, recounted from the outcomes."""

    key: str
    seen: HistorySnapshot
    facts: Mapping[str, str | None]
    content: DeliverySnapshot
    plans: Sequence[ChannelPlan]

    def violations(self, counters: Mapping[str, str]) -> Iterator[Violation]:
        stored = {name: int(value) for name, value in counters.items() if name.startswith("n:") and int(value)}
        counted, reached = self._counted(), self.reached()
        bits = bytes.fromhex(self.seen.bits)
        marked = {n for n in range(len(bits) * 8) if bits[n // 8] & (128 >> n % 8)}
        zeros = dict.fromkeys(stored.keys() - counted.keys(), 0)
        if stored == counted and marked == reached and int(self.facts["reached"] or 0) == len(reached):
            return
        fields = counted | zeros | {"reached": len(reached)}
        arguments = (self.seen.suffix, self.facts["version"] or "", compact_json(fields), compact_json(sorted(reached)))
        repair = Repair("repair_recount", arguments)
        if stored != counted:
            yield Violation("I13", self.key, f"counts {stored}", f"{dict(counted)}", repair)
        if marked != reached or int(self.facts["reached"] or 0) != len(reached):
            found = f"reached {self.facts['reached']}, marked {_shown(marked)}"
            yield Violation("I13", self.key, found, f"{len(reached)}, {_shown(reached)}", repair)

    def _counted(self) -> dict[str, int]:
        counts: Counter[str] = Counter()
        if not self.content.outcomes:
            return counts
        for index, plan in enumerate(self.plans):
            for person in self.content.people:
                status = best(
                    [status_of(self.content, name) for name in self._fields(person, index, plan)] or [Status.QUEUED]
                )
                if status is not Status.QUEUED:
                    counts[f"n:{plan.channel}:{status}"] += 1
        return dict(counts)

    def reached(self) -> set[int]:
        if not self.content.outcomes:
            return set()
        return {
            person.number
            for person in self.content.people
            for index, plan in enumerate(self.plans)
            if any(status_of(self.content, name) in REACHED for name in self._fields(person, index, plan))
        }

    @staticmethod
    def _fields(person: StoredRecipient, index: int, plan: ChannelPlan) -> list[str]:
        return [outcome_field(person.id, plan.channel, contact) for contact in range(person.contacts[index])]


def _shown(numbers: set[int]) -> str:
    some = sorted(numbers)
    return f"{some[:10]}{' …' if len(some) > 10 else ''}"
