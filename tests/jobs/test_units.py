"""What is recorded of items and effects is listed, resolved when it is not known, and reset."""

import asyncio
from argparse import ArgumentParser, Namespace
from datetime import UTC
from typing import Any

import pytest

from cli.command import CommandFailed, add_json_option
from cli.commands.installation.jobs import ACTIONS, declare
from core.errors import Conflict, Invalid, NotFound
from core.jobs import Actor, JobId, JobState
from core.jobs.steps import UnitOutcome, UnitStatus
from core.redis.keys import KEYS
from jobs import Iteration
from tests.jobs.conftest import ANNA, HOUR, Playground
from tests.support.paths import ROOT
from tests.system.guides.blocks import commands_run_by

EFFECT = "effect:apply"


class Applications:
    """A service whose first answer is lost."""

    def __init__(self) -> None:
        self.calls = 0
        self.results: list[Any] = []

    async def apply(self) -> str:
        self.calls += 1
        if self.calls == 1:
            raise ConnectionError("no answer")
        return f"application {self.calls}"

    async def run(self, iteration: Iteration) -> None:
        self.results.append(await iteration.effect("apply", self.apply))

    async def run_by_items(self, iteration: Iteration) -> None:
        async def handle(item: int) -> None:
            await self.run(iteration)

        await iteration.each([7], handle, key=str)


async def unclear(playground: Playground) -> Applications:
    """A job that has failed because an answer was lost."""
    applications = Applications()
    playground.run, playground.most_failures = applications.run, 2
    playground.start_worker()
    await playground.jobs.start(ANNA, {"query": "teacher"}, "Europe/Moscow")
    failed = await playground.in_state(JobState.FAILED)
    assert failed.record.reason == (
        "whether 'apply' took place is not known; find out, then "
        "`./ada jobs resolve hunt.1 'effect:apply' done` or `not-done`"
    )
    return applications


@pytest.mark.parametrize(
    ("outcome", "calls", "result"), [(UnitOutcome.DONE, 1, {"id": 5}), (UnitOutcome.NOT_DONE, 2, "application 2")]
)
async def test_a_job_goes_on_after_an_operator_has_said_what_became_of_its_effect(
    playground: Playground, outcome: UnitOutcome, calls: int, result: Any
) -> None:
    applications = await unclear(playground)
    (unit,) = (await playground.jobs.units.page(ANNA, UnitStatus.UNKNOWN))[0]
    assert (unit.id, unit.status, unit.iteration) == (EFFECT, "unknown", 0)
    await playground.jobs.units.resolve(ANNA, EFFECT, outcome, {"id": 5})
    started = await playground.jobs.start(ANNA)
    assert (started.record.parameters, started.record.timezone) == ({"query": "teacher"}, "Europe/Moscow")
    await playground.iterations(1)
    assert (applications.calls, applications.results) == (calls, [result])
    lines = [line.text for line in await playground.jobs.log.last(ANNA)]
    assert f"effect:apply: resolved as {outcome.replace('_', ' ')} by admin" in lines


async def test_an_item_is_handled_again_after_its_effect_was_resolved(playground: Playground) -> None:
    applications = Applications()
    playground.run = applications.run_by_items
    playground.start_worker()
    await playground.jobs.start(ANNA)
    await playground.iterations(1)
    units, _ = await playground.jobs.units.page(ANNA)
    assert {unit.id: unit.status for unit in units} == {"unit:7": "unknown", EFFECT: "unknown"}
    assert {unit.unit for unit in units} == {None, "unit:7"}
    await playground.jobs.units.resolve(ANNA, EFFECT, UnitOutcome.NOT_DONE)
    playground.stack.advance_clock(HOUR)
    await playground.iterations(2)
    assert applications.results == ["application 2"]
    units, _ = await playground.jobs.units.page(ANNA)
    assert {unit.id: unit.status for unit in units} == {"unit:7": "done", EFFECT: "done"}


async def test_what_was_reset_is_done_again(playground: Playground) -> None:
    applications = Applications()
    applications.calls = 1
    playground.run = applications.run
    playground.start_worker()
    await playground.jobs.start(ANNA)
    await playground.iterations(1)
    with pytest.raises(Conflict, match="What became of 'effect:apply' is known: done"):
        await playground.jobs.units.resolve(ANNA, EFFECT, UnitOutcome.NOT_DONE)
    await playground.jobs.units.reset(ANNA, EFFECT)
    playground.stack.advance_clock(HOUR)
    await playground.iterations(2)
    assert applications.results == ["application 2", "application 3"]
    with pytest.raises(NotFound, match="Nothing is recorded of 'effect:other'"):
        await playground.jobs.units.reset(ANNA, "effect:other")


async def test_an_effect_in_hand_is_neither_resolved_nor_reset_but_one_whose_process_died_is(
    playground: Playground,
) -> None:
    began = asyncio.Event()

    async def apply() -> None:
        began.set()
        await asyncio.Event().wait()

    async def run(iteration: Iteration) -> None:
        await iteration.effect("apply", apply)

    units = playground.jobs.units
    playground.run = run
    playground.start_worker()
    await playground.jobs.start(ANNA)
    await asyncio.wait_for(began.wait(), 20)
    for stop in (False, True):  # the attempt of a stopped job still finishes its unit
        if stop:
            await playground.jobs.stop(ANNA, Actor.USER)
        with pytest.raises(Conflict, match="being done at this moment"):
            await units.resolve(ANNA, EFFECT, UnitOutcome.NOT_DONE)
        with pytest.raises(Conflict, match="being done at this moment"):
            await units.reset(ANNA, EFFECT)
    await playground.kill()
    playground.stack.advance_clock(HOUR)
    other = JobId(ANNA.tenant, ANNA.kind, "2")
    playground.run = _nothing
    playground.start_worker()  # its claims take the lost task back
    await playground.jobs.start(other)
    await playground.iterations(1, other)
    await units.resolve(ANNA, EFFECT, UnitOutcome.NOT_DONE)
    assert await units.page(ANNA) == ([], "")


async def _nothing(iteration: Iteration) -> None: ...


async def test_hundreds_of_units_are_listed_in_pages(playground: Playground) -> None:
    await playground.jobs.start(ANNA)
    key = KEYS["job_units"].at(0, f"{ANNA.tenant}/{ANNA.name}")
    for item in range(600):
        await playground.stack.redis.hset(key, f"unit:{item}", f'{{"status":"{"failed" if item % 3 else "done"}"}}')
    seen: list[str] = []
    cursor: str | None = None
    pages = 0
    while cursor != "":
        units, cursor = await playground.jobs.units.page(ANNA, UnitStatus.FAILED, cursor or "", 50)
        seen += [unit.id for unit in units]
        pages += 1
    assert pages > 5
    assert sorted(seen) == sorted(f"unit:{item}" for item in range(600) if item % 3)
    with pytest.raises(Invalid):
        await playground.jobs.units.page(ANNA, cursor="nonsense")


async def test_a_large_result_is_not_shown_in_a_list(playground: Playground) -> None:
    async def value(of: str) -> str:
        return of

    async def run(iteration: Iteration) -> None:
        await iteration.effect("small", value, "x" * 4000)
        await iteration.effect("large", value, "x" * 5000)

    playground.run = run
    playground.start_worker()
    await playground.jobs.start(ANNA)
    await playground.iterations(1)
    units, _ = await playground.jobs.units.page(ANNA)
    assert {unit.id: unit.result for unit in units} == {"effect:small": "x" * 4000, "effect:large": None}


async def test_the_command_line_lists_resolves_and_resets(
    playground: Playground, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = ArgumentParser()
    add_json_option(parser)
    declare(parser)

    async def ada_jobs(*words: str) -> str:
        arguments = parser.parse_args([*words, "--tenant", ANNA.tenant], Namespace(zone=UTC))
        assert await ACTIONS[arguments.action](playground.jobs, arguments) == 0
        return capsys.readouterr().out

    begun = await playground.jobs.storage.save(await playground.jobs.start(ANNA), holder="1 attempt")
    assert begun is not None
    record = '{"status":"unknown","reason":"why"}'
    for name in ("apply 7", "apply 8"):
        await playground.jobs.storage.write_unit(ANNA, "1 attempt", f"effect:{name}", record)
    await playground.jobs.storage.write_unit(ANNA, "1 attempt", "unit:7", '{"status":"failed"}')
    for guided in commands_run_by("tests/jobs/test_units.py", ROOT / "docs" / "jobs.md"):
        assert guided[:2] == ["./ada", "jobs"]
        await ada_jobs(*(word.replace("hunt.42", "hunt.1") for word in guided[2:]))
        await playground.jobs.storage.write_unit(ANNA, "1 attempt", "effect:apply 7", record)
    listed = await ada_jobs("units", "hunt.1", "--status", "unknown")
    assert [line.split() for line in sorted(listed.splitlines())] == [
        ["effect:apply", str(number), "unknown", "-", "iteration", "0", "why"] for number in (7, 8)
    ]
    assert await ada_jobs("units", "hunt.1", "--limit", "0") == ""
    await ada_jobs("resolve", "hunt.1", "effect:apply 7", "done", "--result", '{"id": 5}')
    await ada_jobs("reset", "hunt.1", "effect:apply 8")
    assert 'done     -                          iteration 0  result {"id":5}' in await ada_jobs("units", "hunt.1")
    await playground.jobs.storage.write_step(ANNA, "1 attempt", "step:search", "[7]")
    steps = await ada_jobs("show", "hunt.1", "--steps")
    assert [line.split()[0] for line in steps.splitlines()[-2:]] == ["effect:apply", "step:search"]
    assert steps.endswith("result [7]\n")
    with pytest.raises(CommandFailed, match="a unit, or --from STEP"):
        await ada_jobs("reset", "hunt.1")
    assert await ada_jobs("reset", "hunt.1", "--from", "search", "--dry-run") == "would be dropped: step:search\n"
    assert await ada_jobs("reset", "hunt.1", "--from", "search") == "dropped: step:search\n"
    with pytest.raises(Conflict, match="What became of 'effect:apply 7' is known: done"):
        await ada_jobs("resolve", "hunt.1", "effect:apply 7", "not-done")
    with pytest.raises(Invalid, match="--result is not JSON"):
        await ada_jobs("resolve", "hunt.1", "effect:apply 7", "done", "--result", "{")
