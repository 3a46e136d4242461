"""A delivery's history: how it comes into being, what it answers, how it is moved, ended, repeated and dropped."""

import asyncio
from datetime import timedelta

import pytest
from msgspec.structs import replace

from core.errors import Conflict, Forbidden, Invalid, NotFound
from core.orders import Accepted, HistoryKey, Recipient, Repeat, Sender
from core.port import Message, Outcome, Rejected
from core.words import DeliveryState, Reason, Status, Verdict
from tests.core.audit import dump
from tests.core.house import HOUR, SENDER, TENANT, House, Played, order, people, person
from tests.servers import Server, on_both_servers
from tests.waiting import until

SECOND = timedelta(seconds=1)


async def pending(house: House, key: HistoryKey) -> bool:
    return bool(await house.redis.exists(f"delivery:{{{key.shard}}}:{key.suffix}"))


class TestWhatAHistoryTells:
    @on_both_servers
    @pytest.mark.row("D-03", "D-17")
    async def test_who_sent_what_from_where_to_whom_and_who_got_it_and_how(self, house: House) -> None:
        await house.courier(Played("telegram"))
        await house.courier(Played("vk"))
        anna = Recipient(1, "Anna", {"telegram": ["t1"], "vk": ["v1"]}, ["group 42", "course 3"])
        boris = Recipient("b-2", None, {"vk": ["v2"]})
        accepted = await house.deliver(anna, boris, channels=("telegram", "vk"), text="Пары не будет", tags=["urgent"])
        told = await house.finished(accepted.key)
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
    async def test_it_answers_at_any_moment(self, house: House) -> None:
        key = (await house.deliver(*people(2), deliver_at=house.now() + HOUR)).key
        assert (await house.history(key)).state is DeliveryState.SCHEDULED
        await house.histories.reschedule(
            key, TENANT, house.now() - SECOND
        )  # this very moment may round up to the next ms
        released = await house.history(key)
        assert (released.state, released.channels["echo"].state) == (DeliveryState.RELEASED, "pending")
        assert {record.outcomes["echo"].status for record in released.recipients} == {Status.QUEUED}
        await house.courier(Played())
        assert (await house.finished(key)).counts[Status.SENT] == 2

    async def test_the_pages_of_recipients_neither_overlap_nor_skip(self, house: House) -> None:
        key = (await house.deliver(*people(450), deliver_at=house.now() + HOUR)).key
        found, cursor = [], None
        while True:
            page = await house.histories.read(key, TENANT, cursor, 97)
            found += [record.id for record in page.recipients]
            cursor = page.next
            if cursor is None:
                break
        assert found == list(range(1, 451))

    @pytest.mark.parametrize("cursor", ["-1", "x", "1" * 10, "", "٣"])
    async def test_a_cursor_that_makes_no_sense_is_refused(self, house: House, cursor: str) -> None:
        key = (await house.deliver(person(1), deliver_at=house.now() + HOUR)).key
        with pytest.raises(Invalid, match="cursor"):
            await house.histories.read(key, TENANT, cursor)

    @pytest.mark.row("D-14")
    async def test_text_and_names_come_back_letter_for_letter(self, house: House) -> None:
        text = 'null {} [] {"a":[]} \u2028 \x01 " \\ 🙂 %d |\t\n;,: '
        odd = Recipient("a:b|c,d;e f", "{} []", {"echo": ["{}"]}, ["[]", "{}"])
        courier = Played()
        await house.courier(courier)
        key = (await house.deliver(odd, text=text, tags=["[]", "{}"], sender=Sender("x:y z", "[]"))).key
        told = await house.finished(key)
        assert (told.text, list(told.tags), told.sender["id"]) == (text, ["[]", "{}"], "x:y z")
        assert (told.recipients[0].id, list(told.recipients[0].origin)) == ("a:b|c,d;e f", ["[]", "{}"])
        assert list(told.recipients[0].received_in) == ["echo"]
        assert courier.attempted[0].text == text

    @pytest.mark.row("D-14")
    async def test_empty_lists_are_lists(self, house: House) -> None:
        key = (await house.deliver(person(1), deliver_at=house.now() + HOUR)).key
        told = await house.history(key)
        assert (list(told.tags), list(told.recipients[0].origin), list(told.recipients[0].received_in)) == ([], [], [])


class TestHowItComesIntoBeing:
    @on_both_servers
    @pytest.mark.row("D-04", "D-05")
    async def test_history_and_order_come_into_being_together_with_one_suffix(self, house: House) -> None:
        key = (await house.deliver(person(1), deliver_at=house.now() + HOUR)).key
        assert str(key).startswith("history:{0}:7:")
        assert len(str(key.ns)) == 19
        assert await house.redis.exists(str(key))
        assert await pending(house, key)
        kept = await dump(house.server.url)
        assert abs(kept[f"delivery:{{0}}:{key.suffix}"].pttl - 3_600_000) < 5_000

    @pytest.mark.row("D-04")
    async def test_a_key_can_be_had_first_and_is_used_once(self, house: House) -> None:
        key = await house.histories.reserve(TENANT, SENDER.id)
        with pytest.raises(NotFound):
            await house.history(key)
        assert (await house.deliver(person(1), history_key=key, deliver_at=house.now() + HOUR)).key == key
        with pytest.raises(Conflict) as refused:
            await house.deliver(person(1), history_key=key)
        assert refused.value.code == "HISTORY_KEY_USED"

    @pytest.mark.row("D-04")
    async def test_another_tenants_key_is_refused_and_leaves_no_trace(self, house: House) -> None:
        key = await house.histories.reserve("another", SENDER.id)
        before = house.server.all_keys()
        with pytest.raises(Forbidden) as refused:
            await house.deliver(person(1), history_key=key)
        assert refused.value.code == "HISTORY_KEY_FOREIGN"
        assert house.server.all_keys() == before

    @pytest.mark.row("D-04")
    async def test_keys_reserved_at_once_differ(self, house: House) -> None:
        keys = await asyncio.gather(*(house.histories.reserve(TENANT, 7) for _ in range(500)))
        assert len(set(keys)) == 500

    @on_both_servers
    @pytest.mark.row("D-39")
    async def test_a_thousand_identical_requests_at_once_are_one_delivery_with_one_answer(self, house: House) -> None:
        courier = Played()
        await house.courier(courier)
        one, repeat = order(person(1)), Repeat("the same", "print")
        answers = [*await house.histories.enqueue_many([(one, repeat)] * 1000)]
        accepted = [answer for answer in answers if isinstance(answer, Accepted)]
        assert len(accepted) == 1000
        assert len({replace(answer, repeated=False) for answer in accepted}) == 1
        assert [answer.repeated for answer in accepted].count(False) == 1
        await house.finished(accepted[0].key)
        assert courier.addresses == ["p1"]

    @pytest.mark.row("D-39")
    async def test_a_repeat_from_another_process_and_after_the_end_is_answered_as_the_first(self, house: House) -> None:
        await house.courier(Played())
        repeat = Repeat("key", "print")
        first = await house.histories.enqueue(order(person(1)), repeat)
        await house.finished(first.key)
        other = await House.open(house.server)
        assert await other.histories.enqueue(order(person(1)), repeat) == replace(first, repeated=True)
        await other.close()

    @pytest.mark.row("D-39")
    async def test_the_same_key_with_another_request_is_refused_and_another_tenants_is_another(
        self, house: House
    ) -> None:
        first = await house.histories.enqueue(order(person(1), deliver_at=house.now() + HOUR), Repeat("key", "one"))
        with pytest.raises(Conflict) as refused:
            await house.histories.enqueue(order(person(2)), Repeat("key", "two"))
        assert refused.value.code == "IDEMPOTENCY_KEY_REUSED"
        theirs = await house.histories.enqueue(
            order(person(2), tenant="another", deliver_at=house.now() + HOUR), Repeat("key", "two")
        )
        assert theirs.key != first.key
        await house.histories.cancel(theirs.key, "another")

    @on_both_servers
    @pytest.mark.row("D-33")
    async def test_ten_thousand_recipients_are_one_call_and_one_script(self, house: House) -> None:
        await house.queue.stats()
        await house.redis.config_resetstat()
        key = (await house.deliver(*people(10_000, "echo", "vk"), channels=("echo", "vk"))).key
        stats = await house.redis.info("commandstats")
        assert stats["cmdstat_evalsha"]["calls"] <= 2  # the second where the script was not yet loaded
        assert (await house.history(key, limit=1)).counts["recipients"] == 10_000

    @pytest.mark.row("D-33")
    async def test_ten_thousand_recipients_complete(self, house: House) -> None:
        courier = Played(batch=2500, parcel=2500)
        await house.courier(courier)
        key = (await house.deliver(*people(10_000))).key
        told = await house.finished(key, within=20)
        assert (told.counts[Status.SENT], told.verdict) == (10_000, Verdict.ALL_REACHED)
        assert len(set(courier.addresses)) == len(courier.addresses) == 10_000

    @pytest.mark.row("D-26")
    async def test_a_key_of_a_shard_that_does_not_exist_is_refused(self, house: House) -> None:
        key = HistoryKey(5, "7", 1795240000000000000)
        with pytest.raises(Invalid):
            await house.deliver(person(1), history_key=key)
        with pytest.raises(NotFound):
            await house.history(key)
        with pytest.raises(NotFound):
            await house.histories.reschedule(key, TENANT, house.now())
        with pytest.raises(NotFound):
            await house.histories.cancel(key, TENANT)


class TestItsMoment:
    @on_both_servers
    @pytest.mark.row("D-06", "D-07")
    async def test_a_delivery_is_made_at_its_moment_and_not_before(self, house: House) -> None:
        courier = Played()
        await house.courier(courier)
        due = house.now() + 0.6 * SECOND
        accepted = await house.deliver(person(1), deliver_at=due)
        assert accepted.state is DeliveryState.SCHEDULED
        assert await pending(house, accepted.key)
        told = await house.finished(accepted.key)
        assert told.released_at is not None
        assert timedelta(0) <= told.released_at - due.replace(microsecond=due.microsecond // 1000 * 1000) < 0.3 * SECOND
        assert not await pending(house, accepted.key)

    @pytest.mark.row("D-06")
    async def test_at_once_means_that_the_order_is_gone_when_the_call_is_answered(self, house: House) -> None:
        key = (await house.deliver(person(1))).key
        assert not await pending(house, key)
        assert (await house.history(key)).state is DeliveryState.RELEASED

    @pytest.mark.row("D-06")
    async def test_a_moment_that_has_passed_means_at_once_and_is_said(self, house: House) -> None:
        asked = house.now().replace(microsecond=0) - HOUR
        accepted = await house.deliver(person(1), deliver_at=asked)
        assert accepted.state is DeliveryState.RELEASED
        assert accepted.moved_from == asked
        assert abs(accepted.deliver_at - house.now()) < 5 * SECOND
        assert (await house.history(accepted.key)).moved_from == asked

    @on_both_servers
    @pytest.mark.row("D-07")
    async def test_a_delivery_can_be_moved_to_later_and_to_sooner(self, house: House) -> None:
        key = (await house.deliver(person(1), deliver_at=house.now() + HOUR)).key
        await house.histories.reschedule(key, TENANT, house.now() + 3 * HOUR)
        house.passes(2 * HOUR)
        await house.tick()
        assert (await house.history(key)).state is DeliveryState.SCHEDULED
        await house.histories.reschedule(key, TENANT, house.now() + timedelta(minutes=1))
        house.passes(timedelta(minutes=2))
        await house.tick()
        assert (await house.history(key)).state is DeliveryState.RELEASED

    @pytest.mark.row("D-07")
    async def test_moving_to_now_releases_at_once(self, house: House) -> None:
        key = (await house.deliver(person(1), deliver_at=house.now() + HOUR)).key
        moved = await house.histories.reschedule(key, TENANT, house.now() - HOUR)
        assert moved.state is DeliveryState.RELEASED
        assert not await pending(house, key)

    @pytest.mark.row("D-07")
    async def test_what_was_released_cannot_be_moved_and_nobody_moves_anothers(self, house: House) -> None:
        key = (await house.deliver(person(1))).key
        with pytest.raises(Conflict) as refused:
            await house.histories.reschedule(key, TENANT, house.now() + HOUR)
        assert refused.value.code == "ALREADY_RELEASED"
        for ask in (
            house.histories.reschedule(key, "another", house.now()),
            house.histories.cancel(key, "another"),
            house.histories.read(key, "another"),
            house.histories.retry(key, "another", [Status.FAILED]),
        ):
            with pytest.raises(NotFound):
                await ask

    @pytest.mark.row("D-07")
    async def test_a_delivery_cannot_be_moved_past_its_own_expiry(self, house: House) -> None:
        now = house.now()
        key = (await house.deliver(person(1), deliver_at=now + HOUR, expires_at=now + 2 * HOUR)).key
        with pytest.raises(Invalid) as refused:
            await house.histories.reschedule(key, TENANT, now + 2 * HOUR)
        assert refused.value.code == "EXPIRES_BEFORE_DUE"

    @on_both_servers
    @pytest.mark.row("D-07", "D-17")
    async def test_a_delivery_cancelled_before_its_moment_reaches_nobody(self, house: House) -> None:
        courier = Played()
        key = (await house.deliver(*people(3), deliver_at=house.now() + HOUR)).key
        assert (await house.histories.cancel(key, TENANT)).cancelled == 3
        assert not await pending(house, key)
        await house.courier(courier)
        house.passes(2 * HOUR)
        await house.tick()
        told = await house.history(key)
        assert (told.state, told.counts[Status.CANCELLED]) == (DeliveryState.CANCELLED, 3)
        assert courier.attempted == []

    @pytest.mark.row("D-07", "D-18")
    async def test_a_scheduled_delivery_survives_a_restart_of_everything(self, own_server: Server) -> None:
        before = await House.open(own_server)
        early = (await before.deliver(person(1), deliver_at=before.now() + 0.2 * SECOND)).key
        late = (await before.deliver(person(2), deliver_at=before.now() + 1.5 * SECOND)).key
        await before.close()
        own_server.kill()
        own_server.start()
        house = await House.open(own_server)
        courier = Played()
        await house.courier(courier)
        await house.finished(early)
        told = await house.finished(late)
        assert told.released_at
        assert abs(told.released_at - told.deliver_at) < 0.4 * SECOND
        assert courier.addresses == ["p1", "p2"]
        await house.audit()
        await house.close()

    @pytest.mark.row("D-07")
    async def test_hundreds_of_deliveries_of_one_moment_are_all_made_then(self, house: House) -> None:
        courier = Played()
        due = house.now() + HOUR
        orders = [(order(person(number), deliver_at=due), None) for number in range(300)]
        await house.histories.enqueue_many(orders)
        house.passes(HOUR)
        await house.courier(courier)
        await until(lambda: len(courier.attempted) == 300, within=20)
        assert len(set(courier.addresses)) == 300
        await until(lambda: nothing_live(house))


async def nothing_live(house: House) -> bool:
    return not await house.redis.exists(f"deliveries:{{0}}:live:{TENANT}")


class TestItsEnd:
    @on_both_servers
    @pytest.mark.row("D-18")
    async def test_what_falls_due_without_a_courier_waits_for_it_unless_it_expired(self, house: House) -> None:
        now = house.now()
        kept = (await house.deliver(person(1), deliver_at=now + HOUR, expires_at=now + 9 * HOUR)).key
        stale = (await house.deliver(person(2), deliver_at=now + HOUR, expires_at=now + 2 * HOUR)).key
        house.passes(3 * HOUR)
        courier = Played()
        await house.courier(courier)
        assert (await house.finished(kept)).verdict is Verdict.ALL_REACHED
        told = await house.finished(stale)
        assert (told.state, told.counts[Status.EXPIRED], told.verdict) == (
            DeliveryState.EXPIRED,
            1,
            Verdict.NOTHING_WORKED,
        )
        assert courier.addresses == ["p1"]

    @pytest.mark.row("D-18")
    async def test_what_expires_half_way_keeps_what_was_sent(self, house: House) -> None:
        await house.courier(Played("vk"))
        key = (await house.deliver(person(1, "vk", "sms"), channels=("vk", "sms"), expires_at=house.now() + HOUR)).key
        await until(lambda: reported(house, key, 1))
        house.passes(2 * HOUR)
        told = await house.finished(key)
        assert told.state is DeliveryState.FINISHED
        assert told.recipients[0].outcomes["sms"].status is Status.EXPIRED
        assert list(told.recipients[0].received_in) == ["vk"]

    @on_both_servers
    async def test_after_its_retention_a_delivery_is_gone_with_all_its_indexes(self, house: House) -> None:
        await house.redis.hset("settings:{0}", "retention_ms", str(24 * 3600 * 1000))
        await house.courier(Played())
        keys = [(await house.deliver(person(number))).key for number in range(25)]
        for key in keys:
            await house.finished(key)
        assert len((await house.histories.list(TENANT))[0]) == 25
        house.passes(25 * HOUR)
        await house.tick(times=4)
        for key in keys:
            with pytest.raises(NotFound):
                await house.history(key)
        assert await house.histories.list(TENANT) == ([], None)
        assert [key for key in house.server.all_keys() if key.startswith(("history", "deliveries"))] == []

    @pytest.mark.row("D-40")
    async def test_what_expired_stays_expired_when_the_failed_is_tried_again(self, house: House) -> None:
        """The retry forgot that a channel had expired, and its recipients became cancelled."""
        await house.courier(Played("vk", answer=refuse))
        expires = house.now() + HOUR
        key = (await house.deliver(person(1, "vk", "sms"), channels=("vk", "sms"), expires_at=expires)).key
        await until(lambda: reported(house, key, 1))
        house.passes(2 * HOUR)
        await house.finished(key)
        await house.histories.retry(key, TENANT, [Status.FAILED])
        told = await house.finished(key)
        assert told.recipients[0].outcomes["sms"].status is Status.EXPIRED
        assert told.recipients[0].outcomes["vk"].status is Status.FAILED

    async def test_what_is_retried_within_its_retention_is_kept_while_it_is_at_work(self, house: House) -> None:
        await house.redis.hset("settings:{0}", "retention_ms", "3600000")
        courier = Played(answer=refuse)
        running = await house.courier(courier)
        key = (await house.deliver(person(1))).key
        await house.finished(key)
        await house.stop(running)
        assert await house.histories.retry(key, TENANT, [Status.FAILED]) == 1
        house.passes(48 * HOUR)
        await house.tick()
        assert (await house.history(key)).state is DeliveryState.RELEASED
        assert await house.redis.pttl(str(key)) == -1


def refuse(message: Message) -> Outcome:
    return Rejected(Reason.BLOCKED)


async def reported(house: House, key: HistoryKey, count: int) -> bool:
    return (await house.history(key)).reported >= count


class TestTheListOfDeliveries:
    async def test_newest_first_in_pages_that_neither_overlap_nor_skip(self, house: House) -> None:
        keys = [(await house.deliver(person(n), deliver_at=house.now() + HOUR)).key for n in range(30)]
        found: list[HistoryKey] = []
        cursor = None
        while True:
            page, cursor = await house.histories.list(TENANT, cursor=cursor, limit=7)
            found += [history.key for history in page]
            await house.deliver(person(99), deliver_at=house.now() + HOUR)
            if cursor is None:
                break
        assert found == keys[::-1]

    async def test_of_a_sender_in_a_state_since_a_moment(self, house: House) -> None:
        first = (await house.deliver(person(1), sender=Sender("eve"), deliver_at=house.now() + HOUR)).key
        second = (await house.deliver(person(2), deliver_at=house.now() + HOUR)).key
        await house.histories.cancel(second, TENANT)
        house.passes(HOUR / 2)
        third = (await house.deliver(person(3), deliver_at=house.now() + HOUR)).key
        ask = house.histories.list
        assert [h.key for h in (await ask(TENANT, sender="eve"))[0]] == [first]
        assert [h.key for h in (await ask(TENANT, state=DeliveryState.CANCELLED))[0]] == [second]
        assert [h.key for h in (await ask(TENANT, since=house.now() - HOUR / 4))[0]] == [third]
        assert await ask("another") == ([], None)
        with pytest.raises(Invalid):
            await ask(TENANT, cursor="nonsense")


@pytest.mark.row("D-03", "D-13")
async def test_deliveries_spread_over_shards_work_as_in_one(clean_server: Server) -> None:
    house = await House.open(clean_server, shards=4)
    courier = Played()
    await house.courier(courier)
    accepted = [await house.deliver(person(number)) for number in range(40)]
    for one in accepted:
        assert (await house.finished(one.key)).verdict is Verdict.ALL_REACHED
    assert {one.key.shard for one in accepted} == {0, 1, 2, 3}
    assert len((await house.histories.list(TENANT, limit=50))[0]) == 40
    assert len(courier.addresses) == 40
    await house.end_everything()
    await house.close()
