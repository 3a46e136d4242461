"""I18 with the real couriers: a message that a provider stored is never shown as failed, and is not sent again."""

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest

from core.model.delivery import Recipient
from core.model.history import OutcomeRecord
from core.model.history_key import HistoryKey
from core.model.states import Status, Verdict
from couriers.sending import Courier, Partly, Reason, Rejected
from couriers.vk import courier as vk
from sandbox.magic_recipients import MAGIC_RECIPIENTS
from sandbox.state import Fault, Rule, SandboxState
from sandbox.vk import VkServer
from tests.couriers.telegram_provider import TelegramProvider, send_one
from tests.support.stack import QUICK, TENANT, Stack

CHANNELS = ["telegram", "vk"]
TWO_PARTS = "ё" * 4096 + "end"


class RunningCourier(NamedTuple):
    """A real courier and the state of its sandbox."""

    channel: str
    courier: Courier
    state: SandboxState

    def magic(self, fault: str) -> str:
        return next(address for address, one in MAGIC_RECIPIENTS[self.channel].items() if one.name == fault)

    def received(self, address: str) -> int:
        return len(self.state.inbox(self.channel, address))


@pytest.fixture
async def running(request: pytest.FixtureRequest, stack: Stack, tmp_path: Path) -> AsyncIterator[RunningCourier]:
    if request.param == "vk":
        server = VkServer(SandboxState())
        await server.start()
        courier = await vk.open(vk.Settings(server.token, server.url), Path())
        yield RunningCourier("vk", courier, server._state)
        await courier.close()
        await server.stop()
        return
    provider = TelegramProvider(tmp_path)
    provider.clock = time.monotonic
    await provider.start()
    yield RunningCourier("telegram", await provider.open(), provider.state)
    await provider.close()
    await provider.stop()


async def deliver(stack: Stack, running: RunningCourier, address: str, text: str = "hello") -> HistoryKey:
    await stack.courier(running.courier, QUICK)
    recipient = Recipient(1, contacts={running.channel: [address]})
    return (await stack.deliver(recipient, channels=(running.channel,), text=text)).key


async def outcome(stack: Stack, key: HistoryKey, channel: str) -> OutcomeRecord:
    (record,) = (await stack.finished(key)).recipients
    return record.outcomes[channel]


@pytest.mark.parametrize("running", CHANNELS, indirect=True)
async def test_a_stored_message_whose_repeat_is_refused_is_unknown(stack: Stack, running: RunningCourier) -> None:
    """Regression: it was `failed`, and a retry of the failed sent it again."""
    address = running.magic("stored_then_refused")
    key = await deliver(stack, running, address)
    found = await outcome(stack, key, running.channel)
    reason = Reason.BLOCKED if running.channel == "telegram" else Reason.PRIVACY
    assert (found.status, found.reason) == (Status.UNKNOWN, reason)
    assert await stack.deliveries.retry(key, TENANT, [Status.FAILED]) == 0
    assert running.received(address) == 1


@pytest.mark.parametrize("running", ["vk"], indirect=True)
async def test_a_stored_message_that_is_refused_after_error_10_is_unknown(
    stack: Stack, running: RunningCourier
) -> None:
    running.state.add_rule(Rule("vk", Fault("error", 10), address="5", times=1))
    running.state.add_rule(Rule("vk", Fault("error", 901), address="5"))
    found = await outcome(stack, await deliver(stack, running, "5"), "vk")
    assert found.status is Status.UNKNOWN


@pytest.mark.parametrize("running", ["telegram"], indirect=True)
async def test_a_text_whose_second_part_is_refused_shows_that_the_first_arrived(
    stack: Stack, running: RunningCourier
) -> None:
    """Regression: it was `failed` without a reference, and a retry sent the first part again."""
    address = running.magic("second_refused")
    key = await deliver(stack, running, address, TWO_PARTS)
    found = await outcome(stack, key, "telegram")
    (first,) = running.state.inbox("telegram", address)
    assert (found.status, found.reason, found.reference) == (Status.UNKNOWN, Reason.BLOCKED, first.reference)
    assert (await stack.history(key)).verdict is Verdict.NOTHING_WORKED
    assert await stack.deliveries.retry(key, TENANT, [Status.FAILED]) == 0


@pytest.mark.parametrize("running", ["telegram"], indirect=True)
async def test_the_courier_reports_the_first_part_and_the_refusal_of_the_second(running: RunningCourier) -> None:
    address = running.magic("second_refused")
    found = await send_one(running.courier, address, TWO_PARTS)
    (first,) = running.state.inbox("telegram", address)
    assert found == Partly(Rejected(Reason.BLOCKED, "USER_IS_BLOCKED"), first.reference)
