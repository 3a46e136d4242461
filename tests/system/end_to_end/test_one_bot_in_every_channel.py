"""One bot, written once, serves Telegram, VK, MAX, SMS and a channel of one's own: all processes, and the sandbox."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from cli.processes.embedded_valkey import free_port
from sandbox.sandbox import Sandbox
from tests.couriers.file_server import PICTURE
from tests.support.servers import Server
from tests.support.waiting import until
from tests.system.crash.api_client import KEY, ApiClient
from tests.system.crash.installation import Installation
from tests.system.end_to_end.chat import Chat, Phone

VK_CHAT = "2000000001"
TELEGRAM_USER, VK_USER, MAX_USER, NUMBER = 100_001, "200001", 300_001, "+79990100001"
MAX_GROUP = -70_001
SECRET = "inbound"
PROCESSES = (
    ("serve",), ("scenarios",), ("bot", "telegram"), ("bot", "vk"), ("bot", "max"),
    ("courier", "telegram-bot"), ("courier", "vk"), ("courier", "max"), ("courier", "sms"), ("courier", "echo"),
)  # fmt: skip
TRIGGERS = """\
text:
  exact: {меню: days.ask, завтра: days.tomorrow, комнаты: days.rooms, табло: days.board, место: days.seat,
          план: days.plan}
new_member: {default: days.joined}
left_member: {default: days.left}
"""
DAYS = """\
ask:
  actions:
    - {type: send, text: "<b>Какой день?</b>", inline: [[{"Сегодня": today}, {"Завтра": tomorrow}]]}
today:
  actions:
    - {type: send, text: "Сегодня пар нет"}
tomorrow:
  actions:
    - {type: typing}
    - {type: send, text: "Завтра: <i>физика</i>"}
    - {type: send, text: "Расписание", attachment: schedule.png, callback_edit: false, chain: completed}
rooms:
  actions:
    - {type: ask, text: "Какая комната?", options: [101, 102, 103, 104, 105, 106, 107], page: 3}
    - {type: send, text: "Ключ от {answer}", chain: completed}
board:
  actions:
    - {type: send, text: "Свободно 2 места", attachment: schedule.png, inline: [["Обновить"]]}
    - {type: set, variables: {person.board: "{last_message_id}"}, chain: completed}
seat:
  actions:
    - {type: ask, text: "Чьё место?"}
    - {type: send, exact_message_id: "{person.board}", text: "Занято: <i>{answer}</i>",
       inline: [["Занять", "Обновить"]], chain: completed}
plan:
  actions:
    - {type: send, exact_message_id: "{person.board}", text: "План зала", attachment: plan.pdf}
joined: {actions: [{type: send, text: "{joined_user_ids} теперь с нами"}]}
left: {actions: [{type: send, text: "{user_id} уходит, {initiator_user_id} провожает"}]}
"""


@pytest.fixture
async def installation(own_server: Server, tmp_path: Path) -> AsyncIterator[Installation]:
    sandbox = Sandbox(tmp_path / "sandbox")
    await sandbox.start()
    opened = await Installation.open(own_server, sandbox, tmp_path)
    yield opened
    await opened.close()
    await sandbox.stop()


def write_bot(folder: Path) -> Path:
    (folder / "scenarios").mkdir(parents=True)
    (folder / "variables.yaml").write_text("person: {board: text}")
    (folder / "triggers.yaml").write_text(TRIGGERS, encoding="utf-8")
    (folder / "group_triggers.yaml").write_text('text: {exact: {"меню": days.ask}}\n', encoding="utf-8")
    (folder / "scenarios" / "days.yaml").write_text(DAYS, encoding="utf-8")
    (folder / "schedule.png").write_bytes(PICTURE)
    (folder / "plan.pdf").write_bytes(b"%PDF-1.4")
    return folder


async def start(installation: Installation, bot: Path) -> str:
    """Start all processes; returns the address of the API."""
    address = f"127.0.0.1:{free_port()}"
    settings = {
        "ADA_HTTP": address,
        "ADA_API_KEY": KEY,
        "ADA_SCENARIOS": str(bot),
        "ADA_VK_LONG_POLL": "1",
        "ADA_INBOUND_SMS_SECRET": SECRET,
    }
    started = [installation.start(*arguments, **settings) for arguments in PROCESSES]
    await asyncio.gather(*(process.ready() for process in started))
    return f"http://{address}"


async def find(installation: Installation, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Wait for a message in the VK chat, as the person sees it."""
    vk = installation.sandbox.vk.people

    def found() -> dict[str, Any] | None:
        shown = [vk.shown(VK_USER, one.reference) for one in installation.state.inbox("vk", VK_USER)]
        return next((one for one in shown if one and wanted(one)), None)

    message = await until(found, within=60)
    assert message
    return dict(message)


async def test_the_same_scenario_serves_telegram_vk_max_sms_and_the_web(
    installation: Installation, tmp_path: Path
) -> None:
    api = await start(installation, write_bot(tmp_path / "bot"))
    await asyncio.gather(
        talk_in_telegram(installation),
        talk_in_vk(installation),
        talk_in_max(installation),
        talk_by_sms(installation, f"{api}/v1/inbound/sms?secret={SECRET}&from=%p&to=%P&text=%b&time=%t&id=%I"),
        talk_on_the_web(installation.client_at(api), tmp_path / "data" / "couriers" / "echo" / "echo.jsonl"),
    )
    marks = (("telegram-bot", "sendChatAction"), ("vk", "messages.setActivity"), ("max", "sendAction"))
    await until(lambda: [installation.state.counter(*mark) for mark in marks] == [1, 1, 1], within=60)


async def talk_in_telegram(installation: Installation) -> None:
    chat = Chat(installation.sandbox, TELEGRAM_USER)
    chat.write("меню")
    await chat.reads("Какой день?")
    await chat.press("Завтра")
    await chat.reads("Расписание")
    assert (chat.count("Какой день?"), chat.count("Завтра: физика")) == (0, 1), "the message was edited"
    chat.write("комнаты")
    await chat.press("Стр. 2 из 3 ›")
    await chat.press("105")
    await chat.reads("Ключ от 105")
    assert chat.count("Какая комната?") == 1, "the page was turned in place"
    chat.write("табло")
    await chat.reads("Свободно 2 места")
    chat.write("место")
    await chat.reads("Чьё место?")
    chat.write("Анна")
    await chat.reads("Занято: Анна")
    messages = installation.sandbox.bot_api.people.shown(TELEGRAM_USER)["messages"]
    board = next(message for message in messages if message["text"] == "Занято: Анна")
    assert (len(board["buttons"][0]), len(board["files"]), chat.count("Свободно")) == (2, 1, 0)
    chat.write("план")
    await chat.reads("План зала")
    plan = next(one for one in installation.sandbox.bot_api.people.messages(TELEGRAM_USER) if "document" in one)
    assert (plan["caption"], "photo" in plan, chat.count("Занято: Анна")) == ("План зала", False, 0)


async def talk_in_vk(installation: Installation) -> None:
    vk = installation.sandbox.vk.people
    vk.write(VK_USER, "меню")
    question = await find(installation, lambda one: one["text"] == "Какой день?")
    vk.press(VK_USER, question["number"], "Завтра")
    schedule = await find(installation, lambda one: one["text"] == "Расписание")
    assert [(file["type"], file["name"]) for file in schedule["files"]] == [("photo", "schedule.png")]
    edited = await find(installation, lambda one: one["number"] == question["number"])
    assert (edited["text"], edited["edited"]) == ("Завтра: физика", True)
    await until(lambda: vk.answers(VK_USER), within=60)  # the button no longer shows that it waits
    vk.write(VK_USER, "комнаты")
    rooms = await find(installation, lambda one: one["text"] == "Какая комната?")
    vk.press(VK_USER, rooms["number"], "Стр. 2 из 3 ›")
    await find(installation, lambda one: one["number"] == rooms["number"] and one["edited"])
    vk.press(VK_USER, rooms["number"], "105")
    await find(installation, lambda one: one["text"] == "Ключ от 105")
    vk.write(VK_USER, "табло")
    board = await find(installation, lambda one: one["text"] == "Свободно 2 места")
    vk.write(VK_USER, "место")
    await find(installation, lambda one: one["text"] == "Чьё место?")
    vk.write(VK_USER, "Анна")
    taken = await find(installation, lambda one: one["text"] == "Занято: Анна")
    assert (taken["number"], taken["edited"], len(taken["buttons"][0])) == (board["number"], True, 2)
    assert taken["files"] == board["files"]
    vk.join("200002", VK_CHAT, added_by=VK_USER)
    vk.leave("200002", VK_CHAT)
    await until(lambda: len(installation.state.inbox("vk", VK_CHAT)) == 2, within=60)
    said = [message.text for message in installation.state.inbox("vk", VK_CHAT)]
    assert said == ["200002 теперь с нами", "200002 уходит, 200002 провожает"]


async def talk_in_max(installation: Installation) -> None:
    """In a dialog and in a group; a person may share the own contact at any time."""
    people = installation.sandbox.max.people

    def shown(wanted: str, group: int = 0) -> dict[str, Any] | None:
        messages = people.shown(MAX_USER, group)["messages"]
        return next((one for one in messages if one["from"] == "bot" and one["text"] == wanted), None)

    people.share_contact(MAX_USER, NUMBER)
    people.write(MAX_USER, "меню")
    question = await until(lambda: shown("Какой день?"), within=60)
    assert question
    people.press(MAX_USER, question["id"], "Завтра")
    schedule = await until(lambda: shown("Расписание"), within=60)
    assert schedule
    assert [file["type"] for file in schedule["files"]] == ["image"]
    edited = shown("Завтра: физика")
    assert edited
    assert (edited["id"], edited["edited"], edited["buttons"]) == (question["id"], True, [])
    people.write(MAX_USER, "комнаты")
    rooms = await until(lambda: shown("Какая комната?"), within=60)
    assert rooms
    people.press(MAX_USER, rooms["id"], "Стр. 2 из 3 ›")
    await until(lambda: (shown("Какая комната?") or rooms)["edited"], within=60)
    people.press(MAX_USER, rooms["id"], "105")
    assert await until(lambda: shown("Ключ от 105"), within=60)
    people.write(MAX_USER, "табло")
    board = await until(lambda: shown("Свободно 2 места"), within=60)
    people.write(MAX_USER, "место")
    await until(lambda: shown("Чьё место?"), within=60)
    people.write(MAX_USER, "Анна")
    taken = await until(lambda: shown("Занято: Анна"), within=60)
    assert board
    assert taken
    assert taken["files"] == board["files"] != []
    assert (taken["id"], taken["edited"], len(taken["buttons"][0])) == (board["id"], True, 2)
    people.write(MAX_USER, "меню", MAX_GROUP)
    assert await until(lambda: shown("Какой день?", MAX_GROUP), within=60)


async def talk_by_sms(installation: Installation, inbound: str) -> None:
    phone = Phone(installation.sandbox, NUMBER, inbound)
    await phone.write("меню")
    assert await phone.reads("Какой день?") == "Какой день?\n1. Сегодня\n2. Завтра"
    await phone.write("2")
    await phone.reads("Расписание")
    texts = [one.text for one in installation.state.inbox("sms", NUMBER)]
    assert texts[1:] == ["Завтра: физика", "Расписание"]
    await until(lambda: photo_is_recorded(installation), within=60)
    await phone.write("комнаты")
    assert await phone.reads("Какая") == "Какая комната?\n1. 101\n2. 102\n3. 103\n4. Стр. 2 из 3 ›"
    await phone.write("4")
    assert await phone.reads("Какая") == "Какая комната?\n1. 104\n2. 105\n3. 106\n4. ‹ Стр. 1 из 3\n5. Стр. 3 из 3 ›"
    await phone.write("2")
    await phone.reads("Ключ от 105")


async def talk_on_the_web(api: ApiClient, page: Path) -> None:
    """A site posts what its visitor writes, and shows what its courier writes to a file."""

    def shown() -> list[str]:
        return [json.loads(line)["text"] for line in page.read_text(encoding="utf-8").splitlines()]

    for text, answers in (("меню", 1), ("завтра", 3)):
        event = {"channel": "echo", "user_id": "visitor-1", "event_text": text}
        status, _ = await api.request("POST", "/v1/updates", event)
        assert status == 202
        await until(lambda count=answers: len(shown()) == count, within=60)  # type: ignore[misc]  # mypy infers no default
    assert shown() == ["Какой день?", "Завтра: физика", "Расписание"]


async def photo_is_recorded(installation: Installation) -> bool:
    """Whether a history says that the photo was not shown by SMS."""
    deliveries = installation.core.deliveries
    listed, _ = await deliveries.list("default")
    for summary in listed:
        history = await deliveries.read(summary.key, "default")
        if history.text == "Расписание" and "sms" in history.recipients[0].outcomes:
            return list(history.recipients[0].outcomes["sms"].not_shown) == ["photo"]
    return False
