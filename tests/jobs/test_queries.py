"""A job answers queries from what is stored, whatever it does at that moment (U-29)."""

import threading
from argparse import ArgumentParser
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from cli.command import add_json_option
from cli.commands.installation.jobs import declare
from cli.commands.installation.jobs_mending import query as query_command
from core.errors import Conflict, Invalid, NotFound, Refused, SetupError
from core.jobs import Actor, JobId, Jobs, JobState
from core.jobs.queries import AskedQuery, QueryAnswer, ask
from core.queue import QueueClient
from core.redis.store import Store
from jobs import Iteration, Job, JobWorker, Registry, Schedule, Snapshot, query
from jobs.queries import AT_ONCE, QueryAnswers
from jobs.registry import installed
from jobs.testing import JobTest
from tests.jobs.conftest import ANNA, HOUR, Playground
from tests.support.paths import ROOT
from tests.support.servers import Server
from tests.support.waiting import until
from tests.system.crash.process import AdaProcess
from tests.system.guides.blocks import blocks_of, commands_run_by

GATE = threading.Event()


@dataclass
class Sent:
    letters: list[int] = field(default_factory=list)


class Writes(Job):
    """Sends letters, and waits for its user between them."""

    name = "hunt"
    schedule = Schedule(HOUR)
    state = Sent
    checks_names = False

    async def run(self, iteration: Iteration) -> None:
        async def send(number: int) -> None:
            iteration.state.letters.append(number)

        found = await iteration.step("search", _search)
        await iteration.each(found, send, key=str)
        await iteration.wait("more")


class Asked(Writes):
    """The same, in a later version with queries."""

    @query
    def progress(self, job: Snapshot, of: int = 10) -> dict[str, Any]:
        """Return how many letters were sent, of how many that were found."""
        sent, found = len(job.state.letters), len(job.steps.get("search", ()))
        return {
            "sent": sent,
            "found": found,
            "of": of,
            "waits_for": job.facts.waits_for,
            "what": job.parameters["query"],
        }

    @query
    def spoils(self, job: Snapshot) -> None:
        """Change what it may only read."""
        job.state.letters.append(99)

    @query
    def sets(self, job: Snapshot) -> None:
        """Change the parameters."""
        job.facts.parameters["query"] = "cook"

    @query
    def fails(self, job: Snapshot) -> None:
        """Fail with a text that is not for others."""
        raise KeyError("secret")

    @query
    def leaves(self, job: Snapshot) -> None:
        """End the process, if it could."""
        raise SystemExit

    @query
    def grows(self, job: Snapshot) -> str:
        """Return too much."""
        return "x" * 70_000

    @query
    def hangs(self, job: Snapshot) -> bool:
        """Wait until the test lets it end."""
        return GATE.wait(30)


async def _search() -> list[int]:
    return [1, 2, 3]


PROGRESS = {"sent": 3, "found": 3, "of": 10, "waits_for": "the signal 'more'", "what": "teacher"}


@dataclass
class Installation:
    """Processes with other and with this code, and a process that asks."""

    playground: Playground

    def start(self, kind: type[Job]) -> JobWorker:
        store = self.playground.stack.store
        return self.playground.run_worker(JobWorker(store, QueueClient(store), Registry([kind])))

    async def begin(self, kind: type[Job] = Asked) -> None:
        """Start Anna's job, and wait until it waits."""
        self.start(kind)
        await self.playground.jobs.start(ANNA, {"query": "teacher"})
        await until(lambda: _suspended(self.playground, ANNA))

    async def ask(self, name: str, timeout: timedelta = timedelta(seconds=10), **parameters: Any) -> Any:
        client = QueueClient(self.playground.stack.store)
        try:
            return await ask(client, self.playground.jobs, ANNA, name, parameters, timeout)
        finally:
            await client.close()

    async def refusal(
        self, name: str, timeout: timedelta = timedelta(seconds=10), **parameters: Any
    ) -> tuple[str, str]:
        with pytest.raises(Refused) as caught:
            await self.ask(name, timeout, **parameters)
        return caught.value.code, caught.value.detail


@pytest.fixture
def installation(playground: Playground) -> Installation:
    return Installation(playground)


async def test_a_job_that_waits_answers_and_stays_as_it_is(installation: Installation) -> None:
    await installation.begin()
    before = await installation.playground.jobs.find(ANNA)
    lines = await installation.playground.jobs.log.last(ANNA)
    assert await installation.ask("progress") == PROGRESS
    assert (await installation.ask("progress", of=3))["of"] == 3
    await installation.playground.jobs.pause(ANNA, Actor.USER)
    await installation.playground.jobs.stop(ANNA, Actor.USER)
    assert (await installation.ask("progress"))["sent"] == 3, "also when it has ended"
    await installation.playground.kill()
    assert before.version == (await installation.playground.jobs.find(ANNA)).version - 2
    assert len(await installation.playground.jobs.log.last(ANNA)) == len(lines) + 2


async def test_what_is_wrong_with_a_query_has_a_code_and_changes_nothing(installation: Installation) -> None:
    await installation.begin()
    before = await installation.playground.jobs.find(ANNA)
    for name in ("spoils", "sets"):
        assert (await installation.refusal(name))[0] == "QUERY_CHANGED_STATE"
    assert await installation.refusal("fails") == (
        "QUERY_FAILED",
        f"The query has failed: KeyError in test_queries.py, line {_line_of('secret')}.",
    )
    assert (await installation.refusal("leaves"))[0] == "QUERY_FAILED"
    assert (await installation.refusal("grows"))[1].startswith(
        "The query has failed: The result of the query grows has"
    )
    code, detail = await installation.refusal("progress", off=3)
    assert (code, "unexpected keyword argument 'off'" in detail) == ("QUERY_MALFORMED", True)
    code, detail = await installation.refusal("prices")
    assert (code, "it has: fails, grows" in detail) == ("QUERY_UNKNOWN", True)
    assert await installation.playground.jobs.find(ANNA) == before
    assert await installation.ask("progress") == PROGRESS


def _line_of(text: str) -> int:
    lines = (ROOT / "tests" / "jobs" / "test_queries.py").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if f'("{text}")' in line)


async def test_beside_old_code_without_the_query_the_process_that_has_it_answers(installation: Installation) -> None:
    await installation.begin(Writes)
    code, detail = await installation.refusal("progress")
    assert (code, detail) == ("QUERY_UNKNOWN", "The code of 'hunt' has no query 'progress' and no other.")
    installation.start(Asked)
    await until(lambda: _answers(installation))
    assert [await installation.ask("progress") for _ in range(5)] == [PROGRESS] * 5


async def _answers(installation: Installation) -> bool:
    try:
        return bool(await installation.ask("progress") == PROGRESS)
    except NotFound:
        return False


class Renamed(Writes):
    """Other code, with a query of its own only."""

    @query
    def letters(self, job: Snapshot) -> int:
        """Return how many letters were sent."""
        return len(job.state.letters)


async def test_code_with_other_queries_leaves_a_question_to_the_process_that_has_its_query(
    installation: Installation,
) -> None:
    await installation.begin(Asked)
    for _ in range(2):
        installation.start(Renamed)
    await until(lambda: _is_known(installation, "letters"))
    assert [await installation.ask(name) for name in ("progress", "letters") * 5] == [PROGRESS, 3] * 5


async def test_a_query_whose_code_is_gone_is_unknown_after_a_minute_beside_other_code(
    installation: Installation,
) -> None:
    await installation.begin(Asked)
    await installation.playground.kill()
    installation.playground.stack.advance_clock(timedelta(minutes=2))
    installation.start(Renamed)
    await until(lambda: _is_known(installation, "letters"))
    assert (await installation.refusal("progress"))[1].endswith("has no query 'progress'; it has: letters.")


async def _is_known(installation: Installation, name: str) -> bool:
    return name in await installation.playground.jobs.kinds.queries("hunt")


async def test_a_query_that_does_not_end_holds_up_nothing_else(installation: Installation) -> None:
    await installation.begin()
    GATE.clear()
    jobs = installation.playground.jobs
    answers = QueryAnswers(jobs, {"hunt": Asked}, timedelta(milliseconds=200))
    try:
        for _ in range(AT_ONCE):
            answer = await answers.answer(AskedQuery(ANNA, "hangs", {}))
            assert answer == QueryAnswer(code="QUERY_TOOK_TOO_LONG", detail="The query took longer than 0.2 s.")
        full = await answers.answer(AskedQuery(ANNA, "progress", {}))
        assert (full.code, "before this one have not ended" in full.detail) == ("QUERY_TOOK_TOO_LONG", True)
        assert await installation.ask("progress") == PROGRESS, "the other process answers"
        await jobs.signal(ANNA, "more")
        await installation.playground.iterations(1)
    finally:
        GATE.set()
    await until(lambda: _is_free(answers))


async def _is_free(answers: QueryAnswers) -> bool:
    return not (await answers.answer(AskedQuery(ANNA, "progress", {}))).code


async def test_no_process_of_the_kind_is_up(installation: Installation) -> None:
    await installation.begin()
    await installation.playground.kill()
    code, detail = await installation.refusal("progress", timedelta(milliseconds=300))
    assert (code, detail[-40:]) == ("QUERY_UNANSWERED", "'hunt' has answered in 0.3 s. Ask again.")
    installation.playground.stack.advance_clock(timedelta(minutes=2))
    code, detail = await installation.refusal("progress")
    assert (code, detail) == ("QUERY_UNANSWERED", "The query waits for a process that runs jobs of the kind 'hunt'.")
    store = installation.playground.stack.store
    with pytest.raises(NotFound, match="There is no such job"):
        await ask(QueueClient(store), installation.playground.jobs, JobId("university", "hunt", "9"), "progress", {})


async def test_parameters_have_a_bound_and_a_query_is_no_coroutine(installation: Installation) -> None:
    await installation.begin()
    with pytest.raises(Invalid, match="at most 65536 bytes"):
        await installation.ask("progress", of="x" * 70_000)

    async def waits(self: Job, job: Snapshot) -> None: ...

    with pytest.raises(SetupError, match="waits needs to be `def`, not `async def`"):
        query(waits)


async def test_a_test_of_a_job_asks_it() -> None:
    async with JobTest.open(Asked) as test:
        await test.start("hunt.1", {"query": "teacher"})
        assert await test.query("hunt.1", "progress") == PROGRESS
        assert (await test.query("hunt.1", "progress", of=4))["of"] == 4
        with pytest.raises(Conflict, match="may only read them"):
            await test.query("hunt.1", "spoils")
        with pytest.raises(NotFound, match="has no query 'prices'"):
            await test.query("hunt.1", "prices")
        assert (await test.job("hunt.1")).state is JobState.RUNNING


async def test_the_commands_of_the_guide_ask_its_job(
    playground: Playground, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    guide, store = ROOT / "docs" / "jobs.md", playground.stack.store
    (expenses,) = [block.text for block in blocks_of(guide) if block.about == "expenses.py"]
    (tmp_path / "expenses.py").write_text(expenses)
    expense = JobId("university", "expense", "42")
    playground.run_worker(JobWorker(store, QueueClient(store), installed([str(tmp_path / "expenses.py")])))
    await until(lambda: playground.jobs.kinds.queries("expense"))
    await playground.jobs.start(expense, {"amount": 20})
    await until(lambda: _suspended(playground, expense))
    parser = ArgumentParser()
    add_json_option(parser)
    declare(parser)
    capsys.readouterr()
    for guided in commands_run_by("tests/jobs/test_queries.py", guide):
        arguments = parser.parse_args([*guided[2:], "--tenant", "university"])
        assert await query_command(store, arguments) == 0
    assert (
        capsys.readouterr().out
        == "\"20 credits, waits for the signal 'answer'\"\n\"20 EUR, waits for the signal 'answer'\"\n"
    )


async def _suspended(playground: Playground, job_id: JobId) -> bool:
    return (await playground.jobs.find(job_id)).record.suspended


async def test_after_a_kill_of_the_process_that_answers_the_other_one_answers(
    own_server: Server, tmp_path: Path
) -> None:
    """The query kills the process that is the first to answer it."""
    environment = {"ADA_REDIS_URL": own_server.url, "ADA_DATA": str(tmp_path), "ADA_JOBS": "tests.jobs.deadly"}
    processes = [AdaProcess(("jobs",), environment, tmp_path / f"{number}.log") for number in range(2)]
    try:
        for process in processes:
            await process.ready()
        store = await Store.open(own_server.url)
        client, jobs, job = QueueClient(store), Jobs(store), JobId("default", "deadly", "1")
        await jobs.start(job)
        assert await ask(client, jobs, job, "dies_once", {"mark": str(tmp_path / "mark")}) == "alive"
        assert [process.is_running for process in processes].count(False) == 1
        await client.close()
        await store.close()
    finally:
        for process in processes:
            process.kill()
