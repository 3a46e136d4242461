"""The bot answers while hundreds of jobs resume: jobs and bot are real processes on one server."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from core.jobs import JobId
from core.queue import QueueClient
from core.updates.events import Events
from tests.jobs.service import Service
from tests.jobs.test_processes import Deployment, deployment
from tests.support.stack import TENANT, FakeCourier, Stack
from tests.support.waiting import until
from tests.system.crash.process import AdaProcess

__all__ = ["deployment"]

JOBS = [JobId("default", "hunt", str(user)) for user in range(200)]
"""As many as two processes run at once."""

QUESTIONS = 30
WITHIN = 60.0
"""Seconds after which the test fails. The times of answers: docs/performance.md."""


class HeldService(Service):
    """Answers no application until `opened` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.opened = asyncio.Event()
        self.held = 0

    async def _apply(self, request: web.Request) -> web.Response:
        self.held += 1
        await self.opened.wait()
        return await super()._apply(request)


class Bot:
    """A process of scenarios that answers every text, and a courier."""

    def __init__(self, stack: Stack, courier: FakeCourier) -> None:
        self._courier = courier
        self._events = Events(QueueClient(stack.store), TENANT)

    async def ask(self, number: int) -> None:
        """Write to the bot, and wait for its answer."""
        event = {"id": f"e{number}", "channel": "echo", "user_id": str(number), "event_text": str(number)}
        await self._events.put("test", event)
        await until(lambda: f"you wrote {number}" in [one.text for one in self._courier.attempted], within=WITHIN)


@pytest.fixture
async def bot(deployment: Deployment, tmp_path: Path) -> AsyncIterator[Bot]:
    folder = tmp_path / "bot"
    (folder / "scenarios").mkdir(parents=True)
    (folder / "triggers.yaml").write_text('text: {"*": s.main}')
    (folder / "scenarios" / "s.yaml").write_text(
        'main:\n  actions:\n    - {type: send, text: "you wrote {event_text}"}\n'
    )
    stack, courier = await Stack.open(deployment.server), FakeCourier()
    await stack.courier(courier)
    environment = {
        "ADA_REDIS_URL": deployment.server.url,
        "ADA_DATA": str(tmp_path / "data"),
        "ADA_SCENARIOS": str(folder),
        "ADA_BOT_TENANT": TENANT,
        "ADA_BOT_TOKEN": "",
    }
    process = AdaProcess(("scenarios",), environment, tmp_path / "scenarios.log")
    await process.ready()
    yield Bot(stack, courier)
    process.kill()
    await stack.close()


async def test_the_bot_answers_while_hundreds_of_jobs_resume(deployment: Deployment, bot: Bot) -> None:
    service = HeldService()
    await service.start()
    deployment.service = service
    for job_id in JOBS:
        await deployment.jobs.start(job_id)
    victims = [await deployment.start() for _ in range(2)]
    await until(lambda: service.held == len(JOBS), within=WITHIN)
    for victim in victims:
        victim.kill()
    for _ in victims:
        await deployment.start()
    for number in range(QUESTIONS):
        await bot.ask(number)
    assert not service.applied, "the jobs are still in their first application"
    await until(lambda: service.held >= 2 * len(JOBS), within=WITHIN)
    service.opened.set()
    await until(lambda: len(service.applied) >= len(JOBS), within=WITHIN)
    await service.stop()
