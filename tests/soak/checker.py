"""What the journal of a soak proves: nothing lost, nothing doubled, nothing out of order. Pure.

A run is *believed* when the server took its settle. A task may run again after its lease was lost, with a higher token;
then the earlier run is not believed any more, and whatever it says later changes nothing.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tests.soak.journal import Line
from tests.soak.plan import PARKED

STALE = "stale"
_NEVER = float("inf")


@dataclass
class Run:
    """One holder's work on a task. `end` ns: when its handler came back; `told`: what the server answered."""

    token: int
    task: str
    number: str
    step: int
    claimed: int
    start: int
    end: float = _NEVER
    result: str = ""
    told: list[tuple[int, str]] = field(default_factory=list)
    ended_it: bool = False
    is_given_back: bool = False

    @property
    def is_believed(self) -> bool:
        return self.ended_it or any(answer != STALE for _, answer in self.told)


@dataclass
class Put:
    """A task as it was meant. `known` ms: when it was there for sure."""

    number: str
    tube: str
    lane: str
    plan: Sequence[str]
    due: int
    expires: int
    task: str = ""
    known: float = _NEVER
    is_cancelled: bool = False
    ends: list[str] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)

    @property
    def allowed_ends(self) -> set[str]:
        ends = {"failed" if self.plan[-1] == "fail" else "done"}
        ends |= {"cancelled"} if self.is_cancelled else set()
        return ends | ({"expired"} if self.expires else set())

    @property
    def last_token(self) -> int:
        return max((run.token for run in self.runs), default=0)


@dataclass
class Verdict:
    """`repeats`: runs after a lost lease, which are allowed."""

    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    out_of_order: list[str] = field(default_factory=list)
    tasks: int = 0
    runs: int = 0
    repeats: int = 0
    calls: int = 0
    ends: Counter[str] = field(default_factory=Counter)

    @property
    def is_good(self) -> bool:
        return not (self.lost or self.doubled or self.out_of_order)

    def __str__(self) -> str:
        ends = ", ".join(f"{count} {state}" for state, count in sorted(self.ends.items()))
        return (
            f"lost {len(self.lost)}, doubled {len(self.doubled)}, out of order {len(self.out_of_order)}: "
            f"{self.tasks} tasks ({ends}), {self.runs} runs, {self.repeats} of them after a lost lease, "
            f"{self.calls} calls"
        )


def judge(lines: Iterable[Line], lease_ms: int) -> Verdict:
    """The lines of all journals, in the order of time. `lease_ms`: so long at least a task belongs to who took it."""
    book = _Book()
    for line in lines:
        getattr(book, f"_{line['what']}")(line)
    puts = list(book.puts.values())
    for put in puts:
        put.runs.sort(key=lambda run: run.token)
        put.ends = book.ends.get(put.task, [])
    verdict = Verdict(tasks=len(puts), runs=len(book.runs), calls=len(book.calls))
    verdict.ends = Counter(end for put in puts for end in put.ends)
    verdict.repeats = sum(not run.is_believed for put in puts for run in put.runs if run.token < put.last_token)
    verdict.lost += [*_lost(puts), *(f"call {number} had no answer" for number, told in book.calls.items() if not told)]
    verdict.doubled += [*book.doubled, *_doubled(puts, lease_ms)]
    verdict.out_of_order += [*_out_of_time(puts), *_out_of_lane(puts)]
    return verdict


class _Book:
    """The journal, read into tasks and runs."""

    def __init__(self) -> None:
        self.puts: dict[str, Put] = {}
        self.runs: dict[int, Run] = {}
        self.calls: dict[str, bool] = {}
        self.doubled: list[str] = []
        self.ends: dict[str, list[str]] = defaultdict(list)

    def _try(self, line: Line) -> None:
        facts = line["tube"], line["lane"], line["plan"], line["due_ms"], line["expires_ms"]
        self.puts[line["n"]] = Put(line["n"], *facts)

    def _put(self, line: Line) -> None:
        put = self.puts[line["n"]]
        put.task, put.known = line["task"], line["ms"]

    def _cancel(self, line: Line) -> None:
        self.puts[line["n"]].is_cancelled = True

    def _start(self, line: Line) -> None:
        facts = line["task"], line["n"], line["step"], line["claimed"], line["at"]
        run = Run(line["token"], *facts)
        if run.token in self.runs:
            self.doubled.append(f"token {run.token} was given twice: {self.runs[run.token].number}, {run.number}")
        self.runs[run.token] = run
        self.puts[run.number].runs.append(run)

    def _end(self, line: Line) -> None:
        run = self.runs[line["token"]]
        run.end, run.result = line["at"], line["result"]

    def _settled(self, line: Line) -> None:
        """Calls settle, too; they are judged by their answers."""
        if run := self.runs.get(line["token"]):
            run.told.append((line["sent"], line["told"]))

    def _releasing(self, line: Line) -> None:
        """Noted before it is said: whether the server heard it is not known."""
        if run := self.runs.get(line["token"]):
            run.is_given_back = True

    def _ended(self, line: Line) -> None:
        """A task may end before its putter heard that it was put."""
        self.ends[line["task"]].append(line["state"])
        if line["answer"].isdecimal() and (run := self.runs.get(int(line["answer"]))):
            run.ended_it = True

    def _call(self, line: Line) -> None:
        self.calls[line["n"]] = False

    def _answered(self, line: Line) -> None:
        self.calls[line["n"]] = True
        if not line["rightly"]:
            self.doubled.append(f"call {line['n']} got the answer of another")


def _lost(puts: Iterable[Put]) -> Iterator[str]:
    for put in puts:
        if put.task and not put.ends:
            yield f"{put.number} was put and has no end"
        for end in set(put.ends) - put.allowed_ends:
            yield f"{put.number} ended as {end}, not as {put.allowed_ends}"
        for run, later in pairwise(put.runs):
            if run.told and run.is_believed and later.step <= run.step:
                yield f"{put.number}: step {run.step} was believed and done again by token {later.token}"


def _doubled(puts: Iterable[Put], lease_ms: int) -> Iterator[str]:
    for put in puts:
        if len(put.ends) > 1:
            yield f"{put.number} ended {len(put.ends)} times: {put.ends}"
        if others := {run.task for run in put.runs} - {put.task} if put.task else set():
            yield f"{put.number} was put as {put.task} and ran as {others}"
        yield from _beliefs(put)
        yield from _within_leases(put, lease_ms)


def _beliefs(put: Put) -> Iterator[str]:
    """A holder is believed only as long as nobody holds the task after him."""
    for run in put.runs:
        later = [other for other in put.runs if other.token > run.token]
        if run.ended_it and later:
            yield f"{put.number} was ended by token {run.token} and given out with {later[0].token}"
        for sent, answer in run.told:
            if answer != STALE and any(other.start < sent for other in later):
                yield f"{put.number}: token {run.token} was old and told {answer}"


def _within_leases(put: Put, lease_ms: int) -> Iterator[str]:
    """Nobody gets what another has: not before his lease may be over, unless he gave it back or said `not yet`."""
    for run, later in pairwise(put.runs):
        is_let_go = run.is_given_back or run.result in ("Retry", "Bury")
        if not is_let_go and later.claimed - run.claimed < lease_ms:
            yield f"{put.number} was given out {later.claimed - run.claimed} ms after token {run.token} took it"


def _out_of_time(puts: Iterable[Put]) -> Iterator[str]:
    for put in puts:
        for run in put.runs:
            if run.claimed < put.due:
                yield f"{put.number} was taken {put.due - run.claimed} ms before it was due"
            if put.expires and run.claimed >= put.expires:
                yield f"{put.number} was taken {run.claimed - put.expires} ms after it expired"


def _out_of_lane(puts: Iterable[Put]) -> Iterator[str]:
    lanes: dict[tuple[str, str], list[Put]] = defaultdict(list)
    for put in puts:
        if put.lane:
            lanes[put.tube, put.lane].append(put)
    for members in lanes.values():
        yield from _one_at_a_time(members)
        yield from _in_order(members)


def _one_at_a_time(members: Sequence[Put]) -> Iterator[str]:
    """By the tokens, which are given in the order of the claims: a task goes on until its lane may leave it."""
    runs = sorted(((run, put) for put in members for run in put.runs), key=lambda pair: pair[0].token)
    for (run, put), (follower, other) in pairwise(runs):
        if put is other:
            continue
        if run.is_believed and run.end > follower.start:
            yield f"{other.number} began while {put.number} of its lane was at work"
        if put.last_token > follower.token and not _may_be_left(run, put):
            yield f"{other.number} began before {put.number} of its lane was over"


def _may_be_left(run: Run, put: Put) -> bool:
    """Buried, or parked by its tube's choice: its lane goes on without it. It may be so although nobody was told."""
    return run.result == "Bury" or (put.tube == PARKED and run.result == "Retry")


def _in_order(members: Sequence[Put]) -> Iterator[str]:
    """First runs are in the order in which the tasks entered the lane: at their put, or when they were due. What came
    so late (the server was down) that its own moment had passed entered at its put.
    """
    begun = [put for put in members if put.runs]
    at_once = [put for put in begun if not put.due]
    for earlier, later in pairwise(at_once):
        if earlier.runs[0].token > later.runs[0].token:
            yield f"{later.number} began before {earlier.number}, which was put first"
    deferred = sorted((put for put in begun if put.due), key=lambda put: put.due)
    known = [put.known for put in at_once]
    for put in deferred:
        before = at_once[: bisect_left(known, put.due)] if known else []
        if before and before[-1].runs[0].token > put.runs[0].token:
            yield f"{put.number} was due when {before[-1].number} was in the lane, and began before it"
    for earlier, later in pairwise(deferred):
        both_waited = earlier.due < later.due and max(earlier.known, later.known) < later.due
        if both_waited and earlier.runs[0].token > later.runs[0].token:
            yield f"{later.number} began before {earlier.number}, which was due first"
