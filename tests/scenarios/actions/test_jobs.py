"""The action `job`: whose job it is, repeats, and what cannot be done."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from core.admission.actions import ActionFilter, ActionLog
from core.jobs import Actor, JobId, JobState, Schedule
from core.model.people import User
from core.redis.keys import KEYS
from core.redis.store import Store
from jobs import Iteration, Job, JobWorker, Registry
from providers.sign_in import Tokens, Vault
from providers.sign_in.stored import new_key, services_of
from scenarios.engine import State
from tests.sandbox.bot_api_clients import ANNA
from tests.scenarios.actions.conftest import PRIVATE, TENANT, Bench
from tests.support.waiting import until


class Hunt(Job):
    name = "hunt"
    schedule = Schedule(timedelta(hours=1))

    async def run(self, iteration: Iteration) -> None:
        raise AssertionError("every job is stopped before a worker starts")


OWN = JobId(TENANT, "hunt", f"telegram-bot:{ANNA}")


def job(operation: str, **fields: Any) -> dict[str, Any]:
    return {"type": "job", "operation": operation, "kind": "hunt", **fields}


@pytest.fixture
async def hunting(bench: Bench) -> AsyncIterator[Bench]:
    jobs = bench.services.core.jobs
    await jobs.kinds.publish({"hunt": Hunt.schedule})
    yield bench
    for one in (await jobs.list(TENANT))[0]:
        if one.record.state is not JobState.STOPPED:
            await jobs.stop(one.id, Actor.ADMIN)
    await carry_out_tasks(bench)


async def carry_out_tasks(bench: Bench) -> None:
    """The tasks of jobs that were stopped do nothing."""
    store = bench.services.core.store
    worker = JobWorker(store, bench.services.core.client, Registry([Hunt]))
    working = asyncio.create_task(worker.run())
    await until(lambda: has_no_tasks(store))
    worker.stop(timedelta(seconds=20))
    await working


async def has_no_tasks(store: Store) -> bool:
    """A task of a job that has just been started may still be waiting for its moment."""
    return not await store.command("EXISTS", KEYS["head"].at(0, "jobs.hunt"), KEYS["due"].at(0))


async def test_a_repeat_of_a_step_whose_effect_is_there_completes(hunting: Bench) -> None:
    steps = (job("start", parameters={"query": "<b>"}), job("pause"), job("resume"), job("stop"))
    for fields, state in zip(steps, ("running", "paused", "running", "stopped"), strict=True):
        for _ in range(2):
            results = await hunting.results(fields, PRIVATE)
            assert (results["job_state"], results["job_user"]) == (state, OWN.user)
    assert (await hunting.services.core.jobs.find(OWN)).record.timezone == "Europe/Moscow"


async def test_a_start_with_other_parameters_does_not_change_a_job_that_runs(hunting: Bench) -> None:
    await hunting.results(job("start", parameters={"query": "teacher"}), PRIVATE)
    assert "was started before" in await hunting.error(job("start", parameters={"query": "cook"}), PRIVATE)
    assert (await hunting.services.core.jobs.find(OWN)).record.parameters == {"query": "teacher"}


async def test_an_address_that_looks_like_an_id_of_the_directory_is_not_that_user(hunting: Bench) -> None:
    """The Telegram id of Anna is the id of somebody else in the directory."""
    other = JobId(TENANT, "hunt", str(ANNA))
    await hunting.services.core.jobs.start(other)
    assert await hunting.error(job("stop"), PRIVATE) == "This job was not started yet."
    assert await hunting.error(job("stop", user=ANNA), PRIVATE) == "Only administrators do this."
    assert (await hunting.services.core.jobs.find(other)).record.state is JobState.RUNNING


async def test_an_administrator_who_changes_the_job_of_somebody_else_by_a_bot_is_in_the_action_log(
    hunting: Bench,
) -> None:
    core = hunting.services.core
    contacts = {"telegram-bot": [str(ANNA)]}
    await core.directory.users.create(TENANT, User(5, "Anna", role="admin", contacts=contacts))
    for user in ("5", "6"):
        await core.jobs.start(JobId(TENANT, "hunt", user))
    await hunting.results(job("pause", reason="repairs"), PRIVATE)
    await hunting.results(job("pause", user=6, reason="repairs"), PRIVATE)
    await hunting.results(job("status", user=6), PRIVATE)
    ((found,), _) = await ActionLog(core.store).page(TENANT, ActionFilter(), None, 10)
    one = found.action
    assert (one.who, one.name, one.via, one.what) == ("person:5", "Anna", "bot", "POST /v1/jobs/{job_id}:pause")
    assert (one.target, one.count, one.why) == ("/v1/jobs/hunt.6:pause", 1, "repairs")


async def test_a_list_of_jobs_says_whether_there_are_more(hunting: Bench) -> None:
    core = hunting.services.core
    await core.directory.users.create(TENANT, User(5, "Anna", role="admin", contacts={"telegram-bot": [str(ANNA)]}))
    for user in "567":
        await core.jobs.start(JobId(TENANT, "hunt", user))
    for limit, (listed, more) in {2: (2, True), 3: (3, False)}.items():
        results = await hunting.results(job("list", limit=limit), PRIVATE)
        assert (results["jobs_listed"], results["text"].endswith("…")) == (listed, more)


async def test_a_person_signs_out_itself_and_nobody_else(hunting: Bench) -> None:
    store = hunting.services.core.store
    tokens = Tokens(store, Vault([new_key()]), {})
    for user in (OWN.user, "42"):
        await tokens.write(TENANT, "vacancies", user, {"access_token": "x"})
    sign_out = job("sign_out", service="vacancies")
    assert await hunting.error({**sign_out, "user": 42}, PRIVATE) == "Only administrators do this."
    assert (await hunting.results(sign_out, PRIVATE))["signed_out"] is True
    assert (await hunting.results(sign_out, PRIVATE))["signed_out"] is False
    assert await services_of(store, TENANT, "42") == ["vacancies"]


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        (job("dance"), "operation: 'dance' is none of"),
        (job("status", kind=""), "kind: it is missing"),
        (job("start", kind="nothing"), "There is no kind of job 'nothing'"),
        (job("start", parameters="teacher"), "parameters: it is not a mapping"),
        (job("start", timezone="Atlantis"), "There is no time zone"),
        (job("pause", user=""), "user: it is empty"),
        (job("log", limit=-1), "limit: '-1' is not a whole number above 0"),
        (job("sign_in", service="vacancies"), "There is no service to sign in to"),
    ],
)
async def test_what_cannot_be_done_fails_with_a_text_and_a_code(
    hunting: Bench, fields: dict[str, Any], error: str
) -> None:
    ending = await hunting.play(fields, PRIVATE)
    assert ending.state is State.FAILED
    assert str(ending.error).startswith(error)
    assert ending.returned.results["job_refusal"].isupper()


async def test_what_people_wrote_is_no_markup_in_the_text(hunting: Bench) -> None:
    await hunting.results(job("start"), PRIVATE)
    paused = await hunting.results(job("pause", reason="<b>holiday</b>"), PRIVATE)
    assert "&lt;b&gt;holiday" in paused["text"]
    assert "&lt;b&gt;holiday" in (await hunting.results(job("log"), PRIVATE))["text"]


async def test_a_dry_run_returns_what_each_operation_returns(hunting: Bench) -> None:
    started = await hunting.is_as_dry(job("start", parameters={"query": "teacher"}), PRIVATE)
    assert started.items() >= {"job_user": f"telegram-bot:{ANNA}", "job_state": "running"}.items()
    assert "query: teacher" in started["text"]
    paused = await hunting.is_as_dry(job("pause", reason="holidays"), PRIVATE, run="2")
    assert paused.items() >= {"job_state": "paused", "job_paused_by": "user"}.items()
    for operation in ("status", "log", "resume", "stop"):
        await hunting.is_as_dry(job(operation), PRIVATE, run=operation)
