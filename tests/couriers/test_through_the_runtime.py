"""The VK courier in the real runtime, against the sandbox."""

import gc
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from core.model.clock import Backoff
from core.model.delivery import Recipient
from core.model.history import History
from core.model.states import Status
from core.model.text.personal import Personal
from couriers.sending.services import CourierOptions
from couriers.vk import courier as vk
from sandbox.magic_recipients import MAGIC_RECIPIENTS
from sandbox.state import SandboxState
from sandbox.vk import VkServer
from tests.support.stack import FLOOR, Stack

QUICK_RETRIES = CourierOptions(
    max_sleep=FLOOR, backoff=Backoff(timedelta(milliseconds=10), timedelta(milliseconds=50), 4)
)
MAGIC_ADDRESSES = {(fault.name, fault.value): address for address, fault in MAGIC_RECIPIENTS["vk"].items()}


@pytest.fixture
async def vk_state(stack: Stack) -> AsyncIterator[SandboxState]:
    """The state of a VK sandbox whose courier runs on the stack."""
    state = SandboxState()
    server = VkServer(state)
    await server.start()
    courier = await vk.open(vk.Settings(server.token, server.url), Path())
    await stack.courier(courier, QUICK_RETRIES)
    yield state
    await courier.close()
    await server.stop()


def recipients(*addresses: str) -> list[Recipient]:
    return [Recipient(address, contacts={"vk": [address]}) for address in addresses]


def status(history: History, address: str) -> Status:
    return next(each.outcomes["vk"].status for each in history.recipients if each.id == address)


@pytest.mark.parametrize("position", [0, 120, 249])
async def test_one_bad_id_in_a_large_delivery_does_not_affect_the_other_recipients(
    stack: Stack, vk_state: SandboxState, position: int, caplog: pytest.LogCaptureFixture
) -> None:
    """VK refuses the call of 100 that contains the id; the calls before and after it are sent.

    The runtime once looked only at the first outcome, and failed on a refusal that followed a success.
    """
    good = [str(200_001 + number) for number in range(249)]
    bad = MAGIC_ADDRESSES["peer_poison", None]
    accepted = await stack.deliver(*recipients(*good[:position], bad, *good[position:]), channels=("vk",))
    await stack.finished(accepted.key)
    history = await stack.history(accepted.key, limit=1000)
    assert status(history, bad) == Status.FAILED
    assert {status(history, address) for address in good} == {Status.SENT}
    assert {len(vk_state.inbox("vk", address)) for address in good} == {1}
    gc.collect()  # asyncio logs a lost exception when its task is collected
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []


async def test_2501_recipients_are_two_http_requests(stack: Stack, vk_state: SandboxState) -> None:
    before = vk_state.counter("vk", "http")
    good = [str(200_001 + number) for number in range(2501)]
    accepted = await stack.deliver(*recipients(*good), channels=("vk",))
    await stack.finished(accepted.key)
    assert vk_state.counter("vk", "http") - before == 2
    assert {len(vk_state.inbox("vk", address)) for address in good} == {1}


async def test_25_personal_texts_are_one_http_request_and_equal_ones_share_a_call(
    stack: Stack, vk_state: SandboxState
) -> None:
    before = vk_state.counter("vk", "http")
    marks = {str(200_001 + number): str(number % 8 and number) for number in range(112)}
    people = recipients(*marks)
    personal = Personal(["mark"], [[mark] for mark in marks.values()])
    accepted = await stack.deliver(*people, channels=("vk",), text="Mark: {{mark}}", personal=personal)
    await stack.finished(accepted.key)
    assert {address: [one.text for one in vk_state.inbox("vk", address)] for address in marks} == {
        address: [f"Mark: {mark}"] for address, mark in marks.items()
    }
    assert len(set(marks.values())) == 99
    assert vk_state.counter("vk", "http") - before == 4
