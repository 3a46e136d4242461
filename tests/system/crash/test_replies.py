"""Replies in the real processes: one that is killed between the reply and its thread, or between the thread and the
relayed message, loses nothing and doubles nothing. So does the bot's process that is killed while it fetches files.
"""

import asyncio
from contextlib import suppress

import pytest
from aiohttp import ClientError

from core.deliveries.received import ReceivedMessages
from core.directory import Directory
from core.errors import NotFound
from core.model.history_key import DEFAULT_TENANT
from core.model.people import User
from core.queue.task import TaskFilter
from core.threads import Inbox, ThreadMessage, Threads
from core.threads.threads import Correspondent, ReplyRoute
from sandbox.bot_api.state.parameters import Upload
from tests.core.threads.test_metadata import GREY
from tests.support.stack import TENANT
from tests.support.waiting import until
from tests.system.crash.installation import TELEGRAM_BOT, Installation, person

WITHIN = 60.0
TEACHER, STUDENT = TELEGRAM_BOT.address(7), TELEGRAM_BOT.address(1)
ADD, RELAY = b"_add_to_thread\r\n", "отвечает на".encode()
"""Bytes in the requests that add a message to a thread, and that send a relayed one."""
NOTED = b":files:"
"""Bytes of the key by which the bot's process notes the files that it has stored."""


def texts(installation: Installation, address: str) -> list[str]:
    """Return what the bot has written to an account."""
    shown = installation.sandbox.bot_api.people.shown(int(address))["messages"]
    return [one["text"] for one in shown if one["from"] == "bot"]


async def add_people(installation: Installation) -> None:
    users = Directory(installation.core.store).users
    for number, name, address in ((7, "Anna", TEACHER), (1, "Maria", STUDENT)):
        await users.create(TENANT, User(number, name, role="trainer", contacts={TELEGRAM_BOT.name: [address]}))


@pytest.mark.parametrize(
    ("point", "bytes_of_call"),
    [
        ("before the thread", ADD),
        ("after the thread", ADD),
        ("before the relay", RELAY),
        ("after the relay", RELAY),
    ],
)
async def test_a_killed_process_loses_no_reply_and_relays_none_twice(
    installation: Installation, point: str, bytes_of_call: bytes
) -> None:
    await add_people(installation)
    link, settings = await installation.link_to_server()
    bot = installation.start("bot", "telegram", ADA_BOT_TENANT=TENANT)
    await installation.courier(TELEGRAM_BOT)
    await bot.ready()
    api = installation.start_api(**settings)
    await api.ready()
    people = installation.sandbox.bot_api.people
    await installation.deliver(person(1, TELEGRAM_BOT), replies="sender")
    await until(lambda: texts(installation, STUDENT), within=WITHIN)
    received = ReceivedMessages(installation.core.store)
    await until(lambda: received.last(TENANT, TELEGRAM_BOT.name, STUDENT, 0), within=WITHIN)
    (link.block_requests if point.startswith("before") else link.block_replies)(bytes_of_call)
    message = people.shown(int(STUDENT))["messages"][0]["id"]
    people.reply(int(STUDENT), message, "Which room?")
    await until(lambda: link.blocked, within=WITHIN)
    api.kill()
    link.cut()
    await installation.end_leases()
    await installation.start_api().ready()
    await until(lambda: texts(installation, TEACHER) and len(texts(installation, STUDENT)) == 2, within=WITHIN)
    await until(installation.is_empty, within=WITHIN)
    (relayed,) = texts(installation, TEACHER)
    assert relayed.startswith("Maria отвечает на ")
    assert texts(installation, STUDENT)[1:] == ["Передано: Anna."]
    (thread,), _ = await Threads(installation.core.store).page(TENANT, Inbox("user", "7"), None, 10)
    assert (thread.messages, thread.unread) == (1, 1)
    await installation.audit()


async def test_a_kill_between_merging_two_people_and_their_threads_is_made_good_after_a_restart(
    installation: Installation,
) -> None:
    core = installation.core
    for number in (1, 2):
        await Directory(core.store).users.create(DEFAULT_TENANT, User(number, "Maria"))
    threads, way = Threads(core.store), ReplyRoute(TELEGRAM_BOT.name, STUDENT)
    message = ThreadMessage(0, "person", 0, 1, "Hello")
    place = DEFAULT_TENANT, Inbox("user", "7"), Correspondent(1, "Maria"), way, "", "e1"
    added = await threads.add_of_person(*place, message)
    link, settings = await installation.link_to_server()
    api = installation.start_api(**settings)
    client = await installation.client_of(api)
    link.block_replies(b"_merge_users\r\n")
    merging = asyncio.create_task(client.request("POST", "/v1/users/2:merge", {"other": 1}))
    await until(lambda: link.blocked, within=WITHIN)
    api.kill()
    link.cut()
    with pytest.raises(ClientError):
        await merging
    assert await Directory(core.store).users.lookup(DEFAULT_TENANT, [1]) == [None]
    assert await threads.of_person(DEFAULT_TENANT, 2) == []
    await installation.start_api().ready()
    for task in (await core.queue.inspector.list(TaskFilter(tube="replies"), None, 10)).tasks:
        with suppress(NotFound):  # the new process may be quicker
            await core.queue.bury(task.id)
            await core.queue.kick(task.id)  # otherwise it is due in a minute
    await until(installation.is_empty, within=WITHIN)
    assert (await threads.of_person(DEFAULT_TENANT, 1), await threads.of_person(DEFAULT_TENANT, 2)) == (
        [],
        [added.thread],
    )
    assert str((await threads.find(DEFAULT_TENANT, added.thread)).person.id) == "2"
    await installation.audit()


async def test_a_bot_that_is_killed_between_storing_a_file_and_handing_it_on_loses_and_doubles_nothing(
    installation: Installation,
) -> None:
    await add_people(installation)
    link, settings = await installation.link_to_server()
    bot = installation.start("bot", "telegram", ADA_BOT_TENANT=TENANT, **settings)
    await installation.courier(TELEGRAM_BOT)
    await bot.ready()
    await installation.start_api().ready()
    people = installation.sandbox.bot_api.people
    await installation.deliver(person(1, TELEGRAM_BOT), replies="sender")
    received = ReceivedMessages(installation.core.store)
    await until(lambda: received.last(TENANT, TELEGRAM_BOT.name, STUDENT, 0), within=WITHIN)
    link.block_replies(NOTED)
    message = people.shown(int(STUDENT))["messages"][0]["id"]
    people.send_file(int(STUDENT), "photo", Upload("me.jpg", "image/jpeg", GREY), reply_to=message, caption="Here")
    await until(lambda: link.blocked, within=WITHIN)
    bot.kill()
    link.cut()
    await installation.start("bot", "telegram", ADA_BOT_TENANT=TENANT).ready()
    await until(lambda: texts(installation, TEACHER) and len(texts(installation, STUDENT)) == 2, within=WITHIN)
    await until(installation.is_empty, within=WITHIN)
    assert [one.splitlines()[1] for one in texts(installation, TEACHER)] == ["Here"]
    assert texts(installation, STUDENT)[1:] == ["Передано: Anna."]
    (thread,), _ = await Threads(installation.core.store).page(TENANT, Inbox("user", "7"), None, 10)
    assert thread.newest
    assert (thread.messages, thread.newest.files, len(thread.newest.attachments)) == (1, 0, 1)
    await installation.audit()
