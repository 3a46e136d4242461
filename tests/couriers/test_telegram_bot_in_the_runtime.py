"""The courier of the Bot API in the real runtime, against the sandbox."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from core.model.clock import Backoff
from core.model.delivery import Recipient
from core.model.history import History
from core.model.states import Reason, Status
from couriers.sending import Attachment, AttachmentType, Button, Content, ParseMode
from couriers.sending.services import CourierOptions
from couriers.telegram_bot import courier as telegram_bot
from sandbox.bot_api import BotApiServer
from sandbox.magic_recipients import MAGIC_RECIPIENTS
from sandbox.state import Fault, Rule, SandboxState
from tests.support.stack import FLOOR, Stack
from tests.support.waiting import until

OPTIONS = CourierOptions(max_sleep=FLOOR, backoff=Backoff(timedelta(milliseconds=20), timedelta(milliseconds=200), 4))
MAGIC_ADDRESSES = {fault.name: address for address, fault in MAGIC_RECIPIENTS["telegram-bot"].items()}
GROUP = "-1000000000123"
RATE = 20  # calls per second


@dataclass
class Running:
    """A courier on the stack, and the server it sends to."""

    stack: Stack
    server: BotApiServer
    state: SandboxState

    def texts(self, address: str) -> list[str]:
        return [received.text for received in self.state.inbox("telegram-bot", address)]

    async def deliver(self, *addresses: str) -> History:
        """Send to all, wait for the end, return the history."""
        people = [Recipient(address, contacts={"telegram-bot": [address]}) for address in addresses]
        accepted = await self.stack.deliver(*people, channels=("telegram-bot",))
        await self.stack.finished(accepted.key, within=40)
        return await self.stack.history(accepted.key, limit=1000)


@pytest.fixture
async def running(stack: Stack, tmp_path: Path) -> AsyncIterator[Running]:
    state = SandboxState()
    server = BotApiServer(state)
    await server.start()
    settings = telegram_bot.Settings(server.token, server.url, timedelta(seconds=4))
    courier = await telegram_bot.open(settings, tmp_path)
    await stack.courier(courier, OPTIONS)
    yield Running(stack, server, state)
    await courier.close()
    await server.stop()


def outcome(history: History, address: str) -> tuple[Status, str]:
    return next(
        (one.outcomes["telegram-bot"].status, one.outcomes["telegram-bot"].reason or "")
        for one in history.recipients
        if one.id == address
    )


async def test_every_magic_recipient_ends_as_its_answer_means_and_no_other_is_lost(running: Running) -> None:
    good = [str(100_001 + number) for number in range(20)]
    bad = [name for name in MAGIC_ADDRESSES if name not in ("unauthorized", "flood_wait", "rate_limit")]
    history = await running.deliver(*good[:10], *(MAGIC_ADDRESSES[name] for name in bad), *good[10:])
    assert {outcome(history, address)[0] for address in good} == {Status.SENT}
    assert {len(running.texts(address)) for address in good} == {1}
    ended = {name: outcome(history, MAGIC_ADDRESSES[name]) for name in bad}
    assert ended["blocked"] == ended["kicked"] == (Status.FAILED, Reason.BLOCKED)
    assert ended["cannot_initiate"] == (Status.FAILED, Reason.PRIVACY)
    assert ended["deactivated"] == ended["chat_not_found"] == (Status.FAILED, Reason.RECIPIENT_UNREACHABLE)
    assert ended["migrated"][0] == Status.SENT
    refused = {"blocked", "kicked", "cannot_initiate", "deactivated", "chat_not_found", "no_rights", "migrated"}
    assert {ended[name][0] for name in set(bad) - refused} == {Status.UNKNOWN}
    assert max(len(running.texts(MAGIC_ADDRESSES[name])) for name in bad) == 1


async def test_the_rate_of_the_bot_is_learned_from_429_and_nobody_is_lost(running: Running) -> None:
    running.state.add_rule(Rule("telegram-bot", Fault("rate_limit", RATE), method="sendMessage"))
    addresses = [str(100_001 + number) for number in range(100)]
    history = await running.deliver(*addresses)
    assert {outcome(history, address)[0] for address in addresses} == {Status.SENT}
    assert {len(running.texts(address)) for address in addresses} == {1}
    calls, refused = (running.state.counter("telegram-bot", name) for name in ("sendMessage", "refused"))
    assert 0 < refused <= calls / 2


async def test_a_group_that_must_wait_stops_no_other_chat(running: Running) -> None:
    running.state.add_rule(Rule("telegram-bot", Fault("flood_wait", 3), GROUP, "sendMessage", times=1))
    group = await running.stack.deliver(
        Recipient(GROUP, contacts={"telegram-bot": [GROUP]}), channels=("telegram-bot",)
    )
    await until(lambda: running.state.counter("telegram-bot", "sendMessage") == 1)
    await running.deliver("100001", "100002")
    assert running.texts(GROUP) == []
    await running.stack.finished(group.key)
    assert len(running.texts(GROUP)) == 1


async def test_a_revoked_token_stops_the_courier_and_the_tasks_stay(running: Running) -> None:
    running.state.add_rule(Rule("telegram-bot", Fault("unauthorized"), method="sendMessage"))
    people = [Recipient(address, contacts={"telegram-bot": [address]}) for address in ("100001", "100002")]
    accepted = await running.stack.deliver(*people, channels=("telegram-bot",))
    await until(lambda: _is_halted(running.stack))
    history = await running.stack.history(accepted.key)
    assert {outcome(history, one)[0] for one in ("100001", "100002")} <= {Status.QUEUED, Status.SENDING}


async def _is_halted(stack: Stack) -> bool:
    return b"ADA_BOT_TOKEN" in bytes(str(await stack.redis.hgetall("channels:{0}")), "utf-8")


# content


async def test_a_missing_photo_is_in_the_history_and_the_rest_arrives(running: Running, tmp_path: Path) -> None:
    (tmp_path / "menu.png").write_bytes(b"a photo")
    photos = [Attachment(AttachmentType.PHOTO, str(tmp_path / name)) for name in ("menu.png", "gone.png")]
    content = Content(ParseMode.HTML, ((Button("Да", "yes"),),), attachments=photos)
    person = Recipient("100001", contacts={"telegram-bot": ["100001"]})
    key = (await running.stack.deliver(person, channels=("telegram-bot",), text="<b>Меню</b>", content=content)).key
    (recipient,) = (await running.stack.finished(key)).recipients
    found = recipient.outcomes["telegram-bot"]
    assert (found.status, found.reference, found.not_shown) == (Status.SENT, "1", ("photo gone.png",))
    (message,) = running.server.people.messages(100_001)
    assert (message["caption"], "photo" in message, "reply_markup" in message) == ("Меню", True, True)


async def test_the_reference_of_a_message_is_what_an_edit_and_a_removal_name(running: Running) -> None:
    person = Recipient("100001", contacts={"telegram-bot": ["100001"]})

    async def deliver(text: str, content: Content | None = None) -> str:
        key = (await running.stack.deliver(person, channels=("telegram-bot",), text=text, content=content)).key
        reference = (await running.stack.finished(key)).recipients[0].outcomes["telegram-bot"].reference
        assert reference is not None
        return reference

    first = await deliver("было")
    assert await deliver("стало", Content(edit=first)) == first
    last = await deliver("новое", Content(remove=first))
    assert [(one["message_id"], one["text"]) for one in running.server.people.messages(100_001)] == [
        (int(last), "новое")
    ]


async def test_several_processes_send_each_message_with_a_file_once(running: Running, tmp_path: Path) -> None:
    settings = telegram_bot.Settings(running.server.token, running.server.url, timedelta(seconds=10))
    second = await telegram_bot.open(settings, tmp_path)
    await running.stack.courier(second, OPTIONS)
    (tmp_path / "menu.png").write_bytes(b"a photo")
    content = Content(attachments=[Attachment(AttachmentType.PHOTO, str(tmp_path / "menu.png"))])
    addresses = [str(100_001 + number) for number in range(60)]
    keys = [
        (await running.stack.deliver(person, channels=("telegram-bot",), text="Меню", content=content)).key
        for person in (Recipient(one, contacts={"telegram-bot": [one]}) for one in addresses)
    ]
    for key in keys:
        await running.stack.finished(key, within=40)
    assert {len(running.texts(address)) for address in addresses} == {1}
    await second.close()
