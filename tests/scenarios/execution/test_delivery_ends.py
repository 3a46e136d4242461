"""The end of a delivery is noticed at once, also if it came before somebody watched."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from core.model.delivery import Accepted
from core.model.history_key import HistoryKey
from core.model.states import Status
from core.redis.cancel_and_wait import cancel_and_wait
from scenarios.execution.parking import DeliveryEnds
from tests.core.answers.test_reminders import REMIND, pass_time
from tests.support.stack import TENANT, FakeCourier, Stack, person
from tests.support.waiting import until


@pytest.fixture
async def ends(stack: Stack) -> AsyncIterator[DeliveryEnds]:
    ends = DeliveryEnds(stack.store)
    running = asyncio.create_task(ends.run())
    await asyncio.wait_for(ends.ready.wait(), 20)
    await stack.courier(FakeCourier())
    yield ends
    await cancel_and_wait(running)


async def ended(stack: Stack, ends: DeliveryEnds) -> Accepted:
    """A delivery whose end was read from the stream of events."""
    accepted = await stack.deliver(person(1))
    await until(lambda: ends.outcome(accepted.key))
    return accepted


async def test_a_delivery_that_ended_just_before_it_was_watched_is_reported_at_once(
    stack: Stack, ends: DeliveryEnds
) -> None:
    reported: list[str] = []
    ends.watch((await ended(stack, ends)).key, lambda: reported.append("ended"))
    assert reported == ["ended"]


async def test_each_of_those_who_watch_is_called_until_it_stops_watching(stack: Stack, ends: DeliveryEnds) -> None:
    reported: list[str] = []
    accepted = await stack.deliver(person(1), deliver_at=datetime.now(UTC) + timedelta(days=1))
    stop, *_ = [ends.watch(accepted.key, partial(reported.append, name)) for name in ("one", "two", "three")]
    stop()
    await stack.deliveries.cancel(accepted.key, TENANT)
    await until(lambda: reported)
    assert reported == ["two", "three"]


async def test_the_outcome_of_a_reminder_is_not_that_of_the_message(stack: Stack, ends: DeliveryEnds) -> None:
    key = (await stack.deliver(person(1), question=REMIND)).key
    await until(lambda: ends.outcome(key))
    before = ends.outcome(key)
    await pass_time(stack, hours=12)
    await until(lambda: _is_reminded(stack, key))
    await ended(stack, ends)
    assert ends.outcome(key) == before


async def _is_reminded(stack: Stack, key: HistoryKey) -> bool:
    reminders = (await stack.history(key)).recipients[0].reminders
    return any(one.outcome.status == Status.SENT for one in reminders)
