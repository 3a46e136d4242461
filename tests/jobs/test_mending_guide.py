"""The commands of the guide that look into jobs and mend them are run as they stand."""

from argparse import ArgumentParser, Namespace
from datetime import UTC

import pytest

from cli.command import add_json_option
from cli.commands.installation.jobs import ACTIONS, declare
from core.jobs import JobState
from tests.jobs.conftest import ANNA, Playground
from tests.support.paths import ROOT
from tests.system.guides.blocks import commands_run_by


async def test_the_commands_of_the_guide_show_and_reset_an_iteration(
    playground: Playground, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = ArgumentParser()
    add_json_option(parser)
    declare(parser)
    jobs, answers = playground.jobs, list[str]()
    for guided in commands_run_by("tests/jobs/test_mending_guide.py", ROOT / "docs" / "jobs.md"):
        assert guided[:2] == ["./ada", "jobs"]
        await failed(playground)
        words = [word.replace("hunt.42", "hunt.1") for word in guided[2:]]
        arguments = parser.parse_args([*words, "--tenant", ANNA.tenant], Namespace(zone=UTC))
        assert await ACTIONS[arguments.action](jobs, arguments) == 0
        answers.append(capsys.readouterr().out)
        if "--dry-run" not in words and "reset" in words:
            assert (await jobs.find(ANNA)).record.state is JobState.RUNNING
    assert ["step:search" in answer for answer in answers] == [True] * 4
    assert answers[1] == "would be dropped: step:search\nwould stay: effect:apply 7 (done)\n"
    assert answers[2] == "dropped: step:search\nstays: effect:apply 7 (done)\n"
    assert answers[3] == "dropped: step:search\ndropped: effect:apply 7\n"


async def failed(playground: Playground) -> None:
    """Make a job that has failed after a step and an effect."""
    jobs, holder = playground.jobs, "1 attempt"
    found = await jobs.storage.read(ANNA)
    begun = await jobs.start(ANNA) if found is None or found.record.state is JobState.FAILED else found
    assert await jobs.storage.save(begun, holder=holder)
    await jobs.storage.write_step(ANNA, holder, "step:search", "[7]")
    await jobs.storage.write_intent(ANNA, holder, JobState.RUNNING, "effect:apply 7", '{"status":"done"}')
    await jobs.fail(ANNA, "no paper")
