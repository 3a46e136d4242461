"""Checks the journal of a soak: no task is lost, doubled or out of order. Pure.

A run is *accepted* when the server accepted its settle. A task may run again after its lease was lost, with a higher
token; from then on the server must reject every call with the earlier token.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tests.system.soak.journal import Line
from tests.system.soak.plan import PARKED

STALE = "stale"
_NEVER = float("inf")


@dataclass
class Run:
    """One attempt of a task. `end` (ns): when its handler returned. `replies`: of each settle, when it was sent."""

    token: int
    task: str
    number: str
    step: int
    claimed: int
    start: int
    end: float = _NEVER
    result: str = ""
    replies: list[tuple[int, str]] = field(default_factory=list)
    ended_it: bool = False
    is_released: bool = False

    @property
    def is_accepted(self) -> bool:
        return self.ended_it or any(reply != STALE for _, reply in self.replies)


@dataclass
class Put:
    """A task as it was planned. `known` (ms): when its put was acknowledged."""

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
    """The findings and totals of a soak. `repeats`: runs after a lost lease, which are allowed."""

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


def check(lines: Iterable[Line], lease_ms: int) -> Verdict:
    """Checks the lines of all journals, ordered by time. `lease_ms`: the least duration of a lease."""
    journal = _JournalReader()
    for line in lines:
        getattr(journal, f"_{line['what']}")(line)
    puts = list(journal.puts.values())
    for put in puts:
        put.runs.sort(key=lambda run: run.token)
        put.ends = journal.ends.get(put.task, [])
    verdict = Verdict(tasks=len(puts), runs=len(journal.runs), calls=len(journal.calls))
    verdict.ends = Counter(end for put in puts for end in put.ends)
    verdict.repeats = sum(not run.is_accepted for put in puts for run in put.runs if run.token < put.last_token)
    verdict.lost += [
        *_lost(puts),
        *(f"call {number} had no answer" for number, is_answered in journal.calls.items() if not is_answered),
    ]
    verdict.doubled += [*journal.doubled, *_doubled(puts, lease_ms)]
    verdict.out_of_order += [*_out_of_time(puts), *_out_of_lane(puts)]
    return verdict


class _JournalReader:
    """Reads the journal into tasks and runs. Each kind of line has a method of its name."""

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
            self.doubled.append(f"token {run.token} was issued twice: {self.runs[run.token].number}, {run.number}")
        self.runs[run.token] = run
        self.puts[run.number].runs.append(run)

    def _end(self, line: Line) -> None:
        run = self.runs[line["token"]]
        run.end, run.result = line["at"], line["result"]

    def _settled(self, line: Line) -> None:
        """Calls settle too; they are checked by their answers."""
        if run := self.runs.get(line["token"]):
            run.replies.append((line["sent"], line["reply"]))

    def _releasing(self, line: Line) -> None:
        """Written before the call is sent, so the server may not have received it."""
        if run := self.runs.get(line["token"]):
            run.is_released = True

    def _ended(self, line: Line) -> None:
        """A task may end before its put was acknowledged."""
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
            if run.replies and run.is_accepted and later.step <= run.step:
                yield f"{put.number}: step {run.step} was accepted and done again by token {later.token}"


def _doubled(puts: Iterable[Put], lease_ms: int) -> Iterator[str]:
    for put in puts:
        if len(put.ends) > 1:
            yield f"{put.number} ended {len(put.ends)} times: {put.ends}"
        if others := {run.task for run in put.runs} - {put.task} if put.task else set():
            yield f"{put.number} was put as {put.task} and ran as {others}"
        yield from _accepted_once(put)
        yield from _within_leases(put, lease_ms)


def _accepted_once(put: Put) -> Iterator[str]:
    """A token is accepted only until a newer token of the task was issued."""
    for run in put.runs:
        later = [other for other in put.runs if other.token > run.token]
        if run.ended_it and later:
            yield f"{put.number} was ended by token {run.token} and claimed again with {later[0].token}"
        for sent, reply in run.replies:
            if reply != STALE and any(other.start < sent for other in later):
                yield f"{put.number}: token {run.token} was stale and got {reply}"


def _within_leases(put: Put, lease_ms: int) -> Iterator[str]:
    """No task is claimed again within a lease, unless it was released, retried or buried."""
    for run, later in pairwise(put.runs):
        is_returned = run.is_released or run.result in ("Retry", "Bury")
        if not is_returned and later.claimed - run.claimed < lease_ms:
            yield f"{put.number} was claimed again {later.claimed - run.claimed} ms after token {run.token} claimed it"


def _out_of_time(puts: Iterable[Put]) -> Iterator[str]:
    for put in puts:
        for run in put.runs:
            if run.claimed < put.due:
                yield f"{put.number} was claimed {put.due - run.claimed} ms before it was due"
            if put.expires and run.claimed >= put.expires:
                yield f"{put.number} was claimed {run.claimed - put.expires} ms after it expired"


def _out_of_lane(puts: Iterable[Put]) -> Iterator[str]:
    lanes: dict[tuple[str, str], list[Put]] = defaultdict(list)
    for put in puts:
        if put.lane:
            lanes[put.tube, put.lane].append(put)
    for members in lanes.values():
        yield from _one_at_a_time(members)
        yield from _in_order(members)


def _one_at_a_time(members: Sequence[Put]) -> Iterator[str]:
    """In the order of the tokens, which is the order of the claims: a task runs until its lane may continue."""
    runs = sorted(((run, put) for put in members for run in put.runs), key=lambda pair: pair[0].token)
    for (run, put), (follower, other) in pairwise(runs):
        if put is other:
            continue
        if run.is_accepted and run.end > follower.start:
            yield f"{other.number} began while {put.number} of its lane was running"
        if put.last_token > follower.token and not _lane_may_continue(run, put):
            yield f"{other.number} began before {put.number} of its lane was over"


def _lane_may_continue(run: Run, put: Put) -> bool:
    """The lane continues without a task that is buried, or whose tube parks retries. The reply may have been lost."""
    return run.result == "Bury" or (put.tube == PARKED and run.result == "Retry")


def _in_order(members: Sequence[Put]) -> Iterator[str]:
    """First runs are in the order in which the tasks entered the lane: at their put, or when they fell due.

    A task whose due time had passed before its put (the server was down) entered at its put.
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
        both_deferred = earlier.due < later.due and max(earlier.known, later.known) < later.due
        if both_deferred and earlier.runs[0].token > later.runs[0].token:
            yield f"{later.number} began before {earlier.number}, which was due first"
