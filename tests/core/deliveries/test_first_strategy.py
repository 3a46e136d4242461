"""The strategy `first`: the channels one after the other, until one reaches the recipient (D-36)."""

from datetime import timedelta

import pytest

from core.model.delivery import Strategy
from core.model.history import History
from core.model.history_key import HistoryKey, Id
from core.model.states import DeliveryState, Reason, Status, Verdict
from couriers.sending.interface import NEVER, Rejected, Unknown
from couriers.sending.parcel import Parcel
from tests.support.delivery_progress import GONE, Gate, by_address
from tests.support.every_verb import report_token
from tests.support.servers import Server, on_both_servers
from tests.support.stack import HOUR, TENANT, FakeCourier, Stack, people, person
from tests.support.waiting import until

CHANNELS = ("telegram", "vk", "sms")
MINUTE = timedelta(minutes=1)
BLOCKED = Rejected(Reason.BLOCKED)


async def send_first(stack: Stack, *recipients, wait: timedelta | None = None, **options) -> HistoryKey:  # type: ignore[no-untyped-def]
    options = {"channels": CHANNELS} | options
    return (await stack.deliver(*recipients, strategy=Strategy.FIRST, wait=wait, **options)).key


def outcomes(history: History) -> dict[Id, list[str]]:
    """By recipient: status and reason in each channel."""
    return {
        record.id: [f"{one.status} {one.reason or ''}".strip() for one in record.outcomes.values()]
        for record in history.recipients
    }


async def until_outcomes(stack: Stack, key: HistoryKey, wanted: dict[Id, list[str]]) -> None:
    async def are_there() -> bool:
        await stack.tick()
        return outcomes(await stack.history(key)) == wanted

    await until(are_there)


@on_both_servers
async def test_the_next_channel_is_tried_only_for_those_whose_channel_before_failed(stack: Stack) -> None:
    telegram, vk, sms = (
        FakeCourier("telegram", by_address(p2=GONE, p3=GONE)),
        FakeCourier("vk", by_address(p3=GONE)),
        FakeCourier("sms"),
    )
    for courier in (sms, vk, telegram):
        await stack.courier(courier)
    history = await stack.finished(await send_first(stack, *people(4, *CHANNELS)))
    skipped = "skipped reached_elsewhere"
    assert outcomes(history) == {
        1: ["sent", skipped, skipped],
        2: ["failed recipient_unreachable", "sent", skipped],
        3: ["failed recipient_unreachable", "failed recipient_unreachable", "sent"],
        4: ["sent", skipped, skipped],
    }
    assert (vk.addresses, sms.addresses) == (["p2", "p3"], ["p3"])
    assert (history.verdict, history.state) == (Verdict.ALL_REACHED, DeliveryState.FINISHED)
    counts = {"recipients": 4, "reached": 4, Status.SENT: 4, Status.SKIPPED: 5, Status.FAILED: 3}
    assert {name: count for name, count in history.counts.items() if count} == counts


async def test_a_recipient_without_a_contact_in_a_channel_goes_on_at_once(stack: Stack) -> None:
    for channel in CHANNELS:
        await stack.courier(FakeCourier(channel))
    history = await stack.finished(await send_first(stack, person(1, "sms"), person(2, "vk"), person(3, "echo")))
    assert outcomes(history) == {
        1: ["no_contact", "no_contact", "sent"],
        2: ["no_contact", "sent", "no_contact"],
        3: ["no_contact", "no_contact", "no_contact"],
    }


async def test_a_delivery_ends_although_the_courier_of_an_unneeded_channel_is_down(stack: Stack) -> None:
    await stack.courier(FakeCourier("telegram"))
    history = await stack.finished(await send_first(stack, *people(3, *CHANNELS)))
    assert history.verdict is Verdict.ALL_REACHED


async def test_an_unknown_outcome_leads_to_no_other_channel(stack: Stack) -> None:
    await stack.courier(FakeCourier("telegram", lambda _: Unknown(), remembers=NEVER))
    vk = FakeCourier("vk")
    await stack.courier(vk)
    history = await stack.finished(await send_first(stack, person(1, "telegram", "vk"), channels=("telegram", "vk")))
    assert outcomes(history) == {1: ["unknown answer_lost", "skipped unknown_elsewhere"]}
    assert (vk.attempted, history.verdict) == ([], Verdict.NOTHING_WORKED)


@on_both_servers
async def test_after_the_wait_without_a_delivery_report_the_next_channel_is_tried(stack: Stack) -> None:
    await stack.courier(FakeCourier("telegram", by_address(p2=Unknown(), p4=BLOCKED), remembers=NEVER))
    vk = FakeCourier("vk")
    await stack.courier(vk)
    channels = "telegram", "vk"
    key = await send_first(stack, *people(4, *channels), wait=2 * MINUTE, channels=channels)
    await until_outcomes(
        stack,
        key,
        {
            1: ["sent", "queued"],
            2: ["unknown answer_lost", "queued"],
            3: ["sent", "queued"],
            4: ["failed blocked", "sent"],
        },
    )
    assert await stack.deliveries.record_report(await report_token(stack, key, "telegram", 0), Status.READ, "")
    stack.advance_clock(1.9 * MINUTE)
    await stack.tick()
    assert vk.addresses == ["p4"]
    assert outcomes(await stack.history(key))[1] == ["read", "skipped reached_elsewhere"]
    stack.advance_clock(0.2 * MINUTE)
    history = await stack.finished(key)
    assert sorted(vk.addresses) == ["p2", "p3", "p4"]
    assert outcomes(history)[3] == ["sent", "sent"]


async def test_a_failure_report_within_the_wait_leads_to_the_next_channel_at_once(stack: Stack) -> None:
    for channel in ("telegram", "vk"):
        await stack.courier(FakeCourier(channel))
    channels = "telegram", "vk"
    key = await send_first(stack, *people(1, *channels), wait=HOUR, channels=channels)
    await until_outcomes(stack, key, {1: ["sent", "queued"]})
    await stack.deliveries.record_report(await report_token(stack, key, "telegram", 0), Status.FAILED, "")
    history = await stack.finished(key)
    assert outcomes(history) == {1: ["failed", "sent"]}


async def test_a_switch_of_channel_has_its_own_event_with_the_reason(stack: Stack) -> None:
    await stack.courier(FakeCourier("telegram", lambda _: GONE))
    key = await send_first(stack, person(1, "telegram", "vk"), channels=("telegram", "vk"))
    await until_outcomes(stack, key, {1: ["failed recipient_unreachable", "queued failed_elsewhere"]})
    await stack.courier(FakeCourier("vk"))
    await stack.finished(key)
    changes = [change async for change in stack.tracker.follow(key, TENANT) if change.outcome]
    steps = [(change.channel, change.outcome.status, change.outcome.reason) for change in changes if change.outcome]
    assert steps == [("telegram", "failed", "recipient_unreachable"), ("vk", "sent", None)]
    events = await stack.store.command("XRANGE", "events:{0}", "-", "+")
    assert any("vk\tqueued|failed_elsewhere|" in word for _, fields in events for word in fields)


@pytest.mark.parametrize("reports", CHANNELS[:2])
async def test_a_report_that_comes_before_the_next_courier_spares_its_message(stack: Stack, reports: str) -> None:
    """From any earlier channel, not only from the first one."""
    for channel in CHANNELS[:2]:
        await stack.courier(FakeCourier(channel))
    key = await send_first(stack, *people(2, *CHANNELS), wait=MINUTE)
    await until_outcomes(stack, key, {one: ["sent", "queued", "queued"] for one in (1, 2)})
    stack.advance_clock(2 * MINUTE)
    await until_outcomes(stack, key, {one: ["sent", "sent", "queued"] for one in (1, 2)})
    stack.advance_clock(2 * MINUTE)
    await until_outcomes(stack, key, {one: ["sent", "sent", "queued no_receipt"] for one in (1, 2)})
    await stack.deliveries.record_report(await report_token(stack, key, reports, 0), Status.DELIVERED, "")
    sms = FakeCourier("sms")
    await stack.courier(sms)
    reached = ["delivered" if channel == reports else "sent" for channel in CHANNELS[:2]]
    history = await stack.finished(key)
    assert (sms.addresses, outcomes(history)[1]) == (["p2"], [*reached, "skipped reached_elsewhere"])


async def test_a_cancellation_ends_what_waits_for_an_earlier_channel(stack: Stack) -> None:
    await stack.courier(FakeCourier("telegram"))
    channels = "telegram", "vk"
    key = await send_first(stack, *people(3, *channels), wait=HOUR, channels=channels)
    await until_outcomes(stack, key, {n: ["sent", "queued"] for n in (1, 2, 3)})
    await stack.deliveries.cancel(key, TENANT, ["2"])
    assert outcomes(await stack.history(key))[2] == ["sent", "cancelled"]
    cancelled = await stack.deliveries.cancel(key, TENANT)
    assert sorted(map(str, cancelled.already_sent)) == ["1", "2", "3"]
    assert outcomes(await stack.finished(key))[1] == ["sent", "cancelled"]


async def test_what_waits_for_an_earlier_channel_expires_with_the_delivery(stack: Stack) -> None:
    await stack.courier(FakeCourier("telegram"))
    channels, expires = ("telegram", "vk"), stack.now() + MINUTE
    key = await send_first(stack, *people(1, *channels), wait=HOUR, channels=channels, expires_at=expires)
    await until_outcomes(stack, key, {1: ["sent", "queued"]})
    stack.advance_clock(2 * MINUTE)
    history = await stack.finished(key)
    assert (outcomes(history), history.state) == ({1: ["sent", "expired"]}, DeliveryState.FINISHED)


async def test_a_retry_goes_through_the_channels_in_order_again(stack: Stack) -> None:
    channels = "telegram", "vk"
    running = [await stack.courier(FakeCourier(channel, by_address(p1=GONE, p2=GONE))) for channel in channels]
    key = await send_first(stack, *people(3, *channels), channels=channels)
    await stack.finished(key)
    for runtime in running:
        await stack.stop(runtime)
    vk = FakeCourier("vk")
    await stack.courier(FakeCourier("telegram", by_address(p1=GONE)))
    await stack.courier(vk)
    assert await stack.deliveries.retry(key, TENANT, [Status.FAILED]) == 4
    history = await stack.finished(key)
    assert outcomes(history) == {
        1: ["failed recipient_unreachable", "sent"],
        2: ["sent", "skipped reached_elsewhere"],
        3: ["sent", "skipped reached_elsewhere"],
    }
    assert vk.addresses == ["p1"]
    assert await stack.deliveries.retry(key, TENANT, [Status.FAILED]) == 0, "it is reached in vk"


async def test_a_retry_of_failed_leaves_out_a_recipient_that_another_channel_may_have_reached(stack: Stack) -> None:
    """Otherwise it gets the message twice: its `unknown` in vk may be a message that arrived."""
    channels = "telegram", "vk"
    refuses = await stack.courier(FakeCourier("telegram", lambda _: GONE))
    unclear = await stack.courier(FakeCourier("vk", by_address(p1=Unknown(), p2=GONE, p3=Unknown()), remembers=NEVER))
    key = await send_first(stack, *people(3, *channels), channels=channels)
    failed = "failed recipient_unreachable"
    first = await stack.finished(key)
    unknown = "unknown answer_lost"
    assert outcomes(first) == {1: [failed, unknown], 2: [failed, failed], 3: [failed, unknown]}
    for running in (refuses, unclear):
        await stack.stop(running)
    telegram, vk = FakeCourier("telegram", by_address(p1=GONE)), FakeCourier("vk")
    await stack.courier(telegram)
    await stack.courier(vk)
    assert await stack.deliveries.retry(key, TENANT, [Status.FAILED]) == 2
    assert outcomes(await stack.finished(key))[2] == ["sent", "skipped reached_elsewhere"]
    assert (telegram.addresses, vk.addresses) == (["p2"], [])
    assert await stack.deliveries.retry(key, TENANT, [Status.FAILED, Status.UNKNOWN]) == 4
    assert outcomes(await stack.finished(key))[1] == [failed, "sent"]
    assert (telegram.addresses, vk.addresses) == (["p2", "p1", "p3"], ["p1"])


async def test_a_retried_unknown_that_fails_goes_on_to_the_channel_that_was_skipped(stack: Stack) -> None:
    channels = "telegram", "vk"
    running = await stack.courier(FakeCourier("telegram", lambda _: Unknown(), remembers=NEVER))
    key = await send_first(stack, *people(1, *channels), channels=channels)
    await stack.finished(key)
    await stack.stop(running)
    await stack.courier(FakeCourier("telegram", lambda _: GONE))
    await stack.courier(FakeCourier("vk"))
    assert await stack.deliveries.retry(key, TENANT, [Status.UNKNOWN]) == 2
    assert outcomes(await stack.finished(key)) == {1: ["failed recipient_unreachable", "sent"]}


async def test_any_contact_of_a_channel_that_is_reached_is_enough(stack: Stack) -> None:
    await stack.courier(FakeCourier("telegram", by_address(a=GONE)))
    vk = FakeCourier("vk")
    await stack.courier(vk)
    both = person(1, telegram=["a", "b"], vk=["x", "y"])
    history = await stack.finished(await send_first(stack, both, channels=("telegram", "vk")))
    assert (outcomes(history), vk.attempted) == ({1: ["sent", "skipped reached_elsewhere"]}, [])


async def test_many_parcels_with_different_contacts_end_in_the_right_channel(stack: Stack) -> None:
    def failing(message):  # type: ignore[no-untyped-def]
        return GONE if int(message.address[1:]) % 3 == 0 else FakeCourier().respond(message)

    telegram, vk, sms = FakeCourier("telegram", failing, parcel=50), FakeCourier("vk"), FakeCourier("sms", parcel=7)
    for courier in (telegram, vk, sms):
        await stack.courier(courier)
    group = [person(n, *CHANNELS[n % 2 :]) for n in range(230)]
    history = await stack.finished(await send_first(stack, *group))
    assert history.verdict is Verdict.ALL_REACHED
    assert sorted(int(address[1:]) for address in vk.addresses) == [n for n in range(230) if n % 2 or n % 3 == 0]
    assert not sms.addresses


async def test_the_last_of_a_large_parcel_goes_on_to_the_next_channel_at_once(stack: Stack) -> None:
    """One decision of the server writes 500 entries: those that the first channel has reached. The next one comes at
    once, not when the parcel is due again.
    """
    channels = "telegram", "vk"
    for channel in channels:
        await stack.stop(await stack.courier(FakeCourier(channel, parcel=501)))
    key = await send_first(stack, *people(501, *channels), channels=channels)
    (task,) = await stack.take("telegram")
    *reached, last = Parcel.of(task).entries
    items = [*(one.item(Status.SENT) for one in reached), last.item(Status.FAILED, Reason.BLOCKED)]
    for page in (items[:400], items[400:]):
        await stack.queue.extend(task, HOUR, page)
    await stack.queue.settle(task)
    await stack.courier(FakeCourier("vk", parcel=501))
    assert (await stack.finished(key)).verdict is Verdict.ALL_REACHED


async def test_a_parcel_that_only_waits_for_an_earlier_channel_does_not_block_its_lane(stack: Stack) -> None:
    gate = Gate(lambda message: GONE)
    await stack.courier(FakeCourier("telegram", gate))
    vk = FakeCourier("vk")
    await stack.courier(vk)
    both = person(1, "vk"), person(2, "telegram", "vk")
    key = await send_first(stack, *both, channels=("telegram", "vk"), lane="x")
    await until_outcomes(stack, key, {1: ["no_contact", "sent"], 2: ["queued", "queued"]})
    await stack.finished((await stack.deliver(person(3, "vk"), channels=("vk",), lane="x")).key)
    assert vk.addresses == ["p1", "p3"]
    gate.opened.set()
    assert (await stack.finished(key)).verdict is Verdict.ALL_REACHED


async def test_deliveries_with_opposite_orders_in_one_lane_do_not_wait_for_each_other(stack: Stack) -> None:
    gate = Gate(lambda message: GONE)
    await stack.courier(FakeCourier("telegram", gate))
    await stack.courier(FakeCourier("vk", gate))
    keys = []
    for channels in (("telegram", "vk"), ("vk", "telegram")):
        keys += [await send_first(stack, *people(3, *channels), channels=channels, lane="x") for _ in range(3)]
    gate.opened.set()
    for key in keys:
        assert (await stack.finished(key)).verdict is Verdict.NOTHING_WORKED


async def test_a_parcel_cancelled_by_an_operator_leads_to_the_next_channel(stack: Stack) -> None:
    vk = FakeCourier("vk")
    await stack.courier(vk)
    key = await send_first(stack, *people(2, "telegram", "vk"), channels=("telegram", "vk"))
    await stack.store.run("cancel_tasks", 0, f"{key.ns}.{key.sender}.telegram.0")
    history = await stack.finished(key)
    assert sorted(vk.addresses) == ["p1", "p2"]
    assert history.verdict is Verdict.ALL_REACHED


async def test_a_buried_and_kicked_parcel_of_a_later_channel_attempts_no_one_too_early(stack: Stack) -> None:
    key = await send_first(stack, *people(2, "telegram", "vk"), channels=("telegram", "vk"))
    task = f"{key.ns}.{key.sender}.vk.0"
    assert await stack.store.run("bury", 0, task)
    assert await stack.store.run("kick", 0, task)
    vk = FakeCourier("vk")
    await stack.courier(vk)
    await stack.courier(FakeCourier("telegram"))
    await stack.finished(key)
    assert not vk.attempted


async def test_the_order_and_the_wait_survive_the_kill_of_the_server_and_of_all_couriers(own_server: Server) -> None:
    stack = await Stack.open(own_server)
    channels = "telegram", "vk"
    telegram = await stack.courier(FakeCourier("telegram", by_address(p1=GONE)))
    key = await send_first(stack, *people(2, *channels), wait=timedelta(seconds=3), channels=channels)
    await until_outcomes(
        stack, key, {1: ["failed recipient_unreachable", "queued failed_elsewhere"], 2: ["sent", "queued"]}
    )
    stack.abandon(telegram)
    await stack.close()
    own_server.kill()
    own_server.start()
    stack = await Stack.open(own_server)
    vk = FakeCourier("vk")
    await stack.courier(vk)
    assert outcomes(await stack.finished(key)) == {1: ["failed recipient_unreachable", "sent"], 2: ["sent", "sent"]}
    assert vk.addresses == ["p1", "p2"]
    await stack.audit()
    await stack.close()
