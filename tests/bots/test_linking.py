"""A person links the chat by a mailed code and unlinks it; each case of D-28 has its own answer."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta

import pytest

from bots.catalogue import text
from bots.conversation.linking import LinkingConversation
from bots.conversation.state import IDLE_STATE, State
from bots.dialog_event import DialogEvent
from core.directory import Directory
from core.directory.linking import ALPHABET, MOST_GUESSES, MOST_MAILS, Linking
from core.directory.preferences import Preferences
from core.model.people import User
from core.redis.store import Store
from couriers.email import LinkCodeMailer
from tests.support.outbox import Outbox
from tests.support.servers import Server

TENANT = "university"
CHANNEL = "telegram-bot"
ANNA = User(1, "Анна", "anna@example.org", "trainer", "en", {"sms": ["+79991112233"]})


@dataclass
class Chat:
    """The chat of one person with the bot."""

    conversation: LinkingConversation
    directory: Directory
    outbox: Outbox
    store: Store
    address: str = "100001"
    state: State = IDLE_STATE

    async def write(self, written: str) -> str:
        """Write to the bot; return the text of its only answer, "" if linking does not answer."""
        event = DialogEvent("1", CHANNEL, self.address, "", "en", written)
        user = await self.directory.users.by_contact(TENANT, CHANNEL, self.address)
        turn = await self.conversation.answer(event, user, self.state)
        if turn is None:
            return ""
        self.state = turn.state
        (reply,) = turn.replies
        return reply.text


@pytest.fixture
async def chat(clean_server: Server) -> AsyncIterator[Chat]:
    store, outbox = await Store.open(clean_server.url), Outbox()
    directory = Directory(store)
    await directory.users.create(TENANT, ANNA)
    yield Chat(
        LinkingConversation(
            Linking(store, directory, LinkCodeMailer(outbox)), directory, Preferences(store, directory), TENANT
        ),
        directory,
        outbox,
        store,
    )
    await store.close()


def wrong(code: str) -> str:
    return code[:-1] + next(letter for letter in ALPHABET if letter != code[-1])


async def test_the_mailed_code_links_the_chat(chat: Chat) -> None:
    assert await chat.write("/start") == text("link_start", "en")
    assert await chat.write("Anna@example.org") == text(
        "link_code_mailed", "en", email="Anna@example.org", time="24 min"
    )
    assert await chat.write(chat.outbox.codes[0].lower()) == text(
        "link_done", "en", name="Анна", help=text("help_teacher", "en")
    )
    linked = await chat.directory.users.find(TENANT, 1)
    assert linked.contacts == {"sms": ["+79991112233"], CHANNEL: ["100001"]}


async def test_an_unknown_email_address_has_its_own_answer(chat: Chat) -> None:
    assert await chat.write("nobody@example.org") == text("link_email_unknown", "en")


async def test_a_chat_that_is_linked_already_has_its_own_answer(chat: Chat) -> None:
    await chat.directory.users.add_contact(TENANT, 1, CHANNEL, chat.address)
    assert await chat.write("anna@example.org") == text("link_contact_linked", "en")


async def test_a_code_that_was_not_requested_has_its_own_answer(chat: Chat) -> None:
    assert await chat.write("ABC234") == text("link_code_missing", "en")


async def test_a_wrong_code_has_its_own_answer_and_may_be_corrected(chat: Chat) -> None:
    await chat.write("anna@example.org")
    (code,) = chat.outbox.codes
    assert await chat.write(wrong(code)) == text("link_code_wrong", "en")
    assert await chat.write("not a code at all") == text("link_code_wrong", "en")
    assert "Done" in await chat.write(code)


async def test_an_expired_code_has_its_own_answer(chat: Chat) -> None:
    await chat.write("anna@example.org")
    chat.store.clock_offset_ms += timedelta(minutes=25) // timedelta(milliseconds=1)
    assert await chat.write(chat.outbox.codes[0]) == text("link_code_expired", "en")


async def test_after_too_many_guesses_the_code_is_void(chat: Chat) -> None:
    await chat.write("anna@example.org")
    (code,) = chat.outbox.codes
    for _ in range(MOST_GUESSES):
        assert await chat.write(wrong(code)) == text("link_code_wrong", "en")
    assert await chat.write(code) == text("link_too_many_guesses", "en")


async def test_after_too_many_mails_the_answer_names_the_remaining_time(chat: Chat) -> None:
    for _ in range(MOST_MAILS):
        await chat.write("anna@example.org")
    assert await chat.write("anna@example.org") == text("link_too_many_mails", "en", time="1 h")


async def test_a_text_with_an_at_sign_that_is_no_email_address_is_refused(chat: Chat) -> None:
    assert await chat.write("anna@example.org\r\nBcc: all@example.org") == text("link_email_malformed", "en")
    assert chat.outbox.sent == []


async def test_a_mail_server_that_is_down_has_its_own_answer(chat: Chat) -> None:
    chat.outbox.is_down = True
    assert await chat.write("anna@example.org") == text("link_mail_unavailable", "en")


async def test_a_code_that_has_linked_in_an_interrupted_attempt_is_answered_as_linked(chat: Chat) -> None:
    await chat.write("anna@example.org")
    waiting = chat.state
    first = await chat.write(chat.outbox.codes[0])
    chat.state = waiting
    assert await chat.write(chat.outbox.codes[0]) == first


async def test_unlinking_removes_only_this_contact(chat: Chat) -> None:
    await chat.directory.users.add_contact(TENANT, 1, CHANNEL, chat.address)
    assert await chat.write("/unlink") == text("link_unlinked", "en")
    assert (await chat.directory.users.find(TENANT, 1)).contacts == ANNA.contacts
    assert await chat.write("/unlink") == text("link_not_linked", "en")


@pytest.mark.parametrize(
    ("role", "name"),
    [("student", "student"), ("trainer", "teacher"), ("staff", "teacher"), ("admin", "admin"), (None, "student")],
)
async def test_the_help_is_that_of_the_role(chat: Chat, role: str | None, name: str) -> None:
    user = User(2, "Пётр", None, role, "ru", {CHANNEL: ["100002"]})
    await chat.directory.users.create(TENANT, user)
    chat.address = "100002"
    assert await chat.write("/help@ada_bot") == text(f"help_{name}", "ru")


async def test_the_help_of_somebody_unknown_explains_the_start(chat: Chat) -> None:
    assert await chat.write("/help") == text("help_guest", "en")


async def test_what_a_linked_person_writes_is_left_to_others(chat: Chat) -> None:
    await chat.directory.users.add_contact(TENANT, 1, CHANNEL, chat.address)
    assert await chat.write("Hello") == ""
