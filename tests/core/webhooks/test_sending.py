"""What a receiver gets, and what follows from its answers."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, timedelta
from itertools import pairwise

import pytest
from aiohttp import web
from standardwebhooks import WebhookVerificationError

from cli.commands.start.doctor import check_matters
from core.errors import NotFound
from core.model.states import Reason, Status
from core.queue import Bury, Retry, TaskFilter
from core.redis.keys import KEYS
from core.webhooks import runtime
from core.webhooks.event_reader import task_of
from core.webhooks.registry import Webhooks
from core.webhooks.runtime import RetryRules, WebhookFailure, decide
from core.webhooks.webhook import TUBE, EventType, WebhookMessage
from couriers.sending.interface import Message, Outcome, Rejected, Sent
from tests.core.webhooks.conftest import QUICK, Installation
from tests.core.webhooks.receiver import Receiver, hang, status
from tests.support.servers import several_shards
from tests.support.stack import TENANT, FakeCourier, people
from tests.support.waiting import stays, until

__all__ = ["several_shards"]


def refuse_the_second(message: Message) -> Outcome:
    return Rejected(Reason.BLOCKED) if message.address == "p2" else Sent("reference")


async def test_each_outcome_and_the_end_are_sent_once_and_signed(
    installation: Installation, receiver: Receiver
) -> None:
    webhook = await installation.add(receiver)
    installation.start()
    await installation.stack.courier(FakeCourier(respond=refuse_the_second))
    accepted = await installation.stack.deliver(*people(3), tags=["exam"])
    await until(lambda: len(receiver.calls) >= 4)
    outcomes = {call.data["recipient"]: call.data["status"] for call in receiver.of_type("outcome")}
    assert outcomes == {1: "sent", 2: "failed", 3: "sent"}
    (end,) = receiver.of_type("finished")
    assert (end.data["delivery"], end.data["verdict"], end.data["tags"]) == (accepted.key.id, "some_reached", ["exam"])
    assert end.data["counts"]["failed"] == 1
    for call in receiver.calls:
        call.verify(webhook.secret)
        assert call.id == call.message["id"]
        with pytest.raises(WebhookVerificationError):
            call.verify("whsec_" + "A" * 43 + "=")
    assert set(receiver.copies().values()) == {1}


async def test_an_event_wakes_the_process_which_does_not_poll_meanwhile(
    installation: Installation, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    await installation.add(receiver, [EventType.FINISHED])
    installation.start()
    await installation.courier()
    await installation.stack.deliver(*people(1))
    await until(lambda: len(receiver.calls) == 1)
    monkeypatch.setattr(runtime, "_POLL", 600)
    for number in (2, 3, 4):  # the first one may come from a reading that was due
        await installation.stack.deliver(*people(1))
        await until(lambda number=number: len(receiver.calls) == number)  # type: ignore[misc]


async def test_a_webhook_gets_only_the_events_it_asked_for_of_its_own_tenant(
    installation: Installation, new_receiver: Callable[[], Receiver]
) -> None:
    finished, foreign = new_receiver(), new_receiver()
    await finished.start()
    await foreign.start()
    await installation.add(finished, [EventType.FINISHED])
    await installation.add(foreign, tenant="another")
    installation.start()
    await installation.courier()
    await installation.stack.deliver(*people(2))
    await until(lambda: finished.calls)
    assert [call.type for call in finished.calls] == ["finished"]
    assert foreign.calls == []


async def test_a_message_that_failed_is_sent_again_with_the_same_id_and_body(
    installation: Installation, receiver: Receiver
) -> None:
    receiver.answer = status(500)
    webhook = await installation.add(receiver, [EventType.FINISHED])
    installation.start()
    await installation.courier()
    await installation.stack.deliver(*people(1))
    await until(lambda: len(receiver.calls) >= 3)
    receiver.answer = status(200)
    await until(lambda: no_more_waits(installation, webhook.id))
    assert len({(call.id, call.body) for call in receiver.calls}) == 1
    for call in receiver.calls:
        call.verify(webhook.secret)
    attempts = (await installation.webhooks.state(webhook.tenant, webhook.id)).attempts
    assert [one.attempt for one in attempts] == list(range(len(attempts), 0, -1))
    assert (attempts[0].status, attempts[0].error, attempts[-1].error) == (200, "", "status")


async def no_more_waits(installation: Installation, webhook_id: str) -> bool:
    return await installation.webhooks.pending(webhook_id) == 0


async def test_a_receiver_that_hangs_or_is_down_delays_no_other(
    installation: Installation, new_receiver: Callable[[], Receiver]
) -> None:
    slow, down, good = new_receiver(), new_receiver(), new_receiver()
    for one in (slow, down, good):
        await one.start()
        await installation.add(one)
    slow.answer = hang
    await down.stop()
    installation.start()
    await installation.courier()
    for _ in range(5):
        await installation.stack.deliver(*people(40))
    await until(lambda: len(good.calls) >= 205)
    assert len(slow.calls) <= 5 * 16  # a good one that waits for it would have as many calls
    await down.start()
    await until(lambda: len(set(down.copies())) == 205)


async def test_messages_about_one_recipient_keep_their_order(installation: Installation, receiver: Receiver) -> None:
    fails = {"left": 3}

    async def answer(request: web.Request) -> web.StreamResponse:
        fails["left"] -= 1
        return web.Response(status=500 if fails["left"] >= 0 else 200)

    receiver.answer = answer
    await installation.add(receiver, [EventType.OUTCOME])
    installation.start()
    courier = FakeCourier(respond=lambda message: Rejected(Reason.BLOCKED))
    await installation.stack.courier(courier)
    accepted = await installation.stack.deliver(*people(1))
    await installation.stack.finished(accepted.key)
    courier.respond = lambda message: Sent("reference")
    await installation.stack.deliveries.retry(accepted.key, TENANT, [Status.FAILED])
    await until(lambda: any(call.data["status"] == "sent" for call in receiver.calls))
    versions = [call.data["version"] for call in receiver.calls]
    assert all(before <= after for before, after in pairwise(versions))


@pytest.mark.parametrize("number", [301, 302, 307, 308])
async def test_a_redirect_is_not_followed_and_counts_as_a_failure(
    installation: Installation, receiver: Receiver, number: int
) -> None:
    receiver.answer = status(number, Location="/elsewhere")
    webhook = await installation.add(receiver)
    attempt = await installation.webhooks.test(webhook.tenant, webhook.id)
    assert (attempt.status, attempt.error) == (number, "redirect")
    assert [call.path for call in receiver.calls] == ["/hook"]


async def test_a_response_without_an_end_is_cut(installation: Installation, receiver: Receiver) -> None:
    written = 0

    async def pour(request: web.Request) -> web.StreamResponse:
        nonlocal written
        response = web.StreamResponse(headers={"Content-Length": str(10 * 2**30)})
        await response.prepare(request)
        while True:
            await response.write(b"x" * 65536)
            written += 65536

    receiver.answer = pour
    webhook = await installation.add(receiver)
    attempt = await installation.webhooks.test(webhook.tenant, webhook.id)
    assert attempt.succeeded
    await stays(lambda: written < 32 * 2**20)


async def test_a_response_that_trickles_or_never_comes_ends_at_the_time_limit(
    installation: Installation, receiver: Receiver
) -> None:
    receiver.answer = hang
    webhook = await installation.add(receiver)
    started = time.monotonic()
    attempt = await installation.webhooks.test(webhook.tenant, webhook.id)
    assert (attempt.status, attempt.error) == (None, "timeout")
    assert time.monotonic() - started < 14, "its default is 15 s"


@pytest.mark.parametrize("sent", [b"X-Filler: x\r\n", b"x" * 65536], ids=["many headers", "one long header"])
async def test_a_head_without_an_end_is_cut(installation: Installation, sent: bytes) -> None:
    written = 0

    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal written
        writer.write(b"HTTP/1.1 200 OK\r\n")
        with suppress(ConnectionError):
            while True:
                writer.write(sent)
                await writer.drain()
                written += len(sent)

    server = await asyncio.start_server(pour, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    webhook = await installation.webhooks.create(TENANT, f"http://127.0.0.1:{port}/", [EventType.OUTCOME])
    attempt = await installation.webhooks.test(TENANT, webhook.id)
    assert not attempt.succeeded
    assert written < 32 * 2**20
    server.close()


async def test_410_disables_a_webhook_and_a_replay_brings_all_that_it_missed(
    installation: Installation, receiver: Receiver
) -> None:
    receiver.answer = status(410)
    webhook = await installation.add(receiver, [EventType.FINISHED])
    installation.start()
    await installation.courier()
    first = await installation.stack.deliver(*people(1))

    async def is_disabled() -> bool:
        return bool((await installation.webhooks.find(webhook.tenant, webhook.id)).disabled)

    await until(is_disabled)
    (doubt,) = [one async for one in check_matters(installation.stack.store, UTC) if one.what == "webhook"]
    assert (doubt.is_good, doubt.detail.endswith(": status 410")) == (None, True)
    assert doubt.repair == f"./ada webhook attempts {webhook.id}"
    calls = len(receiver.calls)
    second = await installation.stack.deliver(*people(1))
    await installation.stack.finished(second.key)
    await stays(lambda: len(receiver.calls) == calls)
    receiver.answer = status(200)
    await installation.webhooks.replay(webhook.tenant, webhook.id)
    await until(lambda: receiver.finished() == {first.key.id, second.key.id})
    assert [one async for one in check_matters(installation.stack.store, UTC) if one.what == "webhook"] == []


async def test_a_message_that_was_given_up_is_a_dead_letter_until_it_is_replayed(
    installation: Installation, receiver: Receiver
) -> None:
    receiver.answer = status(503)
    webhook = await installation.add(receiver, [EventType.FINISHED])
    installation.start(RetryRules(QUICK.backoff, longest=timedelta(milliseconds=300)))
    await installation.courier()
    accepted = await installation.stack.deliver(*people(1))

    async def dead() -> int:
        return (await installation.webhooks.state(webhook.tenant, webhook.id)).dead

    assert await until(dead) == 1
    receiver.answer = status(200)
    received = len(receiver.calls)
    assert await installation.webhooks.replay(webhook.tenant, webhook.id) == 1
    await until(lambda: len(receiver.calls) > received)
    assert receiver.finished() == {accepted.key.id}
    assert len(receiver.copies()) == 1
    await until(lambda: nothing_is_sent(installation, webhook.id))
    assert await dead() == 0


async def test_a_deleted_webhook_gets_nothing_more(installation: Installation, receiver: Receiver) -> None:
    receiver.answer = status(500)
    webhook = await installation.add(receiver)
    installation.start()
    await installation.courier()
    await installation.stack.deliver(*people(20))
    await until(lambda: receiver.calls)
    assert await installation.webhooks.delete(webhook.tenant, webhook.id) > 0
    await until(lambda: nothing_is_sent(installation, webhook.id))
    received = len(receiver.calls)
    await stays(lambda: len(receiver.calls) == received, during=0.5)


async def nothing_is_sent(installation: Installation, webhook_id: str) -> bool:
    return not await installation.stack.queue.inspector.select(TaskFilter(user=webhook_id), 1000)


RULES = RetryRules()
DAY_MS = 86_400_000


class TestTheDecisionAfterAFailure:
    def test_a_message_is_tried_for_a_day(self) -> None:
        almost = WebhookFailure(attempt=300, now=DAY_MS - 1, since=0, first=10, succeeded=0)
        assert isinstance(decide(almost, RULES), Retry)
        assert isinstance(decide(WebhookFailure(300, DAY_MS, 0, 10, 0), RULES), Bury)

    def test_a_message_that_only_fails_itself_is_given_up_after_eight_attempts(self) -> None:
        assert isinstance(decide(WebhookFailure(8, 5000, 0, first=10, succeeded=20), RULES), Bury)
        assert isinstance(decide(WebhookFailure(7, 5000, 0, first=10, succeeded=20), RULES), Retry)
        assert isinstance(decide(WebhookFailure(8, 5000, 0, first=10, succeeded=5), RULES), Retry)

    def test_the_pause_grows_to_five_minutes_and_is_at_least_what_the_receiver_asks_for(self) -> None:
        pauses = [decide(WebhookFailure(n, 0, 0, 0, 0), RULES) for n in range(1, 60)]
        seconds = [one.after.total_seconds() for one in pauses if isinstance(one, Retry) and one.after]
        assert 2.5 <= seconds[0] <= 5
        assert 150 <= seconds[-1] <= 300
        asked = decide(WebhookFailure(1, 0, 0, 0, 0, wait=1000), RULES)
        assert isinstance(asked, Retry)
        assert asked.after == timedelta(seconds=1000)


async def test_a_message_that_is_replayed_counts_its_failures_from_then_on(
    installation: Installation, receiver: Receiver
) -> None:
    """Others that got through before the replay say nothing of a receiver that is down after it."""
    webhook = await installation.add(receiver, [EventType.FINISHED])
    installation.start(RetryRules(QUICK.backoff, attempts=2))
    await installation.courier()
    receiver.answer = status(503)
    await installation.stack.deliver(*people(1))
    await until(lambda: len(receiver.calls) > 1)  # so the first failure is noted, before the others get through

    async def refuse_the_first(request: web.Request) -> web.StreamResponse:
        is_first = request.headers["webhook-id"] == receiver.calls[0].id
        return web.Response(status=503 if is_first else 200)

    async def dead() -> int:
        return (await installation.webhooks.state(webhook.tenant, webhook.id)).dead

    receiver.answer = refuse_the_first
    for _ in range(8):  # one may stand in the lane of the first, and wait for it
        await installation.stack.deliver(*people(1))
    await until(dead)
    receiver.answer = status(503)
    received = len(receiver.calls)
    await installation.webhooks.replay(webhook.tenant, webhook.id)
    await until(lambda: len(receiver.calls) > received + 3)


async def test_a_message_that_is_replayed_after_its_time_is_tried_as_long_again(
    installation: Installation, receiver: Receiver
) -> None:
    webhook, queue = await installation.add(receiver), installation.stack.queue
    await queue.bury(
        await queue.put(
            TUBE, task_of(webhook, WebhookMessage.make("msg_1", EventType.FINISHED, installation.stack.now(), {}))
        )
    )
    installation.stack.advance_clock(QUICK.longest)
    receiver.answer = status(503)
    await installation.webhooks.replay(TENANT, webhook.id)
    installation.start()
    await until(lambda: len(receiver.calls) > 2)
    assert not (await installation.webhooks.state(TENANT, webhook.id)).dead


async def test_what_is_written_at_each_attempt_stands_in_the_shard_of_the_tenant(
    installation: Installation, receiver: Receiver
) -> None:
    store = installation.stack.store
    webhook = await installation.add(receiver)
    await installation.webhooks.test(TENANT, webhook.id)
    await installation.webhooks.replay(TENANT, webhook.id)
    shard = store.shard_of_tenant(TENANT)
    own = {KEYS[kind].at(shard, webhook.id) for kind in ("attempts", "health")}
    assert {key for key in installation.stack.server.all_keys() if webhook.id in key} == own
    assert all([await store.command("PTTL", key) > 0 for key in own])
    await installation.webhooks.delete(TENANT, webhook.id)
    assert not {key for key in installation.stack.server.all_keys() if webhook.id in key}


async def test_what_another_process_knows_of_a_webhook_ends_a_message_only_when_it_is_so_now(
    installation: Installation, receiver: Receiver
) -> None:
    """Each process keeps the webhooks for half a second."""
    here, stack = installation.webhooks, installation.stack
    elsewhere = Webhooks(stack.store, stack.queue, installation.client)
    webhook = await installation.add(receiver)
    await here.disable(webhook)
    assert (await elsewhere.find_recent(TENANT, webhook.id)).disabled
    await here.replay(TENANT, webhook.id)
    assert not (await elsewhere.find_recent(TENANT, webhook.id)).disabled, "at once: it is read again"
    with pytest.raises(NotFound):
        await elsewhere.find_recent("another", webhook.id)
    await here.delete(TENANT, webhook.id)
    with pytest.raises(NotFound):
        await here.find_recent(TENANT, webhook.id)

    async def is_gone() -> bool:
        try:
            await elsewhere.find_recent(TENANT, webhook.id)
        except NotFound:
            return True
        return False

    await until(is_gone)
