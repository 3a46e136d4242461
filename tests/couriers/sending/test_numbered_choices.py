"""The numbered choices of the last message to an address: remembered before it is sent, replaced by the next one."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core.deliveries.received import LIFETIME, Choices
from core.model.delivery import Recipient
from core.redis.keys import KEYS
from couriers.sending import Button, Content, Courier
from couriers.sms import courier as sms
from couriers.vk import courier as vk
from sandbox.sms import SmsServer
from sandbox.state import SandboxState
from sandbox.vk import VkServer
from tests.support.stack import TENANT, Stack

pytestmark = pytest.mark.parametrize("shards", [16])

PHONE, PERSON = "+79990000001", "200001"
DAYS = Content(inline=[[Button("Сегодня", "today")], [Button("Завтра", "tomorrow")]])


@pytest.fixture
async def state(stack: Stack) -> AsyncIterator[SandboxState]:
    """The couriers of VK and SMS on the stack, with the sandbox behind them."""
    state = SandboxState()
    vk_server, sms_server = VkServer(state), SmsServer(state)
    await vk_server.start()
    await sms_server.start()
    couriers: list[Courier] = [
        await vk.open(vk.Settings(vk_server.token, vk_server.url), Path()),
        await sms.open(sms.Settings(sms_server.url, "ada", "sandbox", "Ada"), Path()),
    ]
    for courier in couriers:
        await stack.courier(courier)
    yield state
    await stack.end_everything()
    for courier in couriers:
        await courier.close()
    await vk_server.stop()
    await sms_server.stop()


async def send(stack: Stack, channel: str, content: Content | None) -> list[str]:
    """Send to one person; returns what was not shown."""
    address = {"sms": "8 999 000-00-01", "vk": PERSON}[channel]
    recipient = Recipient(address, contacts={channel: [address]})
    key = (await stack.deliver(recipient, channels=(channel,), text="Когда?", content=content)).key
    return list((await stack.finished(key)).recipients[0].outcomes[channel].not_shown)


async def meaning(stack: Stack, channel: str, address: str, answer: str = "2") -> str:
    button = await Choices(stack.store).button_of(TENANT, channel, address, answer)
    return button.data or button.text if button else ""


async def test_a_number_answers_the_last_sms(stack: Stack, state: SandboxState) -> None:
    assert await send(stack, "sms", DAYS) == []
    assert [one.text for one in state.inbox("sms", PHONE)] == ["Когда?\n1. Сегодня\n2. Завтра"]
    assert await meaning(stack, "sms", PHONE) == "tomorrow"
    assert await meaning(stack, "sms", "+79990000002") == ""
    owner = TENANT, "sms", PHONE
    seconds = await stack.store.command("TTL", KEYS["choices"].at(stack.store.shard_of_person(*owner), *owner))
    assert 0 < int(seconds) <= LIFETIME.total_seconds()


async def test_a_later_message_of_a_bot_replaces_the_choices_and_a_bare_text_leaves_them(
    stack: Stack, state: SandboxState
) -> None:
    await send(stack, "sms", DAYS)
    await send(stack, "sms", None)
    assert await meaning(stack, "sms", PHONE) == "tomorrow"
    await send(stack, "sms", Content(reply=[["Меню", "Назад"]]))
    assert await meaning(stack, "sms", PHONE) == "Назад"
    await send(stack, "sms", Content(reply=[]))
    assert await meaning(stack, "sms", PHONE) == ""


async def test_only_buttons_that_no_keyboard_of_vk_can_have_are_answered_by_number(
    stack: Stack, state: SandboxState
) -> None:
    assert await send(stack, "vk", DAYS) == []
    assert await meaning(stack, "vk", PERSON) == ""
    many = Content(inline=[[Button(f"Группа {number}", str(number))] for number in range(1, 12)])
    assert await send(stack, "vk", many) == []
    assert state.inbox("vk", PERSON)[-1].text.endswith("\n10. Группа 10\n11. Группа 11")
    assert await meaning(stack, "vk", PERSON, "11") == "11"
