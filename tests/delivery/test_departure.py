"""What ends with a person that is deleted, over HTTP and by the command line: its jobs and its sign-ins."""

from datetime import timedelta

import pytest

from core.jobs import Actor, JobId, JobState, Schedule
from core.model.people import User
from providers.sign_in import Tokens, Vault
from providers.sign_in.stored import new_key, services_of
from tests.delivery.conftest import Api
from tests.delivery.test_directory_commands import Ada, ada
from tests.support.servers import several_shards

__all__ = ["ada", "several_shards"]

NAMES = ["42", "telegram-bot:100001", "sms:+79991112233"]
"""Anna's id, and what she was called before the directory knew her."""


@pytest.fixture
async def hunting(api: Api) -> Api:
    """Anna and a person of another tenant with her id have jobs, and have signed in."""
    services, tokens = api.services, Tokens(api.store, Vault([new_key()]), {})
    contacts = {"telegram-bot": ["100001"], "sms": ["+79991112233"]}
    await services.core.directory.users.create("default", User(42, "Anna", contacts=contacts))
    await services.core.jobs.kinds.publish(
        {"hunt": Schedule(timedelta(hours=1)), "digest": Schedule(timedelta(days=1))}
    )
    for tenant, user in (*(("default", name) for name in NAMES), ("other", "42"), ("default", "4")):
        await tokens.write(tenant, "vacancies", user, {"access_token": "x"})
        for kind in ("hunt", "digest"):
            await services.core.jobs.start(JobId(tenant, kind, user))
    await services.core.jobs.pause(JobId("default", "digest", "42"), Actor.SIGN_IN)
    return api


async def check_that_anna_is_gone(api: Api) -> None:
    for name in NAMES:
        for kind in ("hunt", "digest"):
            job = await api.services.core.jobs.find(JobId("default", kind, name))
            assert (job.record.state, job.record.reason) == (JobState.STOPPED, "the person was deleted")
        assert await services_of(api.store, "default", name) == []
    for tenant, user in (("other", "42"), ("default", "4")):
        assert (await api.services.core.jobs.find(JobId(tenant, "hunt", user))).record.state is JobState.RUNNING
        assert await services_of(api.store, tenant, user) == ["vacancies"]


async def test_a_person_that_is_deleted_over_http_has_no_jobs_and_no_sign_ins(hunting: Api) -> None:
    assert (await hunting.call("DELETE", "/v1/users/42")).status == 204
    await check_that_anna_is_gone(hunting)


async def test_a_person_that_is_removed_by_the_command_has_no_jobs_and_no_sign_ins(hunting: Api, ada: Ada) -> None:
    assert await ada("user", "remove", "42") == (0, "removed 42\n", "")
    await check_that_anna_is_gone(hunting)


async def test_jobs_of_a_user_that_the_directory_does_not_know_are_not_ended_by_that(hunting: Api) -> None:
    assert (await hunting.call("DELETE", "/v1/users/4")).code == "USER_NOT_FOUND"
    assert (await hunting.services.core.jobs.find(JobId("default", "hunt", "4"))).record.state is JobState.RUNNING
    assert await services_of(hunting.store, "default", "4") == ["vacancies"]


async def test_a_new_person_with_the_same_id_starts_its_jobs_again(hunting: Api) -> None:
    await hunting.call("DELETE", "/v1/users/42")
    await hunting.services.core.directory.users.create("default", User(42, "Boris"))
    assert (await hunting.call("POST", "/v1/jobs", {"kind": "hunt", "user": 42})).json["state"] == "running"
