"""Quiet hours at enqueue, at a new due time and at a retry."""

from datetime import UTC, datetime, timedelta

import pytest

from core.deliveries.histories.reader import HistoryReader
from core.errors import Conflict, Forbidden, Invalid
from core.model.clock import to_ms
from core.model.delivery import Accepted
from core.model.people import User
from core.model.question import AnswerKind, Option, Question
from core.model.states import DeliveryState, Reason, Status
from core.orders import Addressee
from couriers.sending.interface import Rejected
from tests.core.orders.conftest import ADMIN, NIGHT, NOON, SEND_ONLY, Office
from tests.support.stack import TENANT, FakeCourier, Stack

MORNING = datetime(2026, 11, 21, 4, tzinfo=UTC)
"""07:00 in Moscow, after `NIGHT`."""
SPREAD = timedelta(minutes=5, seconds=59)
DECADE = timedelta(days=3652)
HOURS = [timedelta(hours=hours) for hours in range(0, 24, 3)]


@pytest.fixture
def office(office: Office) -> Office:
    """With a clock ten years ahead, so that what is scheduled is not due for the server."""
    office.now = NIGHT + DECADE
    return office


def assert_in_the_morning(accepted: Accepted, days: int = 0) -> None:
    first = MORNING + DECADE + timedelta(days=days)
    assert accepted.state is DeliveryState.SCHEDULED
    assert first <= accepted.deliver_at <= first + SPREAD


async def test_a_delivery_at_night_is_moved_to_the_morning_and_the_history_keeps_the_requested_time(
    office: Office,
) -> None:
    accepted = await office.send()
    assert_in_the_morning(accepted)
    assert accepted.moved_from == office.now
    history = await office.stack.history(accepted.key)
    assert (history.moved_from, history.deliver_at) == (accepted.moved_from, accepted.deliver_at)


async def test_a_due_time_at_night_is_moved_whenever_it_is_ordered(office: Office) -> None:
    office.now = NOON + DECADE
    accepted = await office.send(deliver_at=NIGHT + DECADE + timedelta(days=1))
    assert_in_the_morning(accepted, days=1)
    assert accepted.moved_from == NIGHT + DECADE + timedelta(days=1)


async def test_a_time_that_has_passed_means_now_and_now_is_night(office: Office) -> None:
    passed = office.now - timedelta(minutes=4)
    accepted = await office.send(deliver_at=passed)
    assert_in_the_morning(accepted)
    assert accepted.moved_from == passed


async def test_by_day_nothing_is_moved(office: Office) -> None:
    office.now = NOON
    assert (await office.send()).moved_from is None
    due = NOON + DECADE
    accepted = await office.send(deliver_at=due)
    assert (accepted.deliver_at, accepted.moved_from) == (due, None)


async def test_a_repeat_gets_the_same_time_also_by_day(office: Office) -> None:
    first = await office.send(repeat="key")
    office.now += timedelta(hours=12)
    again = await office.send(repeat="key")
    assert (again.deliver_at, again.moved_from, again.key) == (first.deliver_at, first.moved_from, first.key)


async def test_an_urgent_delivery_is_sent_at_night_if_the_key_allows_it(office: Office) -> None:
    accepted = await office.send(urgent=True)
    assert (accepted.state, accepted.moved_from) == (DeliveryState.RELEASED, None)
    before = sorted(office.stack.server.all_keys())
    with pytest.raises(Forbidden) as refused:
        await office.send(urgent=True, caller=SEND_ONLY, repeat="key")
    assert refused.value.code == "URGENT_NOT_ALLOWED"
    assert sorted(office.stack.server.all_keys()) == before


async def test_a_delivery_that_would_expire_before_the_morning_is_refused(office: Office) -> None:
    before = sorted(office.stack.server.all_keys())
    with pytest.raises(Invalid) as refused:
        await office.send(expires_at=MORNING + DECADE, repeat="key")
    assert refused.value.code == "EXPIRES_BEFORE_DUE"
    assert sorted(office.stack.server.all_keys()) == before


async def test_a_delivery_that_is_moved_to_the_night_goes_to_the_morning(office: Office) -> None:
    key = (await office.send(deliver_at=NOON + DECADE)).key
    at_night = NIGHT + DECADE + timedelta(days=3)
    moved = await office.sending.reschedule(key, SEND_ONLY, at_night)
    assert_in_the_morning(moved, days=3)
    assert moved.moved_from == at_night
    assert (await office.stack.history(key)).moved_from == at_night
    by_day = await office.sending.reschedule(key, SEND_ONLY, NOON + DECADE)
    assert (by_day.deliver_at, by_day.moved_from) == (NOON + DECADE, None)
    assert (await office.stack.history(key)).moved_from is None
    urgent = await office.sending.reschedule(key, ADMIN, at_night, urgent=True)
    assert (urgent.deliver_at, urgent.moved_from) == (at_night, None)
    with pytest.raises(Forbidden, match="scope urgent"):
        await office.sending.reschedule(key, SEND_ONLY, at_night, urgent=True)


async def test_nothing_is_retried_at_night_unless_it_is_urgent(office: Office, stack: Stack) -> None:
    await stack.courier(FakeCourier(respond=lambda message: Rejected(Reason.BLOCKED)))
    office.sending = office.process(stack.store)
    key = (await office.send(urgent=True)).key
    await stack.finished(key)
    with pytest.raises(Conflict) as refused:
        await office.sending.retry(key, SEND_ONLY, [Status.FAILED])
    assert refused.value.code == "QUIET_HOURS"
    wait = MORNING + DECADE - office.now
    assert refused.value.retry_after
    assert wait <= refused.value.retry_after <= wait + SPREAD
    assert await office.sending.retry(key, ADMIN, [Status.FAILED], urgent=True) == 1
    await stack.finished(key)
    office.now = NOON + DECADE
    assert await office.sending.retry(key, SEND_ONLY, [Status.FAILED]) == 1
    await stack.finished(key)


@pytest.mark.parametrize("hour", HOURS, ids=str)
async def test_whatever_the_hour_nothing_is_due_in_quiet_hours(office: Office, hour: timedelta) -> None:
    office.now = NIGHT + DECADE + hour
    accepted = await office.send(deliver_at=office.now + timedelta(hours=1))
    assert 7 <= (accepted.deliver_at + timedelta(hours=3)).hour < 24


async def test_a_question_that_closes_before_the_hour_of_the_day_at_which_it_would_come_does_not_wait(
    office: Office,
) -> None:
    """The hour is at 14:00; what is to be sent at 15:00 would come on the next day."""
    office.now, reader, hours = NOON + DECADE, HistoryReader(office.stack.store), "14:00-14:00 Europe/Moscow"
    await office.directory.users.create(TENANT, User(1, contacts={"echo": ["d1"]}, hours=hours))
    later = office.now + timedelta(hours=3)
    for closes, waits in ((later + timedelta(hours=1), ""), (later + timedelta(days=2), hours)):
        question = Question(AnswerKind.CONFIRM, [Option("read", "Read")], "en", until=to_ms(closes))
        key = (await office.send(Addressee(1), deliver_at=later, question=question)).key
        parcels = reader.parcels(key, await reader.fields(key, TENANT))
        assert [entry.hours async for parcel in parcels for entry in parcel.entries] == [waits]
