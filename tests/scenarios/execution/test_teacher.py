"""The dialog of teachers that ships as a bot, on a real server: linking, a message to a group, its status (C-115)."""

import asyncio
import shutil
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from core.directory.linking import Linking
from core.model.content import EVERY_FEATURE
from core.model.people import Group, User
from core.redis.store import Argument, Store
from couriers.email import LinkCodeMailer
from couriers.sending.interface import Message, Outcome, Sent
from scenarios.bot.new_bot import TEACHER
from tests.scenarios.execution.conftest import PERSON, Installation
from tests.support.moments import AHEAD
from tests.support.outbox import Outbox
from tests.support.stack import TENANT, FakeCourier
from tests.support.waiting import until

pytestmark = pytest.mark.parametrize("shards", [16])


@pytest.fixture
def outbox() -> Outbox:
    return Outbox()


@pytest.fixture
async def school(bare: Installation, outbox: Outbox) -> Installation:
    """Anna, who speaks English, owns ИВТ-101 with Boris; her chat is not linked yet."""
    school, numbers = bare, iter(range(100, 1000))

    def respond(message: Message) -> Outcome:
        return Sent(str(next(numbers)))

    school.courier = FakeCourier(respond=respond, shows=EVERY_FEATURE)
    await school.start_courier()
    shutil.copytree(TEACHER, school.folder, dirs_exist_ok=True)
    directory = school.directory
    school.options = {
        "linking": Linking(school.stack.store, directory, LinkCodeMailer(outbox)),
        "public_url": "https://ada.example.org",
    }
    await directory.users.create(TENANT, User(1, "Анна", "anna@example.org", "trainer", "en", {}))
    await directory.users.create(TENANT, User(2, "Борис", "boris@example.org", "student", "ru", {"echo": ["p2"]}))
    await directory.groups.create(TENANT, Group("ИВТ-101", "ИВТ-101"), [2])
    await directory.ownerships.own(TENANT, 1, "group", "ИВТ-101")
    return school


def seen(school: Installation) -> list[str]:
    """What Anna sees: her messages, an edit in place of what it edits."""
    return [one.text for one in school.courier.attempted if one.address == PERSON]


async def says(school: Installation, written: str, wanted: str) -> None:
    """Write; wait until the bot's next message begins so."""
    before = len(seen(school))
    await school.put(written)
    await until(lambda: any(one.startswith(wanted) for one in seen(school)[before:]))


async def press(school: Installation, label: str, wanted: str) -> None:
    """Press a button of the last message that has it; wait until the bot's next message begins so."""
    before = len(seen(school))
    contents = [one.content for one in reversed(school.courier.attempted) if one.address == PERSON and one.content]
    data = next(one.data for content in contents for row in content.inline for one in row if one.text == label)
    await school.put(event_text=None, callback_data=data, message_id=100)
    await until(lambda: any(one.startswith(wanted) for one in seen(school)[before:]))


async def link(school: Installation, outbox: Outbox) -> None:
    await says(school, "/start", "Здравствуйте! Чтобы связать этот чат с вами")
    await says(school, "nobody@example.org", "В университете нет человека с таким адресом.")
    await says(school, "anna@example.org", "Код отправлен на anna@example.org. Напишите его сюда. Он действует 24 мин.")
    await says(school, "222222", "Код неверный.")
    await says(school, outbox.codes[-1], "Done, Анна: this chat is connected with you.\nTo write to a group")


async def test_a_teacher_links_its_chat_and_writes_to_its_group(school: Installation, outbox: Outbox) -> None:
    await school.start()
    await link(school, outbox)
    await says(school, "/start", "Hello, Анна! This chat is connected with you.\nTo write to a group")
    await says(school, "/select", "Whom do you write to?\nSelected: –")
    await says(school, "/help", "To write to a group")
    await press(school, "ИВТ-101", "Whom do you write to?\nSelected: ИВТ-101")
    await press(school, "Done", "To: ИВТ-101\nPeople: 1\nWrite the text.")
    await says(school, "/settings", "Here you choose")
    await says(school, "Пары не будет", "When shall it be sent?")
    await says(school, "soon", "I did not understand this time.")
    await press(school, "Now", "To: ИВТ-101\nPeople: 1, of these without a contact: 0\nTime: now\n\nПары")
    await press(school, "Send", "")
    await until(lambda: seen(school)[-1].startswith("✅ Everybody was reached."))
    assert [one.text for one in school.courier.attempted if one.address == "p2"] == ["Пары не будет"]
    await says(school, "/console", "Open this page and press the button: https://ada.example.org/#/sign-in/")
    await says(school, "/unlink", "This chat is no longer connected with you.")
    await says(school, "/help", "Я передаю сообщения вашего университета.")


async def test_the_dialog_goes_on_in_another_process_at_each_step(school: Installation, outbox: Outbox) -> None:
    start = partial(school.start, lease=timedelta(seconds=1), adopt_every=0.1)
    running = await start()
    await link(school, outbox)

    async def anew() -> None:
        nonlocal running
        await running.kill()
        running = await start()

    await says(school, "/select", "Whom do you write to?")
    await anew()
    await press(school, "ИВТ-101", "Whom do you write to?\nSelected: ИВТ-101")
    await anew()
    await press(school, "Done", "To: ИВТ-101")
    await anew()
    await says(school, "Пары не будет", "When shall it be sent?")
    await anew()
    await says(school, "tomorrow 9:00", "To: ИВТ-101\nPeople: 1")
    await anew()
    await press(school, "Send", "🕓 Will be sent")
    await anew()
    await press(school, "Cancel the delivery", "🚫 Cancelled.")
    assert [one.text for one in school.courier.attempted if one.address == "p2"] == []


SUMMARY = "To: ИВТ-101\nPeople: 1, of these without a contact: 0\nTime: now\n"
ACTS = (
    ("/select", "Whom do you write to?"),
    ("[ИВТ-101]", "Whom do you write to?\nSelected: ИВТ-101"),
    ("[Done]", "To: ИВТ-101"),
    ("Do you come?", "When shall it be sent?"),
    ("[Now]", f"{SUMMARY}\n"),
    ("[Ask for an answer]", "What kind of answer"),
    ("[Choose an option]", "Write the options"),
    ("Yes\nNo", f"{SUMMARY}Answer: Choose an option\nYes\nNo\n"),
    ("[Answers until…]", "Until when may people answer?"),
    (AHEAD, f"{SUMMARY}Answer: Choose an option\nYes\nNo\nAnswers until: {AHEAD}"),
    ("[Send]", "✅ Everybody was reached."),
)  # fmt: skip
"""What Anna writes, or presses in brackets, and how the next message of the bot begins."""


OF_A_STEP = (
    "meet_person",
    "begin_run",
    "remember_step",
    "save_run",
    "enqueue",
    "park_run",
    "put_once",
    "wake",
    "suspend",
)
"""The calls that steps make, and not the process by itself."""


class StoppingStore(Store):
    """Stops for ever before or after a call that a step of a dialog makes, the one with the number `left`, from 0."""

    left = -1
    is_after = False
    stopped = False

    async def run(self, name: str, shard: int, *arguments: Argument) -> Any:
        self.left -= name in OF_A_STEP
        if self.left != -1 or name not in OF_A_STEP:
            return await super().run(name, shard, *arguments)
        if self.is_after:
            await super().run(name, shard, *arguments)
        self.stopped = True
        return await asyncio.Event().wait()


@pytest.mark.parametrize(("call", "is_after"), [(0, False), (0, True), (1, False), (1, True)])
async def test_a_process_that_is_killed_within_a_step_loses_and_doubles_nothing(
    school: Installation, call: int, is_after: bool
) -> None:
    """At each step of the dialog, before or after this call of the store. The dialog asks with the message, too."""
    await school.directory.users.add_contact(TENANT, 1, "echo", PERSON)
    start = partial(school.start, lease=timedelta(seconds=1), adopt_every=0.1)
    for act, wanted in ACTS:
        running, before = await start(StoppingStore), len(seen(school))
        store = running.store
        assert isinstance(store, StoppingStore)
        store.left, store.is_after = call, is_after
        await do(school, act)
        await until(lambda: store.stopped)  # noqa: B023 - awaited at once
        await running.kill()
        other = await start()
        await until(lambda: shows(school, wanted, before))  # noqa: B023 - as above
        await other.stop()
    assert [one.text for one in school.courier.attempted if one.address == "p2"] == ["Do you come?"]
    prompts = [one for one in seen(school) if not one.startswith(("⏳", "✅"))]
    assert len(prompts) == len(ACTS) - 1, "no message came twice"


def shows(school: Installation, wanted: str, before: int) -> bool:
    return any(one.startswith(wanted) for one in seen(school)[before:])


async def do(school: Installation, act: str) -> None:
    """Write, or press the button in brackets of the last message that has it."""
    if not act.startswith("["):
        await school.put(act)
        return
    contents = [one.content for one in reversed(school.courier.attempted) if one.address == PERSON and one.content]
    labelled = (one.data for content in contents for row in content.inline for one in row if f"[{one.text}]" == act)
    await school.put(event_text=None, callback_data=next(labelled), message_id=100)
