"""Trying again what has failed or is unknown."""

import asyncio

import pytest

from core.errors import Invalid
from core.port import NEVER, Unknown
from core.words import Status, Verdict
from tests.core.deliveries import GONE, by_address, statuses
from tests.core.house import HOUR, TENANT, House, Played, people, person
from tests.servers import on_both_servers


class TestTryingAgain:
    @on_both_servers
    @pytest.mark.row("D-40")
    async def test_only_the_failed_or_only_the_unknown_are_tried_again_with_new_random_ids(self, house: House) -> None:
        first = Played(answer=by_address(p1=GONE, p2=Unknown()), remembers=NEVER)
        running = await house.courier(first)
        key = (await house.deliver(*people(4))).key
        await house.finished(key)
        await house.stop(running)
        again = Played()
        await house.courier(again)
        assert await house.histories.retry(key, TENANT, [Status.FAILED]) == 1
        told = await house.finished(key)
        assert (statuses(told), again.addresses) == ({1: "sent", 2: "unknown", 3: "sent", 4: "sent"}, ["p1"])
        assert await house.histories.retry(key, TENANT, [Status.UNKNOWN]) == 1
        told = await house.finished(key)
        assert (told.verdict, again.addresses) == (Verdict.ALL_REACHED, ["p1", "p2"])
        before = {message.address: message.random_id() for message in first.attempted}
        assert all(message.random_id() != before[message.address] for message in again.attempted)
        assert await house.histories.retry(key, TENANT, [Status.FAILED, Status.UNKNOWN]) == 0

    @pytest.mark.row("D-40")
    async def test_what_failed_again_can_be_tried_a_third_time(self, house: House) -> None:
        courier = Played(answer=lambda message: GONE)
        await house.courier(courier)
        key = (await house.deliver(*people(2))).key
        await house.finished(key)
        for attempts in (4, 6):
            assert await house.histories.retry(key, TENANT, [Status.FAILED]) == 2
            await house.finished(key)
            assert len(courier.attempted) == attempts
        assert len({message.random_id() for message in courier.attempted}) == 6

    @pytest.mark.row("D-40")
    async def test_two_who_ask_at_once_queue_it_once(self, house: House) -> None:
        running = await house.courier(Played(answer=lambda message: GONE))
        key = (await house.deliver(*people(5))).key
        await house.finished(key)
        await house.stop(running)
        queued = await asyncio.gather(*(house.histories.retry(key, TENANT, [Status.FAILED]) for _ in range(10)))
        assert sorted(queued) == [0] * 9 + [5]

    @pytest.mark.row("D-40")
    async def test_only_failed_and_unknown_can_be_tried_again(self, house: House) -> None:
        key = (await house.deliver(person(1), deliver_at=house.now() + HOUR)).key
        for wrong in ([], [Status.SENT], [Status.FAILED, Status.CANCELLED]):
            with pytest.raises(Invalid):
                await house.histories.retry(key, TENANT, wrong)
        await house.histories.cancel(key, TENANT)
        assert await house.histories.retry(key, TENANT, [Status.FAILED]) == 0
