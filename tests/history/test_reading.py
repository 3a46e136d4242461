"""What a delivery's history tells, page by page; the list of deliveries; histories over several shards."""

import pytest

from core.errors import Invalid
from core.model.delivery import Recipient, Sender
from core.model.history_key import HistoryKey
from core.model.states import DeliveryState, Status, Verdict
from tests.support.delivery_progress import SECOND
from tests.support.servers import Server, on_both_servers
from tests.support.stack import HOUR, TENANT, Played, Stack, people, person


class TestWhatAHistoryTells:
    @on_both_servers
    @pytest.mark.row("D-03", "D-17")
    async def test_who_sent_what_from_where_to_whom_and_who_got_it_and_how(self, stack: Stack) -> None:
        await stack.courier(Played("telegram"))
        await stack.courier(Played("vk"))
        anna = Recipient(1, "Anna", {"telegram": ["t1"], "vk": ["v1"]}, ["group 42", "course 3"])
        boris = Recipient("b-2", None, {"vk": ["v2"]})
        accepted = await stack.deliver(anna, boris, channels=("telegram", "vk"), text="Пары не будет", tags=["urgent"])
        told = await stack.finished(accepted.key)
        assert (told.text, told.origin, told.kind, list(told.tags)) == ("Пары не будет", "api", "message", ["urgent"])
        assert told.sender == {"id": 7, "name": "Anna", "role": "staff"}
        assert (told.state, told.verdict) == (DeliveryState.FINISHED, Verdict.ALL_REACHED)
        assert told.created_at <= told.deliver_at <= (told.released_at or told.created_at)
        first, second = told.recipients
        assert (first.id, first.name, list(first.origin)) == (1, "Anna", ["group 42", "course 3"])
        assert (list(first.received_in), list(second.received_in)) == (["telegram", "vk"], ["vk"])
        assert first.outcomes["vk"].reference == "ref-v1"
        assert (first.outcomes["vk"].status, first.outcomes["vk"].attempts) == (Status.SENT, 1)
        assert first.outcomes["vk"].at
        assert second.outcomes["telegram"].status is Status.NO_CONTACT
        assert (told.counts["recipients"], told.counts["reached"], told.counts[Status.SENT]) == (2, 2, 3)

    @pytest.mark.row("D-03")
    async def test_it_answers_at_any_moment(self, stack: Stack) -> None:
        key = (await stack.deliver(*people(2), deliver_at=stack.now() + HOUR)).key
        assert (await stack.history(key)).state is DeliveryState.SCHEDULED
        await stack.deliveries.reschedule(
            key, TENANT, stack.now() - SECOND
        )  # this very moment may round up to the next ms
        released = await stack.history(key)
        assert (released.state, released.channels["echo"].state) == (DeliveryState.RELEASED, "pending")
        assert {record.outcomes["echo"].status for record in released.recipients} == {Status.QUEUED}
        await stack.courier(Played())
        assert (await stack.finished(key)).counts[Status.SENT] == 2

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
    async def test_a_cursor_that_makes_no_sense_is_refused(self, stack: Stack, cursor: str) -> None:
        key = (await stack.deliver(person(1), deliver_at=stack.now() + HOUR)).key
        with pytest.raises(Invalid, match="cursor"):
            await stack.deliveries.read(key, TENANT, cursor)

    @pytest.mark.row("D-14")
    async def test_text_and_names_come_back_letter_for_letter(self, stack: Stack) -> None:
        text = 'null {} [] {"a":[]} \u2028 \x01 " \\ 🙂 %d |\t\n;,: '
        odd = Recipient("a:b|c,d;e f", "{} []", {"echo": ["{}"]}, ["[]", "{}"])
        courier = Played()
        await stack.courier(courier)
        key = (await stack.deliver(odd, text=text, tags=["[]", "{}"], sender=Sender("x:y z", "[]"))).key
        told = await stack.finished(key)
        assert (told.text, list(told.tags), told.sender["id"]) == (text, ["[]", "{}"], "x:y z")
        assert (told.recipients[0].id, list(told.recipients[0].origin)) == ("a:b|c,d;e f", ["[]", "{}"])
        assert list(told.recipients[0].received_in) == ["echo"]
        assert courier.attempted[0].text == text

    @pytest.mark.row("D-14")
    async def test_empty_lists_are_lists(self, stack: Stack) -> None:
        key = (await stack.deliver(person(1), deliver_at=stack.now() + HOUR)).key
        told = await stack.history(key)
        assert (list(told.tags), list(told.recipients[0].origin), list(told.recipients[0].received_in)) == ([], [], [])


class TestTheListOfDeliveries:
    async def test_newest_first_in_pages_that_neither_overlap_nor_skip(self, stack: Stack) -> None:
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

    async def test_of_a_sender_in_a_state_since_a_moment(self, stack: Stack) -> None:
        first = (await stack.deliver(person(1), sender=Sender("eve"), deliver_at=stack.now() + HOUR)).key
        second = (await stack.deliver(person(2), deliver_at=stack.now() + HOUR)).key
        await stack.deliveries.cancel(second, TENANT)
        stack.passes(HOUR / 2)
        third = (await stack.deliver(person(3), deliver_at=stack.now() + HOUR)).key
        ask = stack.deliveries.list
        assert [h.key for h in (await ask(TENANT, sender="eve"))[0]] == [first]
        assert [h.key for h in (await ask(TENANT, state=DeliveryState.CANCELLED))[0]] == [second]
        assert [h.key for h in (await ask(TENANT, since=stack.now() - HOUR / 4))[0]] == [third]
        assert await ask("another") == ([], None)
        with pytest.raises(Invalid):
            await ask(TENANT, cursor="nonsense")


@pytest.mark.row("D-03", "D-13")
async def test_deliveries_spread_over_shards_work_as_in_one(clean_server: Server) -> None:
    stack = await Stack.open(clean_server, shards=4)
    courier = Played()
    await stack.courier(courier)
    accepted = [await stack.deliver(person(number)) for number in range(40)]
    for one in accepted:
        assert (await stack.finished(one.key)).verdict is Verdict.ALL_REACHED
    assert {one.key.shard for one in accepted} == {0, 1, 2, 3}
    assert len((await stack.deliveries.list(TENANT, limit=50))[0]) == 40
    assert len(courier.addresses) == 40
    await stack.end_everything()
    await stack.close()
