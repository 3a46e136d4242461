"""The soak in its short form, and the checker on journals with errors."""

from pathlib import Path
from typing import Any

import pytest

from tests.system.soak.checker import Verdict, check
from tests.system.soak.journal import Line
from tests.system.soak.plan import PARKED, STRICT
from tests.system.soak.soak import LEASE_MS, Plan, Soak

SECONDS, LONG_SECONDS = 15, 300
SEED = 20261121


@pytest.mark.timeout(600)
async def test_faults_lose_double_and_reorder_nothing(tmp_path: Path, long_form: bool) -> None:
    """For longer soaks: `./ada soak --minutes 30`."""
    log: list[str] = []
    plan = Plan(LONG_SECONDS if long_form else SECONDS, SEED)
    outcome = await Soak(tmp_path / "soak", plan, log.append).run()
    assert outcome.is_good, "\n".join([*log, *outcome.findings()[:50], str(outcome.verdict)])
    for fault in ("server: kill -9", "frozen", "takes its place", "pubsub", "FUNCTION FLUSH", "DEBUG SLEEP"):
        assert any(fault in line for line in log)
    assert outcome.verdict.tasks > 200
    assert outcome.verdict.calls > 20
    assert outcome.verdict.repeats > 1
    assert set(outcome.verdict.ends) == {"done", "failed", "cancelled", "expired"}


class WrittenJournal:
    """A journal that a test writes. Its lines are in the order of the calls."""

    def __init__(self) -> None:
        self._lines: list[Line] = []
        self._tokens = 0
        self._claimed = 10**9

    def write(self, what: str, **facts: Any) -> None:
        at = len(self._lines) + 1
        self._lines.append({"what": what, "at": at, "ms": at * 1000, **facts})

    def put(
        self, n: str, *, tube: str = STRICT, plan: tuple[str, ...] = ("ok",), due: int = 0, expires: int = 0
    ) -> None:
        self.write("try", n=n, tube=tube, lane="lane", plan=plan, due_ms=due, expires_ms=expires)
        self.write("put", n=n, task=f"0.{n}")

    def start(self, n: str, step: int = 0, claimed: int | None = None) -> int:
        """The claim is one lease after the last one, unless `claimed` is given."""
        self._tokens += 1
        self._claimed += LEASE_MS
        claimed = self._claimed if claimed is None else claimed
        self.write("start", task=f"0.{n}", token=self._tokens, n=n, step=step, claimed=claimed)
        return self._tokens

    def end(self, token: int, result: str = "Done", reply: str = "done") -> None:
        self.write("end", token=token, result=result)
        self.write("settled", token=token, result="", sent=len(self._lines), reply=reply)

    def ended(self, n: str, token: int, state: str = "done") -> None:
        self.write("ended", task=f"0.{n}", state=state, answer=str(token))

    def run(self, n: str) -> None:
        token = self.start(n)
        self.end(token)
        self.ended(n, token)

    @property
    def verdict(self) -> Verdict:
        return check(self._lines, LEASE_MS)


@pytest.fixture
def journal() -> WrittenJournal:
    """Tasks a and b of one lane were put."""
    journal = WrittenJournal()
    for n in "ab":
        journal.put(n)
    return journal


def test_a_journal_without_errors_is_good(journal: WrittenJournal) -> None:
    for n in "ab":
        journal.run(n)
    assert (journal.verdict.is_good, journal.verdict.ends, journal.verdict.repeats) == (True, {"done": 2}, 0)


def test_a_repeat_after_a_lost_lease_is_good_and_counted(journal: WrittenJournal) -> None:
    frozen = journal.start("a")
    for n in "ab":
        journal.run(n)
    journal.end(frozen, reply="stale")
    assert (journal.verdict.is_good, journal.verdict.repeats) == (True, 1)


def test_a_task_without_an_end_is_lost(journal: WrittenJournal) -> None:
    journal.run("a")
    assert journal.verdict.lost == ["b was put and has no end"]


def test_a_task_with_another_end_than_planned_is_lost(journal: WrittenJournal) -> None:
    journal.run("a")
    journal.ended("b", 0, "expired")
    assert [line[:18] for line in journal.verdict.lost] == ["b ended as expired"]


def test_a_task_with_two_ends_is_doubled(journal: WrittenJournal) -> None:
    for n in "ab":
        journal.run(n)
    journal.ended("b", 2)
    assert journal.verdict.doubled == ["b ended 2 times: ['done', 'done']"]


def test_a_stale_token_that_is_accepted_is_doubled(journal: WrittenJournal) -> None:
    frozen = journal.start("a")
    journal.start("a")
    journal.end(frozen)
    journal.ended("a", frozen)
    journal.run("b")
    assert sorted(journal.verdict.doubled) == [
        "a was ended by token 1 and claimed again with 2",
        "a: token 1 was stale and got done",
    ]


def test_a_claim_within_the_lease_of_another_is_doubled(journal: WrittenJournal) -> None:
    journal.start("a", claimed=5000)
    token = journal.start("a", claimed=5001)
    journal.end(token)
    journal.ended("a", token)
    journal.run("b")
    assert journal.verdict.doubled == ["a was claimed again 1 ms after token 1 claimed it"]


def test_a_released_task_may_be_claimed_at_once(journal: WrittenJournal) -> None:
    journal.write("releasing", token=journal.start("a", claimed=5000))
    token = journal.start("a", claimed=5001)
    journal.end(token)
    journal.ended("a", token)
    journal.run("b")
    assert journal.verdict.is_good


def test_an_accepted_step_that_is_done_again_is_lost(journal: WrittenJournal) -> None:
    journal.end(journal.start("a"), "Retry", "waiting")
    for n in "ab":
        journal.run(n)
    assert journal.verdict.lost == ["a: step 0 was accepted and done again by token 2"]


def test_two_running_tasks_of_a_lane_are_out_of_order(journal: WrittenJournal) -> None:
    first, second = journal.start("a"), journal.start("b")
    for n, token in (("a", first), ("b", second)):
        journal.end(token)
        journal.ended(n, token)
    assert journal.verdict.out_of_order == ["b began while a of its lane was running"]


def test_a_task_that_begins_before_the_one_ahead_is_over_is_out_of_order_unless_that_one_is_parked() -> None:
    for tube, expected in ((STRICT, ["b began before a of its lane was over"]), (PARKED, [])):
        journal = WrittenJournal()
        journal.put("a", tube=tube, plan=("retry", "ok"))
        journal.put("b", tube=tube)
        journal.end(journal.start("a"), "Retry", "waiting")
        journal.run("b")
        token = journal.start("a", step=1)
        journal.end(token)
        journal.ended("a", token)
        assert journal.verdict.out_of_order == expected


def test_a_task_that_was_put_later_and_begins_first_is_out_of_order(journal: WrittenJournal) -> None:
    for n in "ba":
        journal.run(n)
    assert journal.verdict.out_of_order == ["b began before a, which was put first"]


def test_a_deferred_task_begins_after_those_in_its_lane_when_it_fell_due() -> None:
    journal = WrittenJournal()
    journal.put("deferred", due=10_000)
    journal.put("a")
    journal.run("deferred")
    journal.run("a")
    assert journal.verdict.out_of_order == ["deferred was due when a was in the lane, and began before it"]


def test_of_two_deferred_tasks_the_one_due_first_begins_first() -> None:
    journal = WrittenJournal()
    journal.put("a", due=20_000)
    journal.put("b", due=21_000)
    for n in "ba":
        journal.run(n)
    assert journal.verdict.out_of_order == ["b began before a, which was due first"]


def test_a_claim_before_the_due_time_or_after_the_expiry_is_out_of_order() -> None:
    journal = WrittenJournal()
    journal.put("a", due=2000)
    journal.put("b", due=2000, expires=3000)
    for n, claimed in (("a", 1999), ("b", 3000)):
        token = journal.start(n, claimed=claimed)
        journal.end(token)
        journal.ended(n, token)
    assert journal.verdict.out_of_order == [
        "a was claimed 1 ms before it was due",
        "b was claimed 0 ms after it expired",
    ]


def test_a_call_without_an_answer_is_lost_and_one_with_the_answer_of_another_is_doubled() -> None:
    journal = WrittenJournal()
    for n in "ab":
        journal.write("call", n=n)
    journal.write("answered", n="a", rightly=False)
    assert (journal.verdict.lost, journal.verdict.doubled) == (
        ["call b had no answer"],
        ["call a got the answer of another"],
    )
