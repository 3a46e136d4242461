"""The verdict on a soak: the service's book is compared with what the jobs have recorded. Pure."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sandbox.vacancies import Application
from tests.jobs.ledger import Call
from tests.jobs.soak.job_histories import JobHistory, resumes_of
from tests.jobs.soak.people import Pause
from tests.jobs.soak.plan import job_of, person_of

Frozen = Mapping[int, Sequence[tuple[float, float]]]
"""Port of a process → when it was frozen."""

_THAWED = 10.0
"""Seconds in which a process that was frozen makes the call that it had in hand."""

UNIT, EFFECT = "unit:", "effect:apply "


@dataclass(frozen=True)
class Recorded:
    """The vacancies of a job by what it has recorded of them."""

    done: frozenset[str]
    unknown: frozenset[str]
    open: frozenset[str]

    @classmethod
    def of(cls, history: JobHistory) -> "Recorded":
        """`open`: an effect that has not ended, or an item that failed."""
        statuses = history.statuses()
        units = {name.removeprefix(UNIT): status for name, status in statuses.items() if name.startswith(UNIT)}
        effects = {name.removeprefix(EFFECT): status for name, status in statuses.items() if name.startswith(EFFECT)}
        done = frozenset(one for one, status in units.items() if status == "done" and effects.get(one) == "done")
        unknown = frozenset(one for one, status in units.items() if status == effects.get(one) == "unknown")
        return cls(done, unknown, frozenset(units.keys() | effects.keys()) - done - unknown)


def book_findings(book: Iterable[Application], recorded: Mapping[int, Recorded]) -> list[str]:
    """Every vacancy was applied to exactly once, or is unknown."""
    times = Counter((one.person, one.vacancy) for one in book if not one.is_repeat)
    applied: dict[str, set[str]] = defaultdict(set)
    for person, vacancy in times:
        applied[person].add(vacancy)
    found = [f"{person} has applied to {vacancy} {n} times" for (person, vacancy), n in times.items() if n > 1]
    wanted = frozenset[str]().union(*(one.done | one.unknown for one in recorded.values()))
    for user, one in recorded.items():
        found += [f"{job_of(user)}: {what}" for what in _differences(one, applied[person_of(user)], wanted)]
    return found


def _differences(recorded: Recorded, applied: Collection[str], wanted: frozenset[str]) -> Iterator[str]:
    for vacancy in sorted(recorded.done - set(applied)):
        yield f"{vacancy} is done, and the service has no application"
    for vacancy in sorted(set(applied) - recorded.done - recorded.unknown):
        yield f"the service has an application to {vacancy}, which is not recorded"
    for vacancy in sorted(recorded.open):
        yield f"{vacancy} is neither done nor unknown"
    for vacancy in sorted(wanted - recorded.done - recorded.unknown - recorded.open):
        yield f"{vacancy} was never applied to"


def repeats(book: Iterable[Application], frozen: Frozen, lease: float) -> tuple[list[str], int]:
    """Calls that the service has refused because it had the application: those that may not happen, and how many a
    process made that was frozen with the call in hand for longer than the lease.
    """
    again = [one for one in book if one.is_repeat]
    wrong = [one for one in again if not _was_in_hand(one, frozen.get(one.port, ()), lease)]
    return [f"{one.person} applied again to {one.vacancy}" for one in wrong], len(again) - len(wrong)


def _was_in_hand(call: Application, frozen: Sequence[tuple[float, float]], lease: float) -> bool:
    return any(end - begin > lease and 0 <= call.at - end < _THAWED for begin, end in frozen)


def pause_findings(book: Iterable[Application], pauses: Iterable[Pause]) -> list[str]:
    """After the answer to a pause only the application in hand may arrive."""
    times: dict[str, list[float]] = defaultdict(list)
    for one in book:
        if not one.is_repeat:
            times[one.person].append(one.at)
    return [
        f"{job_of(pause.user)} applied {late} times after it was paused"
        for pause in pauses
        if (late := sum(pause.begin < at < pause.end for at in times[person_of(pause.user)])) > 1
    ]


def resume_findings(histories: Mapping[int, JobHistory], resumed: Mapping[int, int]) -> list[str]:
    """A pause of a user ends only when the user lets the job go on."""
    return [
        f"{history.name} went on {times} times after the user's pause, and the user let it {resumed.get(user, 0)} times"
        for user, history in histories.items()
        if (times := resumes_of(history, "user")) > resumed.get(user, 0)
    ]


def round_findings(
    keys: Mapping[Call, Sequence[str]], ended: Mapping[int, int], tickets: Mapping[int, int]
) -> list[str]:
    """Whatever a round does outside took place once, with the tally of its state, and so each signal was received once.
    `ended`: user → how many iterations have ended; `tickets`: user → how many signals were sent.
    """
    found = [
        f"round.{who}: {name!r} took place with {len(set(of))} keys"
        for (who, name), of in keys.items()
        if len(set(of)) > 1
    ]
    done: dict[str, set[str]] = defaultdict(set)
    for who, name in keys:
        done[who].add(name)
    for user, iterations in ended.items():
        wanted = {name for number in range(iterations) for name in _names_of(number)}
        wanted |= {f"ticket {number}" for number in range(1, tickets.get(user, 0) + 1)}
        begun = {*wanted, *_names_of(iterations), *_names_of(iterations + 1)}
        found += [f"round.{user}: {name!r} is missing" for name in sorted(wanted - done[str(user)])]
        found += [f"round.{user}: {name!r} is too much" for name in sorted(done[str(user)] - begun)]
    return found


def _names_of(number: int) -> Iterator[str]:
    """Emit what a round does in an iteration."""
    for name in ("before", "branch", "later", "leg"):
        yield f"{name} {number}"
    yield f"after {number} {number + 1}"
