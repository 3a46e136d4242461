"""Updates of MAX as events; the updates are those that the sandbox's people cause."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from core.updates.events import checked, is_private
from couriers.max.events import read_arrival
from sandbox.max.bot import BOT_ID, Bot
from sandbox.max.people_actions import PeopleActions
from sandbox.max.updates import Updates
from sandbox.max.uploads import UploadedFile
from sandbox.state import SandboxState

ANNA, GROUP = 300_001, -70_001
PICTURE = UploadedFile("image", "a-token", "a.png", "image/png", b"png")


class People:
    """The people of the sandbox, and the updates of what they do."""

    def __init__(self) -> None:
        self.updates = Updates()
        self.bot = Bot(SandboxState(), self.updates)
        self.actions = PeopleActions(self.bot)

    def all(self) -> list[Any]:
        return [one for _, one in self.updates._events]


@pytest.fixture
def people() -> People:
    return People()


def read(update: Any) -> dict[str, Any] | None:
    arrival = read_arrival(update, datetime.now(UTC))
    return checked({**arrival.event, "source": "bot"}) if arrival else None


def press(actions: PeopleActions, bot: Bot) -> None:
    button = {"type": "callback", "text": "Да", "payload": "yes"}
    keyboard = {"type": "inline_keyboard", "payload": {"buttons": [[button]]}}
    sent = bot.send(bot.chats.dialog(ANNA), {"text": "?", "attachments": [keyboard]})
    actions.press(ANNA, sent["body"]["mid"], "Да")


def file(people: PeopleActions, _: Bot) -> object:
    return people.send_file(ANNA, PICTURE, "вот")


CONTACT = {"type": "contact", "phone": "+79990000001", "is_own": True}
PRIVATE = {"chat_id": ANNA, "chat_type": "private"}
DONE: list[tuple[Callable[[PeopleActions, Bot], object], dict[str, Any]]] = [
    (lambda people, _: people.write(ANNA, "Привет"), {"kind": "text", "event_text": "Привет", **PRIVATE}),
    (lambda people, _: people.write(ANNA, "x", name="Анна"), {"first_name": "Анна", "language_code": "ru"}),
    (lambda people, _: people.write(ANNA, "x", GROUP), {"kind": "text", "chat_id": GROUP, "chat_type": "group"}),
    (lambda people, _: people.start(ANNA, "group-7"), {"kind": "text", "event_text": "/start group-7", **PRIVATE}),
    (lambda people, _: people.start(ANNA), {"kind": "text", "event_text": "/start"}),
    (press, {"kind": "callback", "callback_data": "yes", "chat_id": ANNA}),
    (lambda people, _: people.join(ANNA, GROUP), {"kind": "new_member", "joined_user_ids": [ANNA], "chat_id": GROUP}),
    (lambda people, _: people.leave(ANNA, GROUP), {"kind": "left_member", "chat_id": GROUP}),
    (file, {"event_text": "вот", "attachments": [{"type": "photo", "file_id": "a-token"}]}),
    (lambda people, _: people.share_contact(ANNA, "+79990000001"), {"attachments": [CONTACT]}),
    (lambda people, _: people.edit(ANNA, people.write(ANNA, "one"), "two"), {"kind": "edited", "event_text": "two"}),
]


@pytest.mark.parametrize(("act", "wanted"), DONE)
def test_what_people_do_is_an_event(
    people: People, act: Callable[[PeopleActions, Bot], object], wanted: dict[str, Any]
) -> None:
    act(people.actions, people.bot)
    event = read(people.all()[-1])
    assert event is not None
    assert {name: event.get(name) for name in wanted} == wanted
    assert (event["channel"], event["user_id"]) == ("max", ANNA)
    assert is_private(event) == (event["chat_id"] == ANNA)


def test_a_repeat_has_the_same_id_and_another_update_another_one(people: People) -> None:
    for text in ("one", "one"):
        people.actions.write(ANNA, text)
    people.actions.start(ANNA)
    ids = [read(one)["id"] for one in [*people.all(), *people.all()]]  # type: ignore[index]  # each is an event
    assert ids[:3] == ids[3:]
    assert len(set(ids)) == 3


def test_a_reply_names_the_message_and_its_writer(people: People) -> None:
    sent = people.bot.send(people.bot.chats.dialog(ANNA), {"text": "?"})
    people.actions.write(ANNA, "да", reply_to=sent["body"]["mid"])
    event = read(people.all()[-1]) or {}
    assert (event["reply_message_id"], event["reply_message_text"]) == (sent["body"]["mid"], "?")
    assert event["reply_user_id"] == BOT_ID


def test_marks_are_read_as_html_and_markdown() -> None:
    body = {"mid": "mid.1", "text": "жирно", "markup": [{"type": "strong", "from": 0, "length": 5}]}
    message = {"sender": {"user_id": 1}, "recipient": {"chat_type": "dialog", "chat_id": 2}, "body": body}
    event = read({"update_type": "message_created", "timestamp": 1, "message": message}) or {}
    assert (event["event_text_html"], event["event_text_markdown"]) == ("<b>жирно</b>", "*жирно*")


@pytest.mark.parametrize(
    "update",
    [
        {},
        {"update_type": "message_created"},
        {"update_type": "bot_added", "timestamp": 1, "chat_id": -1, "user": {"user_id": 1}},
        {"update_type": "dialog_muted", "timestamp": 1},
        {"update_type": "message_created", "timestamp": 1, "message": {"sender": {"is_bot": True}, "body": {}}},
        {"update_type": "bot_started", "timestamp": 10**30, "user": {"user_id": 1}},
    ],
)
def test_what_is_no_event_is_left_out(update: Any) -> None:
    assert read(update) is None
