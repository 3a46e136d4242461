"""Wrong data of a signal are refused when it is sent, or dropped; the job goes on waiting (U-33)."""

from argparse import ArgumentParser
from contextlib import nullcontext
from datetime import UTC, timedelta
from typing import Any, ClassVar, Literal

import msgspec
import pytest

from cli.commands.installation.jobs import declare
from cli.commands.installation.jobs_mending import format_job, format_job_line
from core.errors import Invalid, SetupError
from core.jobs.signals import check_data, schemas_of
from jobs import Iteration, Job, Schedule
from jobs.registry import Registry
from jobs.testing import JobTest, try_every_crash


class Answer(msgspec.Struct, forbid_unknown_fields=True):
    approved: bool
    by: list[str] = []


@pytest.mark.parametrize(
    ("of", "data", "fault"),
    [
        (dict[str, int], {"n": 1}, ""),
        (dict[str, int], {"n": "x"}, "data.n is of the type integer"),
        (dict[str, int], None, "data is of the type object"),
        (int, True, "data is of the type integer"),
        (int | None, None, ""),
        (int | None, "x", "data is of the type integer or data is of the type null"),
        (list[int], [1, "2"], "data[1] is of the type integer"),
        (Literal["yes", "no"], "maybe", "data is one of 'no', 'yes'"),
        (Answer, {"approved": True, "by": ["Anna"]}, ""),
        (Answer, {}, "data.approved is missing"),
        (Answer, {"approved": 1}, "data.approved is of the type boolean"),
        (Answer, {"approved": True, "by": [7]}, "data.by[0] is of the type string"),
        (Answer, {"approved": True, "why": ""}, "data.why is not known"),
        (Any, object, ""),
    ],
)
def test_the_data_of_a_signal_are_what_the_kind_declares(of: Any, data: Any, fault: str) -> None:
    schema = schemas_of({"answer": of})["answer"]
    with pytest.raises(Invalid) if fault else nullcontext() as refused:
        check_data("answer", schema, data)
    if refused:
        assert refused.value.code == "SIGNAL_OF_OTHER_TYPE"
        assert refused.value.detail.endswith(f"'answer': {fault}.")


class Asking(Job):
    name = "asking"
    schedule = Schedule()

    async def run(self, iteration: Iteration) -> Any:
        return await iteration.wait("answer", returns=dict[str, int])


class Declaring(Asking):
    name = "declaring"
    signals: ClassVar = {"answer": dict[str, int]}


async def test_wrong_data_are_refused_when_they_are_sent_also_before_the_job_waits() -> None:
    async with JobTest.open(Declaring) as test:
        await test.jobs.start(test.id_of("declaring.1"))
        for _ in range(2):
            with pytest.raises(Invalid, match="does not take these data of the signal"):
                await test.signal("declaring.1", "answer", {"n": "x"})
            await test.run()
        await test.signal("declaring.1", "answer", {"n": 1})
        view = await test.job("declaring.1")
        assert (view.state, view.result) == ("finished", {"n": 1})


async def test_wrong_data_that_no_kind_declares_are_dropped_and_the_job_goes_on_waiting() -> None:
    async def story(test: JobTest) -> None:
        await test.start("asking.1")
        await test.signal("asking.1", "answer", {"n": "x"})
        await test.advance(timedelta(hours=1))
        assert (await test.job("asking.1")).waits_for == "the signal 'answer'"
        assert any(line.startswith("the signal answer is dropped: ") for line in await test.log("asking.1"))
        await test.signal("asking.1", "answer", {"n": 1})
        await test.advance(timedelta(hours=1))
        assert (await test.job("asking.1")).result == {"n": 1}

    await try_every_crash(story, Asking)


def test_a_type_that_json_does_not_have_is_refused_at_start() -> None:
    class Wrong(Asking):
        name = "wrong"
        signals: ClassVar = {"answer": object()}

    with pytest.raises(SetupError, match="signals"):
        Registry([Wrong])


@pytest.mark.parametrize("verb", ["signal", "query", "reset", "pause", "show"])
def test_the_command_line_takes_the_job_first(verb: str) -> None:
    parser = ArgumentParser()
    declare(parser)
    more = ["answer"] if verb in ("signal", "query", "reset") else []
    assert parser.parse_args([verb, "expense.42", *more]).job == "expense.42"


async def test_a_job_that_has_finished_is_shown_with_its_result() -> None:
    async with JobTest.open(Declaring) as test:
        await test.start("declaring.1")
        await test.signal("declaring.1", "answer", {"n": 1})
        job = await test.jobs.find(test.id_of("declaring.1"))
        assert {"state:       finished", 'result:      {"n":1}'} <= set(format_job(job, UTC).splitlines())
        line = format_job_line(job, UTC)
        assert ("finished" in line, "1 run" in line, line.endswith('{"n":1}')) == (True, True, True)
