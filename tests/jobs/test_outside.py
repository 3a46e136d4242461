"""What iterations use outside: the budget of a user for language models, and sign-ins that are not set up."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from core.errors import SetupError
from core.jobs import Actor, StoredJob
from core.redis.keys import KEYS
from jobs import Iteration, Pause
from jobs.external_services import Outside
from jobs.recording.guard import Guard
from providers.models import Completion, Prompt
from tests.jobs.conftest import ANNA, Playground

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)
QUESTION = Prompt("Write a letter")


class Writer:
    """A language model: each answer costs as many tokens."""

    def __init__(self, tokens: int = 1) -> None:
        self.tokens = tokens
        self.asked: list[Prompt] = []

    async def complete(self, prompt: Prompt) -> Completion:
        self.asked.append(prompt)
        return Completion("Dear Anna", "fake", self.tokens)


@pytest.fixture
async def job(playground: Playground) -> StoredJob:
    return await playground.jobs.start(ANNA, timezone="Europe/Moscow")


def outside_of(playground: Playground, models: Any, budget: int = 0) -> Outside:
    return Outside(playground.stack.store, models=models, budget=budget)


async def test_a_budget_is_used_up_to_its_last_token_and_the_job_then_pauses_until_midnight(
    playground: Playground, job: StoredJob
) -> None:
    writer = Writer(tokens=5)
    outside = outside_of(playground, writer, budget=6)
    for _ in range(2):
        assert await outside.complete(job, QUESTION, NOON) == "Dear Anna"
    with pytest.raises(Pause, match="6 tokens of language models a day") as pause:
        await outside.complete(job, QUESTION, NOON)
    assert (pause.value.by, len(writer.asked)) == (Actor.LIMIT, 2)
    assert pause.value.until == datetime(2026, 11, 23, 21, tzinfo=UTC), "midnight in Moscow"
    assert await outside.complete(job, QUESTION, NOON + timedelta(hours=9)) == "Dear Anna", "the next day"


async def test_a_budget_of_one_token_allows_the_first_question(playground: Playground, job: StoredJob) -> None:
    outside = outside_of(playground, Writer(), budget=1)
    assert await outside.complete(job, QUESTION, NOON) == "Dear Anna"
    with pytest.raises(Pause):
        await outside.complete(job, QUESTION, NOON)


async def test_without_a_budget_nothing_is_counted(playground: Playground, job: StoredJob) -> None:
    for budget, tokens in ((0, 5), (6, 0)):
        await outside_of(playground, Writer(tokens), budget).complete(job, QUESTION, NOON)
    key = KEYS["model_budget"].at(0, ANNA.tenant, ANNA.user, "2026-11-23")
    assert await playground.stack.store.command("EXISTS", key) == 0


async def test_an_iteration_asks_without_a_system_prompt_by_default(playground: Playground, job: StoredJob) -> None:
    writer = Writer()
    held = await playground.jobs.storage.save(job, holder="1 attempt")
    assert held
    guard = Guard(playground.jobs.storage, held, "1 attempt", lambda: False, lambda: True)
    iteration = Iteration(guard, {}, outside_of(playground, writer), playground.jobs)
    assert await iteration.complete("Write a letter") == "Dear Anna"
    await iteration.complete("Write a letter", "You are Anna", max_tokens=5)
    assert writer.asked == [Prompt("Write a letter"), Prompt("Write a letter", "You are Anna", max_tokens=5)]


async def test_a_token_without_services_is_a_mistake_of_the_set_up(playground: Playground, job: StoredJob) -> None:
    with pytest.raises(SetupError, match="ADA_SIGN_IN is not set"):
        await Outside(playground.stack.store).access_token(job, "vacancies")


def test_the_text_of_a_pause_is_its_reason() -> None:
    assert str(Pause(Actor.LIMIT, "200 applications a day", NOON, service="vacancies")) == "200 applications a day"
