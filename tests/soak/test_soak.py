"""The soak in its short form, and the checker against journals in which something went wrong."""

from pathlib import Path
from typing import Any

import pytest

from tests.soak.checker import Verdict, judge
from tests.soak.journal import Line
from tests.soak.plan import PARKED, STRICT
from tests.soak.soak import LEASE_MS, Plan, Soak

SECONDS = 50
SEED = 20261121


@pytest.mark.timeout(240)
@pytest.mark.row("K-12", "K-13", "K-17", "K-24", "K-30", "K-31", "K-32")
async def test_whatever_is_killed_frozen_or_cut_off_nothing_is_lost_doubled_or_out_of_order(tmp_path: Path) -> None:
    """Longer: `./ada soak --minutes 30`."""
    said: list[str] = []
    outcome = await Soak(tmp_path / "soak", Plan(SECONDS, SEED), said.append).run()
    assert outcome.is_good, "\n".join([*said, *outcome.findings()[:50], str(outcome.verdict)])
    for trouble in ("server: kill -9", "frozen", "takes its place", "pubsub", "SCRIPT FLUSH", "DEBUG SLEEP"):
        assert any(trouble in line for line in said)
    assert outcome.verdict.tasks > 500
    assert outcome.verdict.calls > 50
    assert outcome.verdict.repeats > 5
    assert set(outcome.verdict.ends) == {"done", "failed", "cancelled", "expired"}


class Told:
    """A journal that a test writes. Tasks are put, run and ended in the order of the calls."""

    def __init__(self) -> None:
        self._lines: list[Line] = []
        self._tokens = 0
        self._claimed = 10**9

    def note(self, what: str, **facts: Any) -> None:
        at = len(self._lines) + 1
        self._lines.append({"what": what, "at": at, "ms": at * 1000, **facts})

    def put(
        self, n: str, *, tube: str = STRICT, plan: tuple[str, ...] = ("ok",), due: int = 0, expires: int = 0
    ) -> None:
        self.note("try", n=n, tube=tube, lane="lane", plan=plan, due_ms=due, expires_ms=expires)
        self.note("put", n=n, task=f"0.{n}")

    def start(self, n: str, step: int = 0, claimed: int | None = None) -> int:
        """A lease after the last one, unless it is said when."""
        self._tokens += 1
        self._claimed += LEASE_MS
        claimed = self._claimed if claimed is None else claimed
        self.note("start", task=f"0.{n}", token=self._tokens, n=n, step=step, claimed=claimed)
        return self._tokens

    def end(self, token: int, result: str = "Done", told: str = "done") -> None:
        self.note("end", token=token, result=result)
        self.note("settled", token=token, result="", sent=len(self._lines), told=told)

    def ended(self, n: str, token: int, state: str = "done") -> None:
        self.note("ended", task=f"0.{n}", state=state, answer=str(token))

    def run(self, n: str) -> None:
        token = self.start(n)
        self.end(token)
        self.ended(n, token)

    @property
    def verdict(self) -> Verdict:
        return judge(self._lines, LEASE_MS)


@pytest.fixture
def told() -> Told:
    """Tasks a and b of one lane are there."""
    journal = Told()
    for n in "ab":
        journal.put(n)
    return journal


def test_what_went_well_is_good(told: Told) -> None:
    for n in "ab":
        told.run(n)
    assert (told.verdict.is_good, told.verdict.ends, told.verdict.repeats) == (True, {"done": 2}, 0)


def test_a_repeat_after_a_lost_lease_is_good_and_counted(told: Told) -> None:
    frozen = told.start("a")
    for n in "ab":
        told.run(n)
    told.end(frozen, told="stale")
    assert (told.verdict.is_good, told.verdict.repeats) == (True, 1)


def test_what_was_put_and_has_no_end_is_lost(told: Told) -> None:
    told.run("a")
    assert told.verdict.lost == ["b was put and has no end"]


def test_another_end_than_its_plan_is_lost(told: Told) -> None:
    told.run("a")
    told.ended("b", 0, "expired")
    assert [line[:18] for line in told.verdict.lost] == ["b ended as expired"]


def test_two_ends_are_doubled(told: Told) -> None:
    for n in "ab":
        told.run(n)
    told.ended("b", 2)
    assert told.verdict.doubled == ["b ended 2 times: ['done', 'done']"]


def test_an_old_token_that_is_believed_is_doubled(told: Told) -> None:
    frozen = told.start("a")
    told.start("a")
    told.end(frozen)
    told.ended("a", frozen)
    told.run("b")
    assert sorted(told.verdict.doubled) == [
        "a was ended by token 1 and given out with 2",
        "a: token 1 was old and told done",
    ]


def test_what_is_given_out_within_the_lease_of_another_is_doubled(told: Told) -> None:
    told.start("a", claimed=5000)
    token = told.start("a", claimed=5001)
    told.end(token)
    told.ended("a", token)
    told.run("b")
    assert told.verdict.doubled == ["a was given out 1 ms after token 1 took it"]


def test_what_was_given_back_may_be_given_out_at_once(told: Told) -> None:
    told.note("releasing", token=told.start("a", claimed=5000))
    token = told.start("a", claimed=5001)
    told.end(token)
    told.ended("a", token)
    told.run("b")
    assert told.verdict.is_good


def test_a_believed_step_that_is_done_again_is_lost(told: Told) -> None:
    told.end(told.start("a"), "Retry", "waiting")
    for n in "ab":
        told.run(n)
    assert told.verdict.lost == ["a: step 0 was believed and done again by token 2"]


def test_two_of_a_lane_at_work_at_once_are_out_of_order(told: Told) -> None:
    first, second = told.start("a"), told.start("b")
    for n, token in (("a", first), ("b", second)):
        told.end(token)
        told.ended(n, token)
    assert told.verdict.out_of_order == ["b began while a of its lane was at work"]


def test_one_that_goes_before_another_is_over_is_out_of_order_unless_that_one_is_parked() -> None:
    for tube, expected in ((STRICT, ["b began before a of its lane was over"]), (PARKED, [])):
        told = Told()
        told.put("a", tube=tube, plan=("retry", "ok"))
        told.put("b", tube=tube)
        told.end(told.start("a"), "Retry", "waiting")
        told.run("b")
        token = told.start("a", step=1)
        told.end(token)
        told.ended("a", token)
        assert told.verdict.out_of_order == expected


def test_one_that_was_put_later_and_begins_first_is_out_of_order(told: Told) -> None:
    for n in "ba":
        told.run(n)
    assert told.verdict.out_of_order == ["b began before a, which was put first"]


def test_a_deferred_one_begins_after_those_that_were_in_its_lane_when_it_was_due() -> None:
    told = Told()
    told.put("deferred", due=10_000)
    told.put("a")
    told.run("deferred")
    told.run("a")
    assert told.verdict.out_of_order == ["deferred was due when a was in the lane, and began before it"]


def test_of_two_that_waited_the_one_that_was_due_first_begins_first() -> None:
    told = Told()
    told.put("a", due=20_000)
    told.put("b", due=21_000)
    for n in "ba":
        told.run(n)
    assert told.verdict.out_of_order == ["b began before a, which was due first"]


def test_what_is_taken_before_it_is_due_or_after_it_expired_is_out_of_order() -> None:
    told = Told()
    told.put("a", due=2000)
    told.put("b", due=2000, expires=3000)
    for n, claimed in (("a", 1999), ("b", 3000)):
        token = told.start(n, claimed=claimed)
        told.end(token)
        told.ended(n, token)
    assert told.verdict.out_of_order == [
        "a was taken 1 ms before it was due",
        "b was taken 0 ms after it expired",
    ]


def test_a_call_without_an_answer_is_lost_and_one_with_anothers_is_doubled() -> None:
    told = Told()
    for n in "ab":
        told.note("call", n=n)
    told.note("answered", n="a", rightly=False)
    assert (told.verdict.lost, told.verdict.doubled) == (["call b had no answer"], ["call a got the answer of another"])
