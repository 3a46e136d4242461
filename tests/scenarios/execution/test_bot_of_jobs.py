"""The bot of examples/job-hunter from a person's update in Telegram to the message in the chat: bot, scenarios, courier
and jobs are the real ones; Telegram, the service of vacancies and its sign-in are the sandbox's.
"""

import asyncio
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from core.jobs import Actor, JobId, Jobs, JobState
from core.model.people import User, UserChange
from core.queue import QueueClient
from core.services import Services
from couriers.telegram_bot import courier as telegram_bot
from examples import JOB_HUNTER, JOB_HUNTER_BOT
from jobs.external_services import Outside
from jobs.notices import Notifier
from jobs.registry import installed
from jobs.worker import JobWorker
from providers.models import FileCache, Models
from providers.sign_in import SignIn, Tokens, Vault
from providers.sign_in.services import read_services
from providers.sign_in.stored import new_key
from sandbox.state import SandboxState
from sandbox.vacancies import VacanciesServer
from scenarios.check import check
from scenarios.stores.people import People
from tests.jobs.test_job_hunter import NONE, Writer
from tests.providers.sign_in.oauth_server import sign_in_at
from tests.sandbox.bot_api_clients import ANNA, BORIS, BotApi, bot_api
from tests.scenarios.execution.conftest import WITHIN, Installation, Running
from tests.scenarios.execution.test_telegram_groups import Town, bot_of
from tests.support.receiving import running
from tests.support.stack import QUICK, TENANT
from tests.support.waiting import until
from tests.support.whole_aiogram import types

__all__ = ["bot_api"]

CALLBACK = "http://127.0.0.1"
PLAIN = [["Hunt", "Pause", "Resume", "Stop"], ["Status", "Today", "Sign in", "Sign out"]]
OF_ADMIN = [*PLAIN, ["Statistics", "All jobs", "Paused jobs"]]


@dataclass
class Hunters(Town):
    """People who use the bot. Boris is an administrator."""

    installation: Installation
    service: VacanciesServer
    tokens: Tokens
    sign_in: SignIn
    running: Running

    @property
    def jobs(self) -> Jobs:
        return Jobs(self.installation.stack.store)

    def last(self, chat: int) -> dict[str, Any]:
        """The last message of the bot in a chat."""
        return [one for one in self.bot_api.server.people.messages(chat) if one["from"]["is_bot"]][-1]

    async def keyboard(self, chat: int) -> list[list[str]]:
        """The keyboard that has come since the last call; empty if none has."""
        found: list[list[str]] = self.bot_api.server.people.keyboard(chat)
        await self.bot_api.bot.send_message(chat, "away with it", reply_markup=types.ReplyKeyboardRemove())
        return found

    def buttons(self, chat: int) -> list[dict[str, str]]:
        rows = self.last(chat).get("reply_markup", {}).get("inline_keyboard", [])
        return [button for row in rows for button in row]

    async def follow(self, address: str) -> None:
        """A person goes to the address, agrees, and is led back."""
        await sign_in_at(self.sign_in, address, person="anna")

    async def sign_in_as(self, user: int) -> None:
        await self.tokens.write(TENANT, "vacancies", own(user).user, {"access_token": "x", "expires_in": 3600})

    async def start_job(self, user: int) -> str:
        await self.sign_in_as(user)
        return await self.answer(user, "Hunt")

    def change_setting(self, old: str, new: str) -> None:
        file = self.installation.folder / "settings.yaml"
        file.write_text(file.read_text().replace(old, new))

    async def restart(self) -> None:
        await self.running.stop()
        self.running = await self.installation.start()


def own(user: int) -> JobId:
    """The job of a person that the directory does not know."""
    return JobId(TENANT, "hunt", f"telegram-bot:{user}")


@pytest.fixture
async def hunters(
    bare: Installation, bot_api: BotApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Hunters]:
    server, store = bot_api.server, bare.stack.store
    for user in (ANNA, BORIS):
        server.people.set_person(user, language="en")
    service = VacanciesServer(SandboxState())
    await service.start()
    for name, value in {"HUNT_URL": service.url, "HUNT_PERIOD": "3600", "HUNT_PAGES": "1"}.items():
        monkeypatch.setenv(name, value)
    await Jobs(store).kinds.publish(installed([str(JOB_HUNTER)]).schedules)
    file = tmp_path / "services.yaml"
    file.write_text(service.sign_in)
    services, vault = read_services(file), Vault([new_key()])
    tokens = Tokens(store, vault, services)
    sign_in = SignIn(store, vault, tokens, services, CALLBACK)
    shutil.copytree(JOB_HUNTER_BOT, bare.folder, dirs_exist_ok=True)
    bare.options = {"telegram": bot_api.named_calls, "sign_in": sign_in}
    courier = await telegram_bot.open(telegram_bot.Settings(server.token, server.url, timedelta(seconds=5)), tmp_path)
    await bare.stack.courier(courier, QUICK)
    async with running(bot_of(bare, bot_api)):
        yield Hunters(bot_api, bare, service, tokens, sign_in, await bare.start())
    await courier.close()
    await service.stop()


def test_the_check_of_the_example_finds_nothing() -> None:
    assert check(JOB_HUNTER_BOT).problems == ()


async def test_a_person_signs_in_by_a_button_hunts_and_reads_what_was_done_today(
    hunters: Hunters, tmp_path: Path
) -> None:
    assert await hunters.answer(ANNA, "Hunt") == "Sign in to vacancies first. Then press Hunt again."
    (button,) = hunters.buttons(ANNA)
    await hunters.follow(button["url"])
    assert "running" in await hunters.answer(ANNA, "/hunt teacher")
    assert (await hunters.jobs.find(own(ANNA))).record.parameters == {"query": "teacher"}
    store, cache = hunters.installation.stack.store, FileCache(tmp_path / "texts", 10_000_000, timedelta(0))
    outside = Outside(store, hunters.tokens, Models(Writer(), NONE, NONE, cache, cache, timedelta(0)))
    worker = JobWorker(store, QueueClient(store), installed([str(JOB_HUNTER)]), outside=outside)
    working = asyncio.create_task(worker.run())
    await until(lambda: len(hunters.service.applied) == 20, within=WITHIN)
    worker.stop(timedelta(seconds=20))
    await working
    assert "applied: " in await hunters.answer(ANNA, "Today")
    token = await hunters.tokens.access_token(TENANT, "vacancies", own(ANNA).user)
    assert hunters.service.oauth.person_with(token) == "anna"
    assert await hunters.answer(ANNA, "Sign out") == "You are signed out."
    assert hunters.service.oauth.person_with(token) is None, "it was revoked at the service"


async def test_whose_sign_in_the_service_does_not_accept_any_more_signs_in_again(hunters: Hunters) -> None:
    """Its tokens are still stored."""
    await hunters.start_job(ANNA)
    assert await hunters.answer(ANNA, "Sign in") == "You are signed in."
    await hunters.jobs.pause(own(ANNA), Actor.SIGN_IN, "sign in to vacancies again")
    assert "sign in to vacancies again" in await hunters.answer(ANNA, "Status")
    assert await hunters.answer(ANNA, "Sign in") == "Sign in to vacancies first."
    assert len(hunters.buttons(ANNA)) == 1


async def test_a_person_pauses_resumes_and_stops_its_job(hunters: Hunters) -> None:
    assert "This job was not started yet." in await hunters.answer(ANNA, "Status")
    assert "running" in await hunters.start_job(ANNA)
    assert "paused by user" in await hunters.answer(ANNA, "Pause")
    assert "was started before and is paused" in await hunters.answer(ANNA, "Hunt")
    assert "running" in await hunters.answer(ANNA, "Resume")
    assert "stopped" in await hunters.answer(ANNA, "Stop")
    assert "it cannot pause" in await hunters.answer(ANNA, "Pause")
    assert "running" in await hunters.answer(ANNA, "Hunt")


async def test_a_person_sees_and_changes_its_query_chooses_a_profile_and_signs_out(hunters: Hunters) -> None:
    await hunters.start_job(ANNA)
    assert "query: driver of trams" in await hunters.answer(ANNA, "/query driver of trams")
    assert "query: driver of trams" in await hunters.answer(ANNA, "Status")
    await hunters.jobs.pause(own(ANNA), Actor.USER, "choose one of your profiles")
    answer = await hunters.answer(ANNA, "/profile driver")
    assert ("running" in answer, "profile: driver" in answer, "query" in answer) == (True, True, False)
    assert (await hunters.jobs.find(own(ANNA))).record.parameters == {"profile": "driver"}
    assert await hunters.answer(ANNA, "Sign out") == "You are signed out."
    assert await hunters.answer(ANNA, "Sign in") == "Sign in to vacancies first."


async def test_an_administrator_sees_and_controls_all_jobs_and_a_user_cannot(hunters: Hunters) -> None:
    await hunters.start_job(ANNA)
    await hunters.answer(BORIS, "/start")
    assert await hunters.keyboard(BORIS) == OF_ADMIN
    assert "running: 1" in await hunters.answer(BORIS, "Statistics")
    assert f"telegram-bot:{ANNA} hunt: running" in await hunters.answer(BORIS, "All jobs")
    assert "paused by admin" in await hunters.answer(BORIS, f"/pause telegram-bot:{ANNA}")
    assert "paused by: admin" in await hunters.answer(ANNA, "Resume")
    for text in ("Statistics", "All jobs", f"/resume telegram-bot:{BORIS}", f"/status telegram-bot:{BORIS}"):
        assert await hunters.answer(ANNA, text) == "Only administrators do this."
    assert (await hunters.jobs.find(own(ANNA))).record.paused_by is Actor.ADMIN
    assert "running" in await hunters.answer(BORIS, f"/resume telegram-bot:{ANNA}")


async def test_a_user_of_the_directory_is_made_an_administrator_and_no_more_of_one(hunters: Hunters) -> None:
    """The directory is changed by `./ada user` and /v1/users; the bot follows at once."""
    directory = hunters.installation.directory
    await directory.users.create(TENANT, User(42, "Anna", contacts={"telegram-bot": [str(ANNA)]}))
    await hunters.jobs.start(JobId(TENANT, "hunt", "7"))
    assert await hunters.answer(ANNA, "/pause 7") == "Only administrators do this."
    await directory.users.update(TENANT, 42, UserChange(role="admin"))
    assert "paused by admin" in await hunters.answer(ANNA, "/pause 7")
    assert await hunters.keyboard(ANNA) == OF_ADMIN
    await directory.users.update(TENANT, 42, UserChange(role="student"))
    assert await hunters.answer(ANNA, "/resume 7") == "Only administrators do this."
    assert await hunters.keyboard(ANNA) == PLAIN
    await hunters.jobs.start(JobId(TENANT, "hunt", "42"))
    assert "running" in await hunters.answer(ANNA, "Status"), "the job of person 42 of the directory is Anna's"


async def test_an_administrator_stops_a_user_reads_its_log_and_signs_it_out(hunters: Hunters) -> None:
    user = f"telegram-bot:{ANNA}"
    for command in ("/today", "/stop", "/signout"):
        assert await hunters.answer(ANNA, f"{command} telegram-bot:{BORIS}") == "Only administrators do this."
    await hunters.start_job(ANNA)
    assert "started by user" in await hunters.answer(BORIS, f"/today {user}")
    assert await hunters.answer(BORIS, f"/signout {user}") == "Signed out."
    assert await hunters.answer(ANNA, "Sign in") == "Sign in to vacancies first."
    assert "stopped" in await hunters.answer(BORIS, f"/stop {user}")
    assert "running" in await hunters.start_job(ANNA), "a restart after an administrator's stop is allowed"
    assert "paused by admin" in await hunters.answer(BORIS, f"/pause {user}")
    assert "stopped, paused by admin" in await hunters.answer(ANNA, "Stop")
    assert "paused by: admin" in await hunters.answer(ANNA, "Hunt"), "no escape by stop and start"


async def test_a_user_whose_tokens_the_store_has_forgotten_is_told_signs_in_again_and_its_job_goes_on(
    hunters: Hunters, tmp_path: Path
) -> None:
    await hunters.start_job(ANNA)
    redis, store = hunters.installation.stack.redis, hunters.installation.stack.store
    await redis.delete(*[key async for key in redis.scan_iter("sign-in:*")])
    cache = FileCache(tmp_path / "texts", 10_000_000, timedelta(0))
    outside = Outside(store, hunters.tokens, Models(Writer(), NONE, NONE, cache, cache, timedelta(0)))
    notifier, registry = Notifier(Services.on(store), sign_in=hunters.sign_in), installed([str(JOB_HUNTER)])
    worker = JobWorker(store, QueueClient(store), registry, outside=outside, notifier=notifier)
    working = asyncio.create_task(worker.run())
    await until(lambda: "ждёт вас: войдите в vacancies ещё раз" in hunters.last(ANNA).get("text", ""), within=WITHIN)
    address = hunters.last(ANNA)["text"].split()[-1]
    assert "paused by sign-in" in await hunters.answer(ANNA, "Status")
    await hunters.follow(address)
    await hunters.jobs.resume_after_sign_in(TENANT, own(ANNA).user, "vacancies")
    await until(lambda: len(hunters.service.applied) == 20, within=WITHIN)
    worker.stop(timedelta(seconds=20))
    await working
    assert await hunters.answer(ANNA, "Sign in") == "You are signed in."


async def test_a_new_version_of_the_keyboard_comes_with_the_next_message_of_each_user_once(hunters: Hunters) -> None:
    for user in (ANNA, ANNA + 10):
        await hunters.answer(user, "/start")
        assert await hunters.keyboard(user) == PLAIN
        await hunters.answer(user, "/id")
        assert await hunters.keyboard(user) == []
    hunters.change_setting("keyboard_version: 1", "keyboard_version: 2")
    hunters.change_setting('"Sign out"]', '"Sign out", "/id"]')
    await hunters.restart()
    for user in (ANNA, ANNA + 10):
        await hunters.answer(user, "/id")
        assert await hunters.keyboard(user) == [PLAIN[0], [*PLAIN[1], "/id"]]
        await hunters.answer(user, "/id")
        assert await hunters.keyboard(user) == []


async def test_a_user_whom_the_store_has_forgotten_gets_keyboard_and_job_back_with_the_next_message(
    hunters: Hunters,
) -> None:
    await hunters.start_job(ANNA)
    assert await hunters.keyboard(ANNA) == PLAIN
    redis = hunters.installation.stack.redis
    forgotten = [key async for key in redis.scan_iter("persons:*")]
    assert forgotten
    await redis.delete(*forgotten)
    people = People(hunters.installation.stack.store, TENANT)
    assert await people.find("telegram-bot", str(ANNA)) is None
    assert "running" in await hunters.answer(ANNA, "Status")
    assert await hunters.keyboard(ANNA) == PLAIN
    assert await people.find("telegram-bot", str(ANNA)) is not None
    assert (await hunters.jobs.find(own(ANNA))).record.state is JobState.RUNNING
