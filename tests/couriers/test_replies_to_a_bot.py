"""What people write to a bot that signs in over MTProto reaches threads and questions, over the real protocol."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from cli.commands.parts.courier import Couriers
from cli.settings.secrets import receiver
from cli.settings.settings import load
from core.deliveries.received import ReceivedMessages
from core.model.delivery import NewDelivery, Sender
from core.model.people import Group, User
from core.model.question import AnswerKind, Option, Question
from core.orders import Caller, Order
from core.orders.order import Addressee
from core.services import Services
from core.threads import Inbox, ReplyWorker, Thread
from core.threads.incoming import Written
from core.threads.threads import ReplyRoute
from core.updates.answer_worker import AnswerWorker
from couriers.receiving.poller import Poller
from couriers.sending.bot_replies import SignsInAsBot
from couriers.sending.runtime import EVERY_TENANT, Runtime
from sandbox.telegram.state.dialogs import StoredFile
from tests.couriers.telegram_provider import TelegramProvider, provider, reads
from tests.support.stack import QUICK, TENANT, Stack
from tests.support.waiting import until

__all__ = ["provider"]

MARIA = "100001"
PHOTO = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360606060000000050001"
    "a5f645400000000049454e44ae426082"
)


@dataclass
class BotSchool:
    stack: Stack
    core: Services
    provider: TelegramProvider

    async def open_courier(self) -> Runtime:
        """Open a process of the bot, and wait until one reads."""
        runtime = await self.stack.courier(await self.provider.open(), replace(QUICK, tenant=TENANT))
        await reads(self.stack.store)
        return runtime

    async def send(self, text: str, question: Question | None = None) -> int:
        """Send a text from Anna to Maria; return the number of the message."""
        delivery = NewDelivery(TENANT, Sender(7), text, (), ["telegram"], replies="sender", question=question)
        await self.core.sending.send(Order(delivery, [Addressee(1)]), Caller(TENANT, is_admin=True))
        await until(lambda: text in [one.text for one in self.messages()])
        number = int(max(one.id for one in self.messages()))
        received = ReceivedMessages(self.stack.store)
        await until(lambda: received.quoted(TENANT, "telegram", MARIA, str(number)))
        return number

    def messages(self) -> list[Any]:
        return [one for one in self.provider.server.messages(MARIA) if one.is_own]

    async def texts(self, inbox: Inbox = Inbox("user", "7")) -> list[str]:  # noqa: B008 - frozen
        found = await self.threads(inbox)
        return [one.text for thread in found for one in await self.core.threads.messages(thread, 0, 99)]

    async def threads(self, inbox: Inbox) -> list[Thread]:
        return (await self.core.threads.page(TENANT, inbox, None, 10))[0]

    async def arrives(self, *texts: str, inbox: Inbox = Inbox("user", "7")) -> None:  # noqa: B008 - frozen
        async def have_come() -> bool:
            return set(texts) <= set(await self.texts(inbox))

        await until(have_come)


@pytest.fixture
def office() -> str:
    return "dean"


@pytest.fixture
async def school(stack: Stack, provider: TelegramProvider, office: str) -> AsyncIterator[BotSchool]:
    core = Services.on(stack.store)
    for user in (
        User(7, "Anna", role="trainer"),
        User(1, "Maria", role="student", locale="ru", contacts={"telegram": [MARIA]}),
    ):
        await core.directory.users.create(TENANT, user)
    await core.directory.groups.create(TENANT, Group("dean", "Dean's office"), [7])
    replies = ReplyWorker(stack.store, core.client, core.directory, core.threads, core.relay, office)
    answers = AnswerWorker(stack.store, core.client)
    async with _working(replies), _working(answers):
        yield BotSchool(stack, core, provider)
    await core.client.close()


@asynccontextmanager
async def _working(of: ReplyWorker | AnswerWorker) -> AsyncIterator[None]:
    await of.open()
    worker = of.worker()
    working = asyncio.create_task(worker.run())
    yield
    worker.stop()
    await working


async def test_a_reply_to_a_bot_reaches_the_sender_once_and_the_answer_comes_back(school: BotSchool) -> None:
    """Two processes of the bot: Telegram pushes each message to both."""
    for _ in range(2):
        await school.open_courier()
    number = await school.send("No classes")
    server = school.provider.server
    (written,) = server.write(MARIA, "And tomorrow?", reply_to=number)
    await school.arrives("And tomorrow?")
    (thread,) = await school.threads(Inbox("user", "7"))
    assert (thread.person.name, thread.way) == ("Maria", ReplyRoute("telegram", MARIA))
    server.edit(MARIA, written, "And on Friday?")
    await school.arrives("And on Friday?")
    await school.core.relay.to_person(thread, User(7, "Anna"), 7, Written("e1", "As usual"), "")
    await until(lambda: "Anna отвечает:\nAs usual" in school.provider.received(MARIA))
    server.write(MARIA, "Thank you")
    await school.arrives("Thank you")
    assert sorted(await school.texts()) == ["And on Friday?", "And tomorrow?", "As usual", "Thank you"]
    server.write(MARIA, "СТОП")
    await until(lambda: "Больше не пишем вам сюда. Вернуть: СТАРТ" in school.provider.received(MARIA))


async def test_what_belongs_to_no_message_goes_to_the_office_and_start_alone_does_not(school: BotSchool) -> None:
    await school.open_courier()
    school.provider.server.write("100555", "/start")
    school.provider.server.write("100555", "Is somebody here?")
    await school.arrives("Is somebody here?", inbox=Inbox("office", "dean"))
    assert await school.texts(Inbox("office", "dean")) == ["Is somebody here?"]


@pytest.mark.parametrize("office", [""])
async def test_who_writes_what_nobody_reads_gets_a_notice(school: BotSchool) -> None:
    await school.open_courier()
    for text in ("Is somebody here?", "Hello?"):
        school.provider.server.write("100555", text)
    notice = "Nobody reads what is written here."
    await until(lambda: school.provider.received("100555") == [notice])


async def test_what_is_written_while_no_process_runs_is_read_at_the_next_start(school: BotSchool) -> None:
    runtime = await school.open_courier()
    number = await school.send("No classes")
    await school.stack.stop(runtime)
    school.provider.server.write(MARIA, "And tomorrow?", reply_to=number)
    await school.open_courier()
    await school.arrives("And tomorrow?")


async def test_a_process_that_ends_before_it_has_stored_its_position_doubles_nothing(
    school: BotSchool, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = await school.open_courier()
    number = await school.send("No classes")

    async def never(*_: Any) -> None:
        await asyncio.Event().wait()

    with monkeypatch.context() as broken:
        broken.setattr(Poller, "_save", never)
        school.provider.server.write(MARIA, "And tomorrow?", reply_to=number)
        await school.arrives("And tomorrow?")
        await school.stack.stop(runtime)
    await school.open_courier()
    school.provider.server.write(MARIA, "Hello?", reply_to=number)
    await school.arrives("Hello?")
    assert sorted(await school.texts()) == ["And tomorrow?", "Hello?"]


async def test_an_album_is_one_message_with_its_files(school: BotSchool) -> None:
    await school.open_courier()
    number = await school.send("Your homework, please")
    for name in ("a.png", "b.png"):
        file = StoredFile("photo", name, PHOTO)
        school.provider.server.write(
            MARIA, "Here it is" if name == "a.png" else "", reply_to=number, file=file, grouped_id=77
        )
    await school.arrives("Here it is")
    (thread,) = await school.threads(Inbox("user", "7"))
    (message,) = await school.core.threads.messages(thread, 0, 9)
    assert ([one.name for one in message.attachments], message.files) == (["photo.png", "photo.png"], 0)


async def test_a_press_answers_the_question_and_the_button_shows_it(school: BotSchool) -> None:
    for _ in range(2):
        await school.open_courier()
    number = await school.send("Will you come?", Question(AnswerKind.CONFIRM, [Option("yes", "I come")], "en"))
    (message,) = [one for one in school.messages() if one.id == number]
    ((label,),) = message.buttons
    query = school.provider.server.press(MARIA, number, label)
    await until(lambda: school.provider.server.press_answer(query) is not None)

    def shown() -> list[list[str]]:
        return [*next(one for one in school.messages() if one.id == number).buttons]

    await until(lambda: shown() == [[f"✓ {label}"]])


async def test_a_bot_that_the_bot_api_receives_for_is_not_read_twice(school: BotSchool) -> None:
    """Its messages are noted for the channel whose process reads."""
    courier = await school.provider.open()
    assert isinstance(courier, SignsInAsBot)
    courier.leave_replies_to("telegram-bot")
    await school.stack.courier(courier, replace(QUICK, tenant=TENANT))
    before = school.provider.state.counter("telegram", "getDifference")
    delivery = NewDelivery(TENANT, Sender(7), "No classes", (), ["telegram"], replies="sender")
    await school.core.sending.send(Order(delivery, [Addressee(1)]), Caller(TENANT, is_admin=True))
    received = ReceivedMessages(school.stack.store)
    await until(lambda: received.last(TENANT, "telegram-bot", MARIA, 0))
    school.provider.server.write(MARIA, "And tomorrow?")
    assert school.provider.state.counter("telegram", "getDifference") == before


@pytest.mark.parametrize(
    ("token", "of_folder", "reader"),
    [
        ("", "", "telegram"),
        ("4343:sandbox", "4343:sandbox", "telegram"),
        ("4242:sandbox", "", "telegram-bot"),
        ("4242:revoked", "", "telegram-bot"),
        ("4343:sandbox", "4242:sandbox", "telegram-bot"),
    ],
)
async def test_of_a_bot_that_two_channels_have_one_reads(
    school: BotSchool, tmp_path: Path, token: str, of_folder: str, reader: str
) -> None:
    """The number before the colon of a token is the bot's."""
    own = school.provider.settings()
    settings = {"ADA_TELEGRAM_API_ID": "1", "ADA_TELEGRAM_API_HASH": "hash", "ADA_TELEGRAM_BOT_TOKEN": "4242:sandbox"}
    settings |= {"ADA_TELEGRAM_SERVER": str(own.server), "ADA_TELEGRAM_SERVER_KEY": str(own.server_key)}
    settings |= {"ADA_BOT_TOKEN": token} if token else {}
    if of_folder:
        folder = tmp_path / "bots" / "school-5"
        (folder / "scenarios").mkdir(parents=True)
        (folder / ".env").write_text(f"ADA_BOT_TOKEN={of_folder}\n")
        settings["ADA_SCENARIOS"] = str(tmp_path / "bots")
    couriers = Couriers(
        load(settings, Path("/nowhere"), may_receive=receiver("telegram")), "telegram", tmp_path, school.stack.store
    )
    await couriers.folders.check()
    courier: object = couriers.runtime.only
    assert isinstance(courier, SignsInAsBot)
    assert (courier.replies_in, courier.bot is not None) == (reader, reader == "telegram")
    await couriers.runtime.remove(EVERY_TENANT)
    await couriers.close()
