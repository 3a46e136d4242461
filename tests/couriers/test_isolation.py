"""No recipient and no burst stops a channel: the real couriers and the sandbox, several processes of one account."""

import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from core.model.clock import Backoff
from core.model.delivery import Recipient
from core.model.history import History
from core.model.history_key import HistoryKey
from core.model.states import Reason, Status
from core.redis.store import Store
from couriers.sending import Courier
from couriers.sending.services import CourierOptions
from couriers.vk import courier as vk
from sandbox.magic_recipients import MAGIC_RECIPIENTS
from sandbox.state import Fault, Rule, SandboxState
from sandbox.vk import VkServer
from tests.couriers.telegram_provider import MAGIC_ADDRESSES, TelegramProvider
from tests.support.serving import serving
from tests.support.stack import FLOOR, Stack
from tests.support.waiting import until

QUICK = CourierOptions(max_sleep=FLOOR, backoff=Backoff(timedelta(milliseconds=20), timedelta(milliseconds=200), 4))
TOO_FAST = next(address for address, fault in MAGIC_RECIPIENTS["vk"].items() if fault.name == "too_fast")
RATE = 20  # calls per second: the limit of VK for a community


@pytest.fixture
def vk_state() -> SandboxState:
    return SandboxState()


@pytest.fixture
async def vk_server(vk_state: SandboxState) -> AsyncIterator[VkServer]:
    async with serving(VkServer(vk_state)) as server:
        yield server


@pytest.fixture
async def provider(tmp_path: Path) -> AsyncIterator[TelegramProvider]:
    """Telegram whose waits end by the real clock."""
    telegram_provider = TelegramProvider(tmp_path)
    telegram_provider.clock = time.monotonic
    await telegram_provider.start()
    yield telegram_provider
    await telegram_provider.close()
    await telegram_provider.stop()


class Processes:
    """Courier processes of one account: each has its own connections to Redis and to the provider."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._opened: list[tuple[Courier, Store]] = []

    async def start(self, courier: Courier, options: CourierOptions = QUICK) -> None:
        store = await Store.open(self._stack.server.url)
        self._opened.append((courier, store))
        await self._stack.courier(courier, options, store)

    async def close(self) -> None:
        for courier, store in self._opened:
            await courier.close()
            await store.close()


@pytest.fixture
async def processes(stack: Stack) -> AsyncIterator[Processes]:
    opened = Processes(stack)
    yield opened
    await stack.end_everything()
    await opened.close()


async def open_vk(server: VkServer) -> Courier:
    return await vk.open(vk.Settings(server.token, server.url), Path())


def recipient(address: str, channel: str) -> Recipient:
    return Recipient(address, contacts={channel: [address]})


async def deliver_each(stack: Stack, addresses: Sequence[str], channel: str) -> list[HistoryKey]:
    """One delivery per address."""
    return [(await stack.deliver(recipient(address, channel), channels=(channel,))).key for address in addresses]


def received(state: SandboxState, channel: str) -> list[str]:
    return [message.address for message in state.inbox(channel)]


def outcome_of(history: History, address: str, channel: str) -> tuple[Status, str | None]:
    (outcome,) = [record.outcomes[channel] for record in history.recipients if record.id == address]
    return outcome.status, outcome.reason


async def test_at_most_a_twentieth_of_the_calls_is_refused_at_a_limit_of_20_calls_per_second(
    stack: Stack, processes: Processes, vk_server: VkServer, vk_state: SandboxState
) -> None:
    """Regression: 1,103 of 1,403 calls were refused, because each parcel found out for itself."""
    for _ in range(2):
        await processes.start(await open_vk(vk_server))
    vk_state.add_rule(Rule("vk", Fault("rate_limit", RATE), method="execute"))
    calls_before = vk_state.counter("vk", "http")
    addresses = [str(200_001 + number) for number in range(300)]
    await deliver_each(stack, addresses, "vk")
    await until(lambda: len(received(vk_state, "vk")) == len(addresses), within=60)
    assert sorted(received(vk_state, "vk")) == addresses
    calls, refused = vk_state.counter("vk", "http") - calls_before, vk_state.counter("vk", "refused")
    assert 0 < refused <= calls / 20


async def test_a_recipient_who_always_triggers_a_flood_wait_does_not_stop_the_channel(
    stack: Stack, processes: Processes, provider: TelegramProvider
) -> None:
    """Regression: it was attempted first after each wait and triggered the next one, for ever."""
    provider.state.add_rule(Rule("telegram", Fault("flood_wait", 1), MAGIC_ADDRESSES["flood_wait"]))
    await processes.start(await provider.open())
    bad, *good = [MAGIC_ADDRESSES["flood_wait"], *(provider.address(number) for number in range(50))]
    first, *others = await deliver_each(stack, [bad, *good], "telegram")
    for key in others:
        await stack.finished(key)
    assert sorted(received(provider.state, "telegram")) == sorted(good)
    history = await stack.finished(first, within=60)
    assert outcome_of(history, bad, "telegram") == (Status.FAILED, Reason.THROTTLED)
    assert history.recipients[0].outcomes["telegram"].attempts == QUICK.backoff.attempts


async def test_a_recipient_because_of_whom_a_whole_batch_is_too_fast_is_isolated(
    stack: Stack, processes: Processes, vk_server: VkServer, vk_state: SandboxState
) -> None:
    """VK refuses the request of 51 recipients because of one: all others are served."""
    options = replace(QUICK, backoff=replace(QUICK.backoff, attempts=8))
    await processes.start(await open_vk(vk_server), options)
    good = [str(200_001 + number) for number in range(50)]
    people = [recipient(address, "vk") for address in (*good[:30], TOO_FAST, *good[30:])]
    key = (await stack.deliver(*people, channels=("vk",))).key
    await until(lambda: len(received(vk_state, "vk")) == len(good), within=60)
    assert sorted(received(vk_state, "vk")) == good
    assert outcome_of(await stack.history(key), TOO_FAST, "vk")[0] == Status.QUEUED
