"""Reading a history in pages, the list of deliveries, histories over several shards."""

from dataclasses import replace

import pytest

from core.errors import Invalid
from core.model.delivery import Recipient, Sender
from core.model.history_key import HistoryKey
from core.model.states import DeliveryState, Status, Verdict
from couriers.sending.interface import NEVER
from tests.support.delivery_progress import SECOND, Gate
from tests.support.servers import Server, on_both_servers
from tests.support.stack import HOUR, QUICK, TENANT, FakeCourier, Stack, people, person
from tests.support.waiting import until


class TestHistory:
    @on_both_servers
    async def test_a_history_has_sender_text_origin_recipients_and_outcomes(self, stack: Stack) -> None:
        await stack.courier(FakeCourier("telegram"))
        await stack.courier(FakeCourier("vk"))
        anna = Recipient(1, "Anna", {"telegram": ["t1"], "vk": ["v1"]}, ["group 42", "course 3"])
        boris = Recipient("b-2", None, {"vk": ["v2"]})
        accepted = await stack.deliver(anna, boris, channels=("telegram", "vk"), text="Пары не будет", tags=["urgent"])
        history = await stack.finished(accepted.key)
        assert (history.text, history.origin, history.kind, list(history.tags)) == (
            "Пары не будет",
            "api",
            "message",
            ["urgent"],
        )
        assert history.sender == {"id": 7, "name": "Anna", "role": "staff"}
        assert (history.state, history.verdict) == (DeliveryState.FINISHED, Verdict.ALL_REACHED)
        assert history.created_at <= history.deliver_at <= (history.released_at or history.created_at)
        first, second = history.recipients
        assert (first.id, first.name, list(first.origin)) == (1, "Anna", ["group 42", "course 3"])
        assert (list(first.received_in), list(second.received_in)) == (["telegram", "vk"], ["vk"])
        assert first.outcomes["vk"].reference == "ref-v1"
        assert (first.outcomes["vk"].status, first.outcomes["vk"].attempts) == (Status.SENT, 1)
        assert first.outcomes["vk"].at
        assert second.outcomes["telegram"].status is Status.NO_CONTACT
        assert (history.counts["recipients"], history.counts["reached"], history.counts[Status.SENT]) == (2, 2, 3)

    async def test_a_history_can_be_read_in_every_state(self, stack: Stack) -> None:
        key = (await stack.deliver(*people(2), deliver_at=stack.now() + HOUR)).key
        assert (await stack.history(key)).state is DeliveryState.SCHEDULED
        await stack.deliveries.reschedule(
            key, TENANT, stack.now() - SECOND
        )  # this very moment may round up to the next ms
        released = await stack.history(key)
        assert (released.state, released.channels["echo"].state) == (DeliveryState.RELEASED, "pending")
        assert {record.outcomes["echo"].status for record in released.recipients} == {Status.QUEUED}
        await stack.courier(FakeCourier())
        assert (await stack.finished(key)).counts[Status.SENT] == 2

    async def test_the_counts_of_a_channel_have_attempts_under_way_until_its_end(self, stack: Stack) -> None:
        courier = FakeCourier(respond=(gate := Gate()), remembers=NEVER)
        await stack.courier(courier, replace(QUICK, concurrency=2))
        key = (await stack.deliver(*people(3))).key
        await until(lambda: len(courier.attempted) == 2)
        assert (await stack.history(key)).channels["echo"].counts == {Status.SENDING: 2, Status.QUEUED: 1}
        gate.opened.set()
        assert (await stack.finished(key)).channels["echo"].counts == {Status.SENT: 3}

    async def test_the_pages_of_recipients_neither_overlap_nor_skip(self, stack: Stack) -> None:
        key = (await stack.deliver(*people(450), deliver_at=stack.now() + HOUR)).key
        found, cursor = [], None
        while True:
            page = await stack.deliveries.read(key, TENANT, cursor, 97)
            found += [record.id for record in page.recipients]
            cursor = page.next
            if cursor is None:
                break
        assert found == list(range(1, 451))

    @pytest.mark.parametrize("cursor", ["-1", "x", "1" * 10, "", "٣"])
    async def test_a_malformed_cursor_is_refused(self, stack: Stack, cursor: str) -> None:
        key = (await stack.deliver(person(1), deliver_at=stack.now() + HOUR)).key
        with pytest.raises(Invalid, match="cursor"):
            await stack.deliveries.read(key, TENANT, cursor)

    async def test_text_and_names_are_returned_unchanged(self, stack: Stack) -> None:
        text = 'null {} [] {"a":[]} \u2028 \x01 " \\ 🙂 %d |\t\n;,: '
        odd = Recipient("a:b|c,d;e f", "{} []", {"echo": ["{}"]}, ["[]", "{}"])
        courier = FakeCourier()
        await stack.courier(courier)
        key = (await stack.deliver(odd, text=text, tags=["[]", "{}"], sender=Sender("x:y z", "[]"))).key
        history = await stack.finished(key)
        assert (history.text, list(history.tags), history.sender["id"]) == (text, ["[]", "{}"], "x:y z")
        assert (history.recipients[0].id, list(history.recipients[0].origin)) == ("a:b|c,d;e f", ["[]", "{}"])
        assert list(history.recipients[0].received_in) == ["echo"]
        assert courier.attempted[0].text == text

    async def test_empty_lists_are_returned_as_lists(self, stack: Stack) -> None:
        key = (await stack.deliver(person(1), deliver_at=stack.now() + HOUR)).key
        history = await stack.history(key)
        assert (list(history.tags), list(history.recipients[0].origin), list(history.recipients[0].received_in)) == (
            [],
            [],
            [],
        )


@pytest.mark.parametrize("shards", [3])
class TestList:
    async def test_the_list_is_newest_first_in_pages_that_neither_overlap_nor_skip(self, stack: Stack) -> None:
        keys = [(await stack.deliver(person(n), deliver_at=stack.now() + HOUR)).key for n in range(30)]
        found: list[HistoryKey] = []
        cursor = None
        while True:
            page, cursor = await stack.deliveries.list(TENANT, cursor=cursor, limit=7)
            found += [history.key for history in page]
            await stack.deliver(person(99), deliver_at=stack.now() + HOUR)
            if cursor is None:
                break
        assert found == keys[::-1]

    async def test_the_list_can_be_filtered_by_sender_state_and_time(self, stack: Stack) -> None:
        first = (await stack.deliver(person(1), sender=Sender("eve"), deliver_at=stack.now() + HOUR)).key
        second = (await stack.deliver(person(2), deliver_at=stack.now() + HOUR)).key
        await stack.deliveries.cancel(second, TENANT)
        stack.advance_clock(HOUR / 2)
        third = (await stack.deliver(person(3), deliver_at=stack.now() + HOUR)).key
        ask = stack.deliveries.list
        assert [h.key for h in (await ask(TENANT, sender="eve"))[0]] == [first]
        assert [h.key for h in (await ask(TENANT, state=DeliveryState.CANCELLED))[0]] == [second]
        assert [h.key for h in (await ask(TENANT, since=stack.now() - HOUR / 4))[0]] == [third]
        assert await ask("another") == ([], None)
        with pytest.raises(Invalid):
            await ask(TENANT, cursor="nonsense")

    async def test_the_deliveries_of_a_person_are_found_and_erased_however_many_pages_of_people_lie_between(
        self, stack: Stack
    ) -> None:
        find = stack.deliveries.of_person
        later = stack.now() + HOUR
        keys = [(await stack.deliver(person(n), person("anna"), deliver_at=later)).key for n in range(20)]
        found, end = await find.page(TENANT, "anna", None, 100, lambda _: True)
        assert ([one.history.key for one in found], end) == (keys[::-1], None)
        assert await find.erase(TENANT, "anna") == 20


async def test_deliveries_over_several_shards_work_as_in_one(clean_server: Server) -> None:
    stack = await Stack.open(clean_server, shards=4)
    courier = FakeCourier()
    await stack.courier(courier)
    accepted = [await stack.deliver(person(number)) for number in range(40)]
    for one in accepted:
        assert (await stack.finished(one.key)).verdict is Verdict.ALL_REACHED
    assert {one.key.shard for one in accepted} == {0, 1, 2, 3}
    assert len((await stack.deliveries.list(TENANT, limit=50))[0]) == 40
    assert len(courier.addresses) == 40
    await stack.end_everything()
    await stack.close()
