"""Dialogs and statuses go on in another process; an attempt that is made again sends nothing twice."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bots.button_data import ButtonData
from bots.conversation.conversation import Conversation
from bots.conversation.state import CONFIRM, SENT, State
from bots.conversation.status import StatusView
from bots.dialog_event import DialogEvent
from core.deliveries.channels import Channels
from core.deliveries.deliveries import Deliveries
from core.directory import Directory
from core.model.history import History
from core.model.people import Group, User, UserChange
from core.orders.following import StatusTasks
from core.redis.store import Store
from couriers.sending.interface import Message, Outcome, Sent
from couriers.telegram_bot import CHANNEL
from sandbox.events import Fault, Rule
from sandbox.sandbox import Sandbox
from tests.bots.telegram.chat import ANNA, STUDENT, TEACHER, VERA, School, english
from tests.support.moments import AHEAD
from tests.support.servers import Server
from tests.support.stack import TENANT
from tests.support.waiting import until
from tests.system.crash.installation import Installation


async def test_a_dialog_goes_on_after_a_restart_at_each_step(idle_school: School) -> None:
    school = idle_school
    async with school.running():
        await school.select("ИВТ-101")
    async with school.running():
        await school.notice("Done")
    async with school.running():
        await school.answer("hello")
    async with school.running():
        await school.notice("Now")
        await school.shows("People: 3")
    async with school.running():
        await school.notice("Send")
        await school.shows(english("status_all_reached"))
    assert len(school.sms.attempted) == 2


async def test_the_status_goes_on_in_another_process(idle_school: School) -> None:
    school, may_send = idle_school, asyncio.Event()

    async def respond(message: Message) -> Outcome:
        await may_send.wait()
        return Sent("1")

    school.sms.respond = respond
    async with school.running():
        await school.send("hello")
        await school.shows(english("status_in_progress"))
    async with school.running():
        may_send.set()
        await school.shows(english("status_all_reached"))


class SlowReads(Deliveries):
    """What is read is returned only when the chat shows a later state, as on a busy machine."""

    def __init__(self, store: Store, channels: Channels) -> None:
        super().__init__(store, channels)
        self.later: Callable[[], bool] = lambda: True

    async def read(self, *args: Any, **options: Any) -> History:
        history = await super().read(*args, **options)
        await until(self.later)
        return history


async def test_a_status_that_has_ended_is_not_replaced_by_an_earlier_one(idle_school: School) -> None:
    store, may_send = idle_school.stack.store, asyncio.Event()
    reads = SlowReads(store, Channels(store, ("sms",)))
    core = replace(idle_school.services.core, deliveries=reads)
    school = replace(idle_school, services=replace(idle_school.services, core=core))
    ended = english("status_all_reached")

    async def respond(message: Message) -> Outcome:
        await may_send.wait()
        return Sent("1")

    school.sms.respond = respond
    async with school.running():
        await school.prepare("hello")
        reads.later = lambda: any(ended in text for text in school.texts())
        school.press("Send")
        await school.shows(english("status_in_progress"))
        may_send.set()
        await school.shows(ended)
        await school.answer("/help")  # after the press was processed
        await school.shows(ended)
        assert english("status_in_progress") not in "".join(school.texts())


async def conversation_of(school: School) -> tuple[Conversation, ButtonData]:
    services = school.services
    button_data = await ButtonData.open(services.core.store, TENANT)
    status_tasks = StatusTasks(services.core.client, TENANT, CHANNEL)
    await status_tasks.open()
    view = StatusView(button_data, services.timezone)
    return Conversation(services, button_data, view, status_tasks), button_data


def press_of(person: int, button_data: ButtonData) -> DialogEvent:
    """The button Send of the dialog d1."""
    button = button_data.sign(CHANNEL, str(person), "s.d1.confirm.send")
    return DialogEvent("1", CHANNEL, str(person), button=button, message="5", callback="c")


CONFIRMED = State(CONFIRM, "d1", chosen=["group:101"], text="hello")


async def test_a_press_that_is_processed_again_sends_once(idle_school: School) -> None:
    services = idle_school.services
    conversation, button_data = await conversation_of(idle_school)
    press = press_of(TEACHER, button_data)
    first, again = [await conversation.converse(press, CONFIRMED) for _ in range(2)]
    assert again.state == first.state == State(SENT, "d1")
    await until(lambda: len(idle_school.sms.attempted) == 2)
    await idle_school.stack.finished((await services.core.deliveries.list(TENANT))[0][0].key)
    assert len((await services.core.deliveries.list(TENANT))[0]) == 1
    assert len(idle_school.sms.attempted) == 2


async def test_dialogs_of_two_people_with_equal_ids_are_two_deliveries(idle_school: School) -> None:
    conversation, button_data = await conversation_of(idle_school)
    await idle_school.directory.users.update(TENANT, 2, UserChange(role="admin"))
    for person in (TEACHER, STUDENT):
        await conversation.converse(press_of(person, button_data), CONFIRMED)
    assert len((await idle_school.services.core.deliveries.list(TENANT))[0]) == 2


# processes


class Campus:
    """Real processes of the bot and of the courier for SMS."""

    def __init__(self, installation: Installation) -> None:
        self.installation = installation
        self.people = installation.sandbox.bot_api.people

    async def set_up(self) -> None:
        directory = Directory(self.installation.core.store)
        anna = User(ANNA.id, ANNA.name, ANNA.email, ANNA.role, "en", ANNA.contacts)
        for user in (anna, VERA):
            await directory.users.create("default", user)
        await directory.groups.create("default", Group(101, "ИВТ-101"), [VERA.id])
        await directory.ownerships.own("default", ANNA.id, "group", 101)

    def texts(self) -> list[str]:
        return [one["text"] for one in self.people.shown(TEACHER)["messages"] if one["from"] == "bot"]

    async def reads(self, text: str) -> None:
        await until(lambda: any(text in one for one in self.texts()), within=45)

    def press(self, label: str) -> None:
        shown = [one for one in self.people.messages(TEACHER) if label in str(one.get("reply_markup"))]
        self.people.press(TEACHER, int(shown[-1]["message_id"]), label)


@pytest.fixture
async def campus(own_server: Server, tmp_path: Path) -> AsyncIterator[Campus]:
    sandbox = Sandbox(tmp_path / "sandbox")
    await sandbox.start()
    installation = await Installation.open(own_server, sandbox, tmp_path)
    campus = Campus(installation)
    await campus.set_up()
    yield campus
    await installation.close()
    await sandbox.stop()


SETTINGS = {"ADA_QUIET_HOURS": "off"}


@pytest.mark.timeout(240)
async def test_the_bot_is_killed_while_telegram_does_not_answer(campus: Campus) -> None:
    """The prompt comes from the next process, and the time is not taken for the text."""
    state, installation = campus.installation.state, campus.installation
    bot = installation.start("bot", "telegram", **SETTINGS)
    await bot.ready()
    campus.people.write(TEACHER, "/select")
    await campus.reads("Whom do you write to?")
    campus.press("ИВТ-101")
    await campus.reads("Selected: ИВТ-101")
    campus.press("Done")
    await campus.reads("Write the text.")
    sent = state.counter(CHANNEL, "sendMessage")
    state.add_rule(Rule(CHANNEL, Fault("timeout"), method="sendMessage"))
    campus.people.write(TEACHER, "No class")
    await until(lambda: state.counter(CHANNEL, "sendMessage") > sent, within=45)
    bot.kill()
    state.clear_rules()
    campus.people.write(TEACHER, AHEAD)
    await installation.start("bot", "telegram", **SETTINGS).ready()
    await campus.reads(f"Time: {AHEAD}")
    assert "No class" in campus.texts()[-1]
    assert [text for text in campus.texts() if "When shall it be sent?" in text] == [english("time_when")]


@pytest.mark.timeout(240)
async def test_processes_of_the_bot_are_killed_and_the_others_go_on(campus: Campus) -> None:
    installation = campus.installation
    bots = [installation.start("bot", "telegram", **SETTINGS) for _ in range(2)]
    courier = installation.start("courier", "sms", **SETTINGS)
    for process in (*bots, courier):
        await process.ready()
    campus.people.write(TEACHER, "/select")
    await campus.reads("Whom do you write to?")
    bots[0].kill()
    campus.press("ИВТ-101")
    await campus.reads("Selected: ИВТ-101")
    campus.press("Done")
    await campus.reads("Write the text.")
    campus.people.write(TEACHER, "hello")
    await campus.reads("When shall it be sent?")
    campus.press("Now")
    await campus.reads("Time: now")
    campus.press("Send")
    bots[1].kill()
    bots.append(installation.start("bot", "telegram", **SETTINGS))
    await campus.reads("Everybody was reached")
    received = [one.text for one in installation.state.inbox("sms", "+79990000003")]
    assert received == ["hello"]
    assert installation.sandbox.bot_api.token not in "".join(bot.output for bot in bots)
