"""One process that sends as several accounts: a parcel waits for the account of its tenant."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from core.sentence import Text
from couriers.sending.runtime import Runtime
from tests.support.stack import HOUR, QUICK, TENANT, FakeCourier, Stack, person
from tests.support.waiting import until

SOON = 20.0
"""Seconds: far less than a parcel waits for an operator."""


@pytest.fixture
async def accounts(stack: Stack) -> AsyncIterator[Runtime]:
    """A process that runs, and has no account yet; the channel is known from another one."""
    await stack.stop(await stack.courier(FakeCourier()))

    async def halted(tenant: str, why: Text) -> None:
        raise AssertionError(f"{tenant} is halted: {why}")

    accounts = Runtime(stack.store, "echo", QUICK, halted)
    running = asyncio.create_task(accounts.run())
    yield accounts
    accounts.stop()
    await asyncio.wait_for(running, SOON)


async def test_a_message_that_comes_before_its_account_has_signed_in_is_sent_soon_after(
    stack: Stack, accounts: Runtime
) -> None:
    """Also if it was there before: it is looked for each second again."""
    for _ in range(2):
        key = (await stack.deliver(person(1))).key
        await until(lambda: _waits(stack), within=SOON)
        courier = FakeCourier()
        await accounts.add(courier, TENANT)
        await stack.finished(key, within=SOON)
        assert courier.addresses == ["p1"]
        await accounts.remove(TENANT)
        stack.advance_clock(HOUR)


async def _waits(stack: Stack) -> bool:
    """Whether the parcel was given back to wait."""
    return bool(int(await stack.redis.hget("queue:{0}:states", "echo:waiting") or 0))
