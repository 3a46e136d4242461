"""Outcomes: any number of couriers report at once, in any order, and no outcome is lost (D-13)."""

import asyncio
import json
import random
import sys
from itertools import permutations

import pytest

from core.errors import Forbidden, NotFound
from core.model.history_key import HistoryKey
from core.model.json_form import compact_json
from core.model.states import DeliveryState, Reason, Status, Verdict
from couriers.sending.interface import Deferred, Sent
from tests.support.every_verb import entry_of, report_token
from tests.support.paths import ROOT
from tests.support.servers import on_both_servers
from tests.support.stack import HOUR, TENANT, FakeCourier, Stack, people, person


@on_both_servers
async def test_reports_in_any_order_and_any_number_give_the_same_history(stack: Stack) -> None:
    reports = [Status.SENT, Status.DELIVERED, Status.READ]
    orders = [*permutations(reports), *permutations([*reports, Status.DELIVERED, Status.READ], 5)]
    key = (await stack.deliver(*people(len(orders)), channels=("echo",))).key
    for index, statuses in enumerate(orders):
        token = await report_token(stack, key, index=index)
        for status in statuses:
            await stack.deliveries.record_report(token, status, "r")
    history = await stack.history(key, limit=1000)
    assert {record.outcomes["echo"].status for record in history.recipients} == {Status.READ}
    assert history.counts["reached"] == len(orders)
    assert history.state is DeliveryState.FINISHED


@on_both_servers
async def test_a_recipient_with_several_contacts_is_reached_by_one_and_open_while_one_is_open(stack: Stack) -> None:
    key = (await stack.deliver(person(1, echo=["a", "b", "c"]))).key
    tokens = [await report_token(stack, key, index=index) for index in range(3)]
    seen = []
    for token, status in [(0, Status.FAILED), (1, Status.SENT), (1, Status.FAILED), (2, Status.DELIVERED)]:
        await stack.deliveries.record_report(tokens[token], status, "")
        history = await stack.history(key)
        seen.append(
            (history.recipients[0].outcomes["echo"].status, history.counts["reached"], history.channels["echo"].state)
        )
        await stack.audit()
    assert seen == [
        (Status.QUEUED, 0, "pending"),
        (Status.SENT, 1, "pending"),
        (Status.QUEUED, 0, "pending"),
        (Status.DELIVERED, 1, "reported"),
    ]


async def test_all_contacts_of_a_channel_get_the_message_and_count_as_one_recipient(stack: Stack) -> None:
    courier = FakeCourier()
    await stack.courier(courier)
    history = await stack.finished((await stack.deliver(person(1, echo=["a", "b"]), person(2))).key)
    assert sorted(courier.addresses) == ["a", "b", "p2"]
    assert (history.counts["recipients"], history.counts["reached"], history.counts[Status.SENT]) == (2, 2, 2)


@on_both_servers
async def test_a_recipient_reached_in_two_channels_stays_reached_when_one_of_them_reports_a_failure(
    stack: Stack,
) -> None:
    channels = ("vk", "sms")
    key = (await stack.deliver(person(1, *channels), person(2, *channels), channels=channels)).key
    for index in (0, 1):
        await stack.deliveries.record_report(await report_token(stack, key, "sms", index), Status.SENT, "")
    await stack.deliveries.record_report(await report_token(stack, key, "vk", 0), Status.SENT, "")
    for index in (0, 1):
        await stack.deliveries.record_report(await report_token(stack, key, "sms", index), Status.FAILED, "")
    history = await stack.history(key)
    assert history.counts["reached"] == 1
    assert [list(record.received_in) for record in history.recipients] == [["vk"], []]


@on_both_servers
async def test_the_same_items_twice_in_one_report_count_once(stack: Stack) -> None:
    key = (await stack.deliver(*people(3))).key
    (task,) = await stack.take("echo")
    items = [(await entry_of(stack, key, "echo", index, 0)).item(Status.SENT) for index in range(3)]
    mixed = [items[2], items[0], items[2], items[1], items[0], items[2]]
    assert (await stack.queue.extend(task, HOUR, mixed[:4])).lease_valid
    assert await stack.queue.settle(task, outcomes=mixed[4:]) == "done"
    history = await stack.history(key)
    assert (history.counts[Status.SENT], history.counts["reached"], history.verdict) == (3, 3, Verdict.ALL_REACHED)


async def test_ids_that_look_alike_are_kept_apart(stack: Stack) -> None:
    """`1:vk` could be recipient 1 in vk, or recipient `1:vk`; `1` in `vk:1` and so on."""
    odd = ["1", "1:vk", "11", "1:", ":1", "vk", "1|2"]
    courier, other = FakeCourier("vk"), FakeCourier("vk1")
    await stack.courier(courier)
    await stack.courier(other)
    key = (await stack.deliver(*(person(name, "vk", "vk1") for name in odd), channels=("vk", "vk1"))).key
    history = await stack.finished(key)
    assert [list(record.received_in) for record in history.recipients] == [["vk", "vk1"]] * len(odd)
    assert history.counts[Status.SENT] == 2 * len(odd)


async def test_a_delivery_report_is_accepted_only_with_our_signature(stack: Stack) -> None:
    key = (await stack.deliver(person(1))).key
    token = await report_token(stack, key)
    body, _, signature = token.rpartition(".")
    for forged in ("", ".", token[:-1] + ("0" if token[-1] != "0" else "1"), f"x{body}.{signature}", f"{body}.", body):
        with pytest.raises(Forbidden):
            await stack.deliveries.record_report(forged, Status.DELIVERED, "")
    assert (await stack.history(key)).counts[Status.DELIVERED] == 0
    assert await stack.deliveries.record_report(token, Status.DELIVERED, "")
    assert not await stack.deliveries.record_report(token, Status.DELIVERED, "")


@on_both_servers
async def test_a_delivery_report_keeps_what_only_the_courier_knows(stack: Stack) -> None:
    answers = iter([Deferred(Reason.PROVIDER_DOWN)] * 2)
    await stack.courier(FakeCourier(respond=lambda _: next(answers, Sent("r", not_shown=("inline",)))))
    key = (await stack.deliver(person(1))).key
    await stack.finished(key)
    for status in (Status.DELIVERED, Status.READ):
        await stack.deliveries.record_report(await report_token(stack, key), status, "r")
        outcome = (await stack.history(key)).recipients[0].outcomes["echo"]
        assert (outcome.status, outcome.attempts, list(outcome.not_shown)) == (status, 3, ["inline"])


async def test_a_delivery_report_for_a_deleted_delivery_is_not_found(stack: Stack) -> None:
    key = (await stack.deliver(person(1), deliver_at=stack.now() + HOUR)).key
    token = await report_token(stack, key)
    await stack.deliveries.cancel(key, TENANT)
    stack.advance_clock(24 * 91 * HOUR)
    await stack.tick()
    with pytest.raises(NotFound):
        await stack.deliveries.record_report(token, Status.DELIVERED, "")


_REPORTER = """
import asyncio, json
from core.redis.store import Store

async def main():
    url, suffix, channel, reports = json.loads(input())
    store = await Store.open(url)
    print("ready", flush=True)
    input()
    await asyncio.gather(*(store.run("record_report", 0, suffix, channel, 0, item) for item in reports))
    await store.close()

asyncio.run(main())
"""


async def test_many_processes_report_concurrently_and_no_outcome_is_lost(stack: Stack) -> None:
    channels = ("vk", "sms")
    recipients = [person(number, vk=[f"{number}a", f"{number}b"], sms=["s"]) for number in range(60)]
    key = (await stack.deliver(*recipients, channels=channels)).key
    processes = [await reporter(stack, key, *share) for share in await shares_of(stack, key, channels, processes=4)]
    for process in processes:
        assert process.stdin
        process.stdin.write(b"go\n")
    assert [await process.wait() for process in processes] == [0] * 4
    history = await stack.history(key, limit=100)
    assert history.state is DeliveryState.FINISHED
    assert all(outcome.status is Status.READ for record in history.recipients for outcome in record.outcomes.values())
    assert (history.counts["reached"], history.counts[Status.READ]) == (60, 120)


async def shares_of(
    stack: Stack, key: HistoryKey, channels: tuple[str, ...], processes: int
) -> list[tuple[str, list[str]]]:
    """For each process all reports of one channel, shuffled. Every outcome is reported several times."""
    shuffler = random.Random(7)
    shares = []
    for number in range(processes):
        channel = channels[number % len(channels)]
        entries = [await entry_of(stack, key, channel, index, 0) for index in range(120 if channel == "vk" else 60)]
        wanted = [Status.SENDING, Status.SENT, Status.DELIVERED, Status.READ]
        items = [compact_json(entry.item(status)) for entry in entries for status in wanted]
        shuffler.shuffle(items)
        shares.append((channel, items))
    return shares


async def reporter(stack: Stack, key: HistoryKey, channel: str, items: list[str]) -> asyncio.subprocess.Process:
    """A process with its reports, which waits for a line on stdin before it sends them."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _REPORTER, cwd=ROOT, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdin
    assert process.stdout
    process.stdin.write(json.dumps([stack.server.url, key.suffix, channel, items]).encode() + b"\n")
    assert await process.stdout.readline() == b"ready\n"
    return process
