"""A test of a bot plays the iterations of the jobs that it starts (C-110): they sleep, wait, begin anew and end by the
clock of the test.
"""

import asyncio
from pathlib import Path

from cli.commands.bots.scenario_tests import PlayedJobs
from jobs.registry import installed
from scenarios.loader import load
from scenarios.testing.bot_tests import run_tests
from tests.scenarios.bot_folder import BotFolder

JOBS = """
from datetime import timedelta
from jobs import Finished, Iteration, Job, Schedule

class Expense(Job):
    name = "expense"
    schedule = Schedule()

    async def run(self, iteration: Iteration) -> str:
        rate = await iteration.step("rate", ask_bank)
        try:
            answer = await iteration.wait("answer", timeout=timedelta(days=7))
        except TimeoutError:
            raise Finished("nobody has answered") from None
        await iteration.sleep(timedelta(hours=1))
        return f"{iteration.parameters['amount']} at {rate}: {answer}"

class Watch(Job):
    name = "watch"
    schedule = Schedule(timedelta(hours=6))

    async def run(self, iteration: Iteration) -> None:
        await iteration.log(f"looked {iteration.number}")
        found = await iteration.effect("look", look, per_iteration=True, idempotent_for=timedelta(days=1))
        if found:
            raise Finished(f"found {found}")

async def ask_bank():
    raise ConnectionError("no bank in tests")

async def look(*, idempotency_key):
    return ""
"""
SCENARIOS = """
pay:
  actions:
    - {type: job, operation: start, kind: expense, parameters: {amount: "{event_text|regex:\\\\d+}"}}
    - {type: send, additional_text: "Asked.", chain: completed}
    - {type: send, text: "Not started: {error}", chain: failed}
yes:
  actions: [{type: job, operation: signal, kind: expense, signal: answer, data: approved}]
status:
  actions:
    - {type: job, operation: status, kind: expense}
    - {type: send, text: "{error|fallback:}", chain: true}
watch:
  actions: [{type: job, operation: start, kind: watch}]
log:
  actions:
    - {type: job, operation: log, kind: watch}
    - {type: send, text: "{error|fallback:}", chain: true}
"""
TESTS = """
it sleeps, waits for a signal and ends:
  jobs: {expense: {rate: 90}}
  steps:
    - {user: /pay 20, bot: {contains: "expense: работает"}}
    - wait: 3d
    - user: /yes
    - wait: 59m
    - wait: 2m
    - bot: {contains: expense завершено}      # the notice
    - {user: /status, bot: {contains: "20 at 90: approved"}}
nobody answers:
  steps:
    - jobs: {expense: {rate: 1}}
    - {user: /pay 20, bot: {contains: "expense: работает"}}
    - wait: 8d
    - bot: {contains: nobody has answered}
it looks again each period, until there is something:
  steps:
    - {user: /watch}
    - wait: 7h
    - {user: /log, bot: {contains: looked 1}}
    - jobs: {watch: {look: a book}}
    - wait: 6h
    - bot: {contains: found a book}
"""


def test_a_test_plays_the_iterations_of_jobs(tmp_path: Path) -> None:
    """No iteration of a job began in a test: a bot that waits for one could not be tested."""
    assert problems(tmp_path, TESTS) == ["", "", ""]


def test_a_step_without_an_answer_of_the_test_is_really_called(tmp_path: Path) -> None:
    tests = "t: {steps: [{user: /pay 20}, {bot: {contains: 'expense: работает'}}, {wait: 10d}]}"
    (problem,) = problems(tmp_path, tests)
    assert "ConnectionError" in problem


def test_a_job_that_does_not_exist_is_named(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, "t: {jobs: {expanse: {rate: 1}}, steps: [{user: hi}]}")
    assert "did you mean expense?" in problem


def problems(tmp_path: Path, tests: str) -> list[str]:
    bot = BotFolder(tmp_path / "bot").write("scenarios/s.yaml", SCENARIOS).write("tests/t.yaml", tests)
    bot.write(
        "triggers.yaml",
        "text: {exact: {/yes: s.yes, /status: s.status, /watch: s.watch, /log: s.log}, starts_with: {/pay: s.pay}}",
    )
    file = tmp_path / "played_jobs.py"
    file.write_text(JOBS)
    verdicts, faults = asyncio.run(run_tests(bot.folder, load(bot.folder).bot, PlayedJobs(installed([str(file)]))))
    assert faults == []
    return [one.problem for one in verdicts]
