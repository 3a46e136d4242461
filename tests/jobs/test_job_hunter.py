"""examples/job-hunter against the sandbox: sign-in, profile, models, and every way in which the service fails."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from core.jobs import Actor, JobId, Jobs, JobState, StoredJob
from core.queue import QueueClient
from examples import JOB_HUNTER
from jobs.external_services import Outside
from jobs.registry import installed
from jobs.worker import JobWorker
from providers.models import FileCache, Models, NotSetUp
from providers.models.interface import Completion, Prompt
from providers.sign_in import SignIn, Tokens, Vault
from providers.sign_in.services import read_services
from providers.sign_in.stored import new_key
from sandbox.events import Fault, Rule
from sandbox.state import SandboxState
from sandbox.vacancies import VacanciesServer
from tests.jobs.conftest import Playground
from tests.providers.sign_in.oauth_server import sign_in_at
from tests.support.waiting import until

ANNA = JobId("university", "hunt", "1")
NONE = NotSetUp("AI_NOT_SET_UP", "there is none")


class Writer:
    """A language model. `answers`: what it writes; the last answer again and again."""

    identity = "writer"

    def __init__(self) -> None:
        self.answers = ["teacher", "I would like to work for you."]
        self.asked: list[Prompt] = []
        self.on_letter: Callable[[], None] = lambda: None

    def check(self) -> None:
        """It is there."""

    async def complete(self, prompt: Prompt) -> Completion:
        self.asked.append(prompt)
        if len(self.asked) > 1:
            self.on_letter()
        text = self.answers[min(len(self.asked), len(self.answers)) - 1]
        return Completion(text, "writer", 100)

    async def close(self) -> None:
        """Nothing to close."""


@dataclass
class Hunt:
    """The job at the service."""

    playground: Playground
    service: VacanciesServer
    sign_in: SignIn
    writer: Writer
    outside: Outside

    @property
    def jobs(self) -> Jobs:
        return self.playground.jobs

    async def user_signs_in(self, person: str = "anna") -> None:
        address = await self.sign_in.begin(ANNA.tenant, "vacancies", ANNA.user)
        await sign_in_at(self.sign_in, address, person=person)

    def start(self) -> None:
        registry = installed([str(JOB_HUNTER)])
        store = self.playground.stack.store
        self.playground.run_worker(JobWorker(store, QueueClient(store), registry, outside=self.outside))

    async def applied_to(self, count: int) -> None:
        await until(lambda: len(self.service.applied) >= count)

    async def in_state(self, state: JobState) -> StoredJob:
        return await self.playground.in_state(state, ANNA)


@pytest.fixture
async def hunt(playground: Playground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Hunt]:
    service = VacanciesServer(SandboxState())
    await service.start()
    monkeypatch.setenv("HUNT_URL", service.url)
    monkeypatch.setenv("HUNT_PERIOD", "1")
    monkeypatch.setenv("HUNT_PAGES", "1")
    registry = installed([str(JOB_HUNTER)])
    await playground.jobs.kinds.publish(registry.schedules)
    file = tmp_path / "services.yaml"
    file.write_text(service.sign_in)
    services, vault, writer = read_services(file), Vault([new_key()]), Writer()
    store = playground.stack.store
    tokens = Tokens(store, vault, services)
    cache = FileCache(tmp_path / "texts", 10_000_000, timedelta(0))
    models = Models(writer, NONE, NONE, cache, cache, timedelta(0))
    sign_in = SignIn(store, vault, tokens, services, "http://127.0.0.1")
    outside = Outside(store, tokens, models)
    yield Hunt(playground, service, sign_in, writer, outside)
    await playground.kill()
    await service.stop()


async def test_a_query_is_written_from_the_profile_and_a_letter_for_each_vacancy(hunt: Hunt) -> None:
    await hunt.user_signs_in()
    hunt.start()
    await hunt.jobs.start(ANNA)
    await hunt.applied_to(20)
    await hunt.playground.iterations(2, ANNA)
    assert "ten years at school" in hunt.writer.asked[0].user
    assert set(hunt.service.applied.values()) == {"I would like to work for you."}
    assert set(hunt.service.attempts.values()) == {1}
    assert len(hunt.writer.asked) >= 1 + 20


async def test_the_job_waits_for_the_sign_in_and_goes_on_after_it(hunt: Hunt) -> None:
    hunt.start()
    await hunt.jobs.start(ANNA)
    paused = await hunt.in_state(JobState.PAUSED)
    assert (paused.record.paused_by, paused.record.reason) == (Actor.SIGN_IN, "sign in to vacancies again")
    await hunt.user_signs_in()
    await hunt.jobs.resume_after_sign_in(ANNA.tenant, ANNA.user, "vacancies")
    await hunt.applied_to(20)
    hunt.service.oauth.revoke("anna")
    assert (await hunt.in_state(JobState.PAUSED)).record.paused_by is Actor.SIGN_IN


async def test_a_sign_in_that_ends_between_two_applications_pauses_the_job(hunt: Hunt) -> None:
    hunt.service.state.add_rule(Rule("vacancies", Fault("unauthorized"), method="apply"))
    await hunt.user_signs_in()
    hunt.start()
    await hunt.jobs.start(ANNA)
    paused = await hunt.in_state(JobState.PAUSED)
    assert paused.record.paused_by is Actor.SIGN_IN
    hunt.service.state.clear_rules()
    await hunt.user_signs_in()
    await hunt.jobs.resume_after_sign_in(ANNA.tenant, ANNA.user, "vacancies")
    await hunt.applied_to(20)


async def test_an_iteration_may_last_longer_than_a_token_is_valid(hunt: Hunt) -> None:
    hunt.service.oauth.lifetime = 30  # such a token is refreshed at each use
    hunt.writer.on_letter = lambda: hunt.service.oauth.expire("anna")
    await hunt.user_signs_in()
    hunt.start()
    await hunt.jobs.start(ANNA)
    await hunt.applied_to(20)


async def test_at_the_limit_of_the_service_the_job_waits_until_tomorrow(hunt: Hunt) -> None:
    hunt.service.daily_limit = 5
    await hunt.user_signs_in()
    hunt.start()
    await hunt.jobs.start(ANNA)
    paused = await hunt.in_state(JobState.PAUSED)
    assert (paused.record.paused_by, len(hunt.service.applied)) == (Actor.LIMIT, 5)
    assert paused.record.resume_at > 0
    hunt.service.daily_limit = 100
    hunt.playground.stack.advance_clock(timedelta(days=1))
    await hunt.applied_to(20)
    assert set(hunt.service.attempts.values()) <= {1, 2}, "only what was refused at the limit was sent again"


@pytest.mark.parametrize("fault", ["stored_then_error", "disconnect_after", "disconnect_before", "server_error"])
async def test_after_a_lost_answer_the_service_is_asked_and_nothing_is_applied_to_twice(hunt: Hunt, fault: str) -> None:
    hunt.service.state.add_rule(Rule("vacancies", Fault(fault), method="apply", times=1))
    await hunt.user_signs_in()
    hunt.start()
    await hunt.jobs.start(ANNA)
    await hunt.applied_to(20)
    await hunt.playground.iterations(1, ANNA)
    assert set(hunt.service.attempts.values()) == {1}
    assert hunt.service.state.counter("vacancies", "applied") == 1


async def test_what_was_applied_to_by_hand_is_not_applied_to_again(hunt: Hunt) -> None:
    hunt.service.applied["anna", "v0"] = "by hand"
    await hunt.user_signs_in()
    hunt.start()
    await hunt.jobs.start(ANNA)
    await hunt.applied_to(20)
    assert hunt.service.applied["anna", "v0"] == "by hand"


async def test_a_profile_without_text_pauses_the_job_with_a_clear_message(hunt: Hunt) -> None:
    await hunt.user_signs_in("empty")
    hunt.start()
    await hunt.jobs.start(ANNA)
    assert "your profile has no text" in (await hunt.in_state(JobState.PAUSED)).record.reason


async def test_a_user_with_two_profiles_chooses_one_and_the_choice_stays(hunt: Hunt) -> None:
    await hunt.user_signs_in("two-anna")
    hunt.start()
    await hunt.jobs.start(ANNA)
    paused = await hunt.in_state(JobState.PAUSED)
    reason = "choose one of your profiles, then resume: teacher (A good teacher), driver (A good driver)"
    assert (paused.record.paused_by, paused.record.reason) == (Actor.USER, reason)
    await hunt.jobs.change(ANNA, {"profile": "driver"}, Actor.USER)
    await hunt.jobs.resume(ANNA, Actor.USER)
    await hunt.applied_to(20)
    await hunt.playground.iterations(2, ANNA)
    assert "drives a bus" in hunt.writer.asked[0].user
    assert (await hunt.jobs.find(ANNA)).record.parameters["profile"] == "driver"


async def test_the_query_is_stored_with_the_job_and_the_user_changes_it(hunt: Hunt) -> None:
    await hunt.user_signs_in()
    hunt.start()
    await hunt.jobs.start(ANNA)
    await hunt.playground.iterations(2, ANNA)
    stored = (await hunt.jobs.find(ANNA)).record.parameters
    assert stored == {"query": "teacher", "profile": "teacher"}
    questions = [prompt.user for prompt in hunt.writer.asked if prompt.system and "profession" in prompt.system]
    assert len(questions) == 1, "later iterations use what is stored"
    await hunt.jobs.change(ANNA, {"query": "driver"}, Actor.USER)
    await until(lambda: ("anna", "v4") in hunt.service.applied)
    assert (await hunt.jobs.find(ANNA)).record.parameters["query"] == "driver"


async def test_a_model_that_writes_nothing_fails_the_units_only(hunt: Hunt) -> None:
    hunt.writer.answers = ["teacher", ""]
    await hunt.user_signs_in()
    hunt.start()
    await hunt.jobs.start(ANNA)
    await hunt.playground.iterations(1, ANNA)
    assert hunt.service.applied == {}
    (unit,) = await hunt.jobs.storage.units(ANNA, ["unit:v0"])
    assert unit is not None
    assert "wrote nothing" in unit


async def test_the_budget_of_the_day_pauses_the_job_until_midnight(hunt: Hunt) -> None:
    hunt.outside = Outside(hunt.outside.store, hunt.outside.tokens, hunt.outside.models, budget=500)
    await hunt.user_signs_in()
    hunt.start()
    await hunt.jobs.start(ANNA)
    paused = await hunt.in_state(JobState.PAUSED)
    assert paused.record.reason == "500 tokens of language models a day"
    assert len(hunt.service.applied) == 4
