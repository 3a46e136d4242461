"""What changes appears on an open page: by the stream, and by reading again while there is no stream."""

import uuid

from core.redis.store import Store
from core.threads.threads import Correspondent, Inbox, ReplyRoute, ThreadMessage, Threads
from tests.delivery.console.conftest import Person
from tests.delivery.console.test_daily_work import signed_in
from tests.delivery.console.test_writing import send

NO_POLLS = "window.setInterval = () => 0, 1"


async def test_a_message_that_a_program_sends_appears_by_the_stream_alone(person: Person) -> None:
    await person.visit("home")
    await person.browser.run(NO_POLLS)
    await person.go("messages")
    await person.browser.wait_for("Boolean(document.querySelector('.badge.live'))")
    await send(person, "It came by the stream")
    await person.sees("It came by the stream")
    await person.keeps_picture("messages-live-en-1280")
    focused = "document.activeElement.href"
    await person.browser.run("document.querySelector('.rows a[href]').focus()")
    row = await person.browser.run(focused)
    await send(person, "It came while a row had the focus")
    await person.sees("1 new")
    assert await person.browser.run(focused) == row
    await person.presses("1 new. Show it")
    await person.sees("It came while a row had the focus")
    assert await person.browser.run("document.activeElement.isConnected")
    await person.go("tubes")
    await person.browser.wait_for("Boolean(document.querySelector('.badge.live'))")


async def test_a_reply_appears_in_the_inbox_and_in_its_open_thread_by_the_stream_alone(
    person: Person, store: Store
) -> None:
    teacher, own = await signed_in(person, store, "trainer")

    async def reply(text: str) -> str:
        about = Correspondent("maria", "Мария"), ReplyRoute("sms", "+79991112204"), "", uuid.uuid4().hex
        message = ThreadMessage(0, "person", 0, "maria", text, "sms")
        return (await Threads(store).add_of_person("default", Inbox("user", own), *about, message)).thread

    await teacher.visit("home")
    await teacher.browser.run(NO_POLLS)
    await teacher.go("inbox")
    await teacher.browser.wait_for("Boolean(document.querySelector('.badge.live'))")
    thread = await reply("Is it on Friday?")
    await teacher.sees("Is it on Friday?")
    await teacher.go(f"thread/{thread}")
    await teacher.writes("Your answer", "Yes, half wri")
    await reply("Or on Monday?")
    await teacher.sees("Or on Monday?")
    assert await teacher.browser.run("document.querySelector('textarea').value") == "Yes, half wri"


async def test_a_page_without_its_stream_says_how_old_it_is_and_is_read_again(person: Person) -> None:
    await person.browser.block("*/v1/live*")
    await person.visit("messages", width=390)
    await person.browser.wait_for("Boolean(document.querySelector('.badge.behind'))")
    await send(person, "It came without a stream")
    await person.sees("It came without a stream")
    await person.keeps_picture("messages-behind-en-390")
    await person.browser.block()
    await person.browser.wait_for("Boolean(document.querySelector('.badge.live'))")
