"""One process that sends as several accounts: a parcel waits for the account of its tenant."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from core.sentence import Text
from couriers.sending.interface import Halted
from couriers.sending.runtime import Runtime
from tests.support.delivery_progress import Gate
from tests.support.stack import HOUR, QUICK, TENANT, FakeCourier, Stack, people, person
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


async def test_the_halt_of_an_account_is_reported_once_for_all_that_it_was_sending(stack: Stack) -> None:
    await stack.stop(await stack.courier(FakeCourier()))
    reported, gate = list[tuple[str, str]](), Gate(lambda _: Halted("the token is refused"))

    async def report(tenant: str, why: Text) -> None:
        reported.append((tenant, str(why)))

    accounts, courier = Runtime(stack.store, "echo", QUICK, report), FakeCourier(respond=gate)
    await accounts.add(courier, TENANT)
    running = asyncio.create_task(accounts.run())
    await stack.deliver(*people(3))
    await until(lambda: len(courier.attempted) == 3, within=SOON)
    gate.opened.set()
    await until(lambda: _waits(stack), within=SOON)
    assert reported == [(TENANT, "the token is refused")]
    accounts.stop()
    await asyncio.wait_for(running, SOON)


async def _waits(stack: Stack) -> bool:
    """Whether the parcel was given back to wait."""
    return bool(int(await stack.redis.hget("queue:{0}:states", "echo:waiting") or 0))
