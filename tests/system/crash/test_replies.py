"""Replies in the real processes: one that is killed between the reply and its thread, or between the thread and the
relayed message, loses nothing and doubles nothing. So does the process that gets what people write, if it is killed
while it fetches files, or hands on what it has got.
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
from sandbox.telegram.state.dialogs import StoredFile
from tests.core.threads.test_metadata import GREY
from tests.couriers.telegram_provider import position_key, reads
from tests.support.stack import TENANT
from tests.support.waiting import until
from tests.system.crash.installation import TELEGRAM, TELEGRAM_BOT, Channel, Installation, person
from tests.system.crash.process import AdaProcess

WITHIN = 60.0
ADD, RELAY = b"_add_to_thread\r\n", "отвечает на".encode()
"""Bytes in the requests that add a message to a thread, and that send a relayed one."""
NOTED = b":files:"
"""Bytes of the key by which the process that gets what people write notes the files that it has stored."""
PUT = b"_put_once\r\n"
"""Bytes in the request that hands on what a person has written."""

every_way = pytest.mark.parametrize("channel", [TELEGRAM_BOT, TELEGRAM], ids=lambda channel: channel.name)
"""A bot over the Bot API, whose process gets what people write, and one over MTProto, whose courier gets it."""


def texts(installation: Installation, channel: Channel, number: int) -> list[str]:
    """Return what the bot has written to an account."""
    address = channel.address(number)
    if channel is TELEGRAM:
        return [one.text for one in installation.sandbox.telegram.messages(address) if one.is_own]
    shown = installation.sandbox.bot_api.people.shown(int(address))["messages"]
    return [one["text"] for one in shown if one["from"] == "bot"]


def reply(installation: Installation, channel: Channel, text: str, photo: bytes = b"") -> None:
    """Reply to the first message, as the student."""
    address = channel.address(1)
    if channel is TELEGRAM:
        server = installation.sandbox.telegram
        first, file = server.messages(address)[0].id, StoredFile("photo", "", photo) if photo else None
        server.write(address, text, reply_to=first, file=file)
        return
    people = installation.sandbox.bot_api.people
    first = people.shown(int(address))["messages"][0]["id"]
    if photo:
        people.send_file(int(address), "photo", Upload("me.jpg", "image/jpeg", photo), reply_to=first, caption=text)
    else:
        people.reply(int(address), first, text)


async def add_people(installation: Installation, channel: Channel) -> None:
    users = Directory(installation.core.store).users
    for number, name in ((7, "Anna"), (1, "Maria")):
        contacts = {channel.name: [channel.address(number)]}
        await users.create(TENANT, User(number, name, role="trainer", locale="ru", contacts=contacts))


async def reader(installation: Installation, channel: Channel, **settings: str) -> AdaProcess:
    """Start the processes of a bot; return the one that gets what people write, when it does."""
    own = {"ADA_BOT_TENANT": TENANT}
    if channel is TELEGRAM_BOT:
        await installation.courier(channel)
        process = installation.start("bot", "telegram", **own, **settings)
        await process.ready()
        return process
    process = await installation.courier(channel, **own, **settings)
    await reads(installation.core.store)
    return process


async def ask(installation: Installation, channel: Channel) -> None:
    """Deliver the message to which the student replies."""
    await installation.deliver(person(1, channel), replies="sender")
    await until(lambda: texts(installation, channel, 1), within=WITHIN)
    received = ReceivedMessages(installation.core.store)
    await until(lambda: received.last(TENANT, channel.name, channel.address(1), 0), within=WITHIN)


@every_way
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
    installation: Installation, channel: Channel, point: str, bytes_of_call: bytes
) -> None:
    await add_people(installation, channel)
    link, settings = await installation.link_to_server()
    await reader(installation, channel)
    api = installation.start_api(**settings)
    await api.ready()
    await ask(installation, channel)
    (link.block_requests if point.startswith("before") else link.block_replies)(bytes_of_call)
    reply(installation, channel, "Which room?")
    await until(lambda: link.blocked, within=WITHIN)
    api.kill()
    link.cut()
    await installation.end_leases()
    await installation.start_api().ready()
    await is_relayed_once(installation, channel, "Which room?")


async def is_relayed_once(installation: Installation, channel: Channel, words: str, files: int = 0) -> None:
    """Wait until the teacher has got a reply and the student a notice, and assert that nothing is doubled."""
    teacher, student = (channel, 7), (channel, 1)
    await until(lambda: texts(installation, *teacher) and len(texts(installation, *student)) == 2, within=WITHIN)
    await until(installation.is_empty, within=WITHIN)
    (relayed,) = texts(installation, *teacher)
    assert relayed.startswith("Maria отвечает на ")
    assert relayed.splitlines()[1] == words
    assert texts(installation, *student)[1:] == ["Передано: Anna."]
    (thread,), _ = await Threads(installation.core.store).page(TENANT, Inbox("user", "7"), None, 10)
    assert thread.newest
    assert (thread.messages, thread.unread, thread.newest.files) == (1, 1, 0)
    assert len(thread.newest.attachments) == files
    await installation.audit()


@pytest.mark.parametrize(
    "point",
    [
        "before it is handed on",
        "after it was handed on",
        "before the position is stored",
        "after the position was stored",
    ],
)
async def test_a_courier_that_is_killed_while_it_hands_a_reply_on_loses_and_doubles_nothing(
    installation: Installation, point: str
) -> None:
    await add_people(installation, TELEGRAM)
    link, settings = await installation.link_to_server()
    courier = await reader(installation, TELEGRAM, **settings)
    await installation.start_api().ready()
    await ask(installation, TELEGRAM)
    store, key = installation.core.store, position_key(installation.core.store)
    before = await store.command("GET", key)
    storing = b"\r\nSET\r\n$%d\r\n%b\r\n" % (len(key), key.encode())
    bytes_of_call = storing if "position" in point else PUT
    (link.block_requests if point.startswith("before") else link.block_replies)(bytes_of_call)
    reply(installation, TELEGRAM, "Which room?")
    await until(lambda: link.blocked, within=WITHIN)
    courier.kill()
    link.cut()
    await installation.end_leases()
    await reader(installation, TELEGRAM)

    async def has_moved() -> bool:
        return bool(await store.command("GET", key) != before)

    await until(has_moved, within=WITHIN)  # the reply was read, perhaps again
    await is_relayed_once(installation, TELEGRAM, "Which room?")


async def test_a_kill_between_merging_two_people_and_their_threads_is_made_good_after_a_restart(
    installation: Installation,
) -> None:
    core = installation.core
    for number in (1, 2):
        await Directory(core.store).users.create(DEFAULT_TENANT, User(number, "Maria"))
    threads, way = Threads(core.store), ReplyRoute(TELEGRAM_BOT.name, TELEGRAM_BOT.address(1))
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


@every_way
async def test_a_bot_that_is_killed_between_storing_a_file_and_handing_it_on_loses_and_doubles_nothing(
    installation: Installation, channel: Channel
) -> None:
    await add_people(installation, channel)
    link, settings = await installation.link_to_server()
    bot = await reader(installation, channel, **settings)
    await installation.start_api().ready()
    await ask(installation, channel)
    link.block_replies(NOTED)
    reply(installation, channel, "Here", photo=GREY)
    await until(lambda: link.blocked, within=WITHIN)
    bot.kill()
    link.cut()
    await installation.end_leases()
    await reader(installation, channel)
    await is_relayed_once(installation, channel, "Here", files=1)
