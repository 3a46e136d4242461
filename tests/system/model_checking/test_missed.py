"""Regression tests for mutants of the scripts that survived all other tests (tests/system/model_checking/mutate.py)."""

from datetime import timedelta

import pytest

from core.deliveries.channels import ChannelFacts, Channels
from core.model.json_form import compact_json
from core.model.states import DeliveryState, Status
from core.queue import NewTask, SettleResult, Tube, Tubes
from core.redis.keys import KEYS
from couriers.sending.parcel import Parcel
from tests.support.stack import HOUR, TENANT, Stack, people, person
from tests.support.stored_tasks import stored_facts
from tests.system.model_checking.recorded_log import items


async def test_the_settings_limit_the_attempts_of_a_task(stack: Stack) -> None:
    await stack.redis.hset(KEYS["settings"].at(0), "max_attempts", 2)
    task_id = await stack.queue.put("t", NewTask(""))
    for _ in range(2):
        await stack.take()
        stack.advance_clock(HOUR)
    await stack.tick()
    assert await stack.state(task_id) == "buried"


async def test_two_recipients_cancelled_one_by_one_in_a_taken_parcel_are_both_skipped(
    stack: Stack,
) -> None:
    key = (await stack.deliver(*people(3))).key
    (task,) = await stack.take("echo")
    anna, ben, carl = Parcel.of(task).entries
    for entry in (anna, ben):
        row = compact_json([["echo", 0, entry.item(Status.CANCELLED)]])
        assert await stack.store.run("cancel", 0, key.suffix, TENANT, 0, row) == ["cancelled", str(entry.id)]
    assert (await stack.queue.extend(task, HOUR)).skip == {"1", "2"}
    assert await stack.queue.settle(task, outcomes=[carl.item(Status.SENT, attempts=1)]) == "done"
    records = (await stack.history(key)).recipients
    assert [record.outcomes["echo"].status for record in records] == ["cancelled", "cancelled", "sent"]


@pytest.mark.parametrize("announces", [True, False])
async def test_a_recipient_who_may_have_been_sent_to_before_a_crash_is_unknown_after_a_cancel(
    stack: Stack, announces: bool
) -> None:
    """Where attempts are announced, a recipient that is not `sending` was not sent to."""
    await Channels(stack.store, ()).register("echo", ChannelFacts(100), announces=announces)
    key = (await stack.deliver(*people(2))).key
    (task,) = await stack.take("echo")
    anna, ben = Parcel.of(task).entries
    await stack.queue.extend(task, HOUR, [anna.item(Status.SENDING, attempts=1)])
    stack.advance_clock(2 * HOUR)
    await stack.tick()
    for entry in (anna, ben):
        row = compact_json([["echo", 0, entry.item(Status.CANCELLED)]])
        assert await stack.store.run("cancel", 0, key.suffix, TENANT, 0, row) == ["cancelled"]
    outcomes = [record.outcomes["echo"] for record in (await stack.history(key)).recipients]
    unannounced = ("cancelled", None) if announces else ("unknown", "crashed")
    assert [(one.status, one.reason) for one in outcomes] == [("unknown", "crashed"), unannounced]


async def test_a_delivery_whose_only_parcel_an_operator_cancels_is_cancelled_and_not_finished(stack: Stack) -> None:
    key = (await stack.deliver(person(1))).key
    await stack.queue.cancel(f"0.{key.ns}.{key.sender}.echo.0")
    assert (await stack.history(key)).state is DeliveryState.CANCELLED


async def test_each_claim_adds_to_the_used_pace_of_a_tube(stack: Stack) -> None:
    """20 tasks per second, two at once at most: the third one adds 50 ms to those of the first two."""
    await Tubes(stack.store).create(Tube("t", pace=20))
    for n in range(5):
        await stack.queue.put("t", NewTask(str(n)))
    used_up = 0.0
    for given in (2, 1):
        claim = await stack.claim(limit=5)
        assert len(claim.tasks) >= given
        used_up = max(claim.now, used_up) + 50 * len(claim.tasks)
        assert float(await stack.store.command("GET", KEYS["pace"].at(0, "t"))) == used_up
        stack.advance_clock(timedelta(milliseconds=50))


async def test_a_throttle_returns_its_end_and_does_not_shorten_a_longer_one(stack: Stack) -> None:
    now = (await stack.claim()).now
    longer, was_throttled = await stack.store.run("throttle", 0, "t", "account:a", 60_000)
    assert longer >= now + 60_000
    assert not was_throttled
    assert await stack.store.run("throttle", 0, "t", "account:a", 1_000) == [longer, 1]


async def test_large_events_leave_the_stream_after_a_minute(stack: Stack) -> None:
    stream = KEYS["events"].at(0)
    for n in range(1, 30):
        await stack.redis.xadd(stream, {"event": "old", "changes": "x" * 9000}, id=f"{n}-1")
    await stack.deliver(*people(300))
    (task,) = await stack.take("echo")
    await stack.queue.settle(task, outcomes=items(task, Status.SENT))
    left = await stack.store.command("XRANGE", stream, "-", "+")
    assert "old" not in str(left)
    assert "outcomes" in str(left)


async def test_a_tenant_that_puts_while_it_waits_keeps_its_turn(stack: Stack) -> None:
    for _ in range(12):
        await stack.queue.put("t", NewTask("a", tenant="a"))
    served = ""
    for _ in range(10):
        await stack.queue.put("t", NewTask("b", tenant="b"))
        served += (await stack.take())[0].body
    assert served == "ab" * 5


@pytest.mark.parametrize("index", ["lease", "expires"])
async def test_index_members_without_a_task_are_removed_by_ticks(stack: Stack, index: str) -> None:
    """A full page of them would hide every task behind it."""
    await stack.redis.zadd(KEYS[index].at(0), {f"no task {n}": n for n in range(150)})
    await stack.queue.put("t", NewTask("", expires=stack.now() + HOUR))
    stack.advance_clock(2 * HOUR)
    await stack.tick()
    assert await stack.redis.zcard(KEYS[index].at(0)) == 0
    assert await stack.take() == []


async def test_a_kept_ended_task_has_no_token_and_no_owner(stack: Stack) -> None:
    await Tubes(stack.store).create(Tube("t", keep=HOUR))
    task_id = await stack.queue.put("t", NewTask(""))
    (task,) = await stack.take()
    await stack.queue.cancel(task_id)
    await stack.queue.settle(task)
    kept = await stored_facts(stack.redis, task.id)
    assert not {"token", "owner", "cancel"} & set(kept)
    await stack.queue.purge()


async def test_a_release_uncounts_its_own_attempt_only(stack: Stack) -> None:
    await stack.queue.put("t", NewTask(""))
    await stack.take()
    stack.advance_clock(HOUR)
    (second,) = await stack.take()
    assert second.attempts == 2
    await stack.queue.release(second)
    (again,) = await stack.take()
    assert again.attempts == 2


async def test_a_returned_task_has_no_token_and_no_owner(stack: Stack) -> None:
    await stack.queue.put("t", NewTask(""))
    (task,) = await stack.take()
    await stack.queue.settle(task, result=SettleResult.RETRY)
    kept = await stored_facts(stack.redis, task.id)
    assert not {"token", "owner"} & set(kept)


async def test_a_release_of_the_only_attempt_leaves_no_count(stack: Stack) -> None:
    await stack.queue.put("t", NewTask(""))
    (task,) = await stack.take()
    await stack.queue.release(task)
    assert "attempts" not in await stored_facts(stack.redis, task.id)


async def test_the_order_key_of_a_rescheduled_delivery_expires_at_the_new_time(stack: Stack) -> None:
    key = (await stack.deliver(person(1), deliver_at=stack.now() + HOUR)).key
    moved = await stack.deliveries.reschedule(key, TENANT, stack.now() + 2 * HOUR)
    ends = await stack.redis.pexpiretime(KEYS["order"].at(0, key.suffix))
    assert ends == int(moved.deliver_at.timestamp() * 1000)


async def test_a_history_key_is_reserved_for_one_tenant_and_not_at_all_once_it_is_used(stack: Stack) -> None:
    used, free = (await stack.deliver(person(1))).key, "7:1763712000000000000"
    assert await stack.store.run("reserve", 0, used.suffix, TENANT, 60_000) == 0
    assert await stack.store.run("reserve", 0, free, TENANT, 60_000) == 1
    assert await stack.store.run("reserve", 0, free, TENANT, 60_000) == 1, "the same tenant may repeat it"
    assert await stack.store.run("reserve", 0, free, "another", 60_000) == 0


async def test_only_the_keeper_releases_the_timer_and_that_wakes_the_sleepers_of_every_channel(
    stack: Stack,
) -> None:
    timer, bell = KEYS["timer"].at(0), KEYS["bell"].at(0, "echo")
    await stack.redis.hset(KEYS["channels"].at(0), "echo", "{}")
    assert (await stack.claim("echo", owner="keeper")).keeper
    assert not (await stack.claim("echo", owner="another")).keeper
    await stack.queue.release_timer("another", 0)
    assert await stack.redis.exists(timer, bell) == 2
    await stack.queue.release_timer("keeper", 0)
    assert await stack.redis.exists(timer, bell) == 0
    assert (await stack.claim("echo", owner="another")).keeper


async def test_a_retried_channel_reports_again_and_the_other_channel_is_still_awaited(stack: Stack) -> None:
    key = (await stack.deliver(person(1, "vk", "sms"), channels=("vk", "sms"))).key
    for status in (Status.FAILED, Status.SENT):
        (task,) = await stack.take("vk")
        await stack.queue.settle(task, outcomes=items(task, status))
        if status is Status.FAILED:
            assert await stack.deliveries.retry(key, TENANT, [Status.FAILED]) == 1
            assert (await stack.history(key)).reported == 0
    history = await stack.history(key)
    assert (history.reported, history.finished_at) == (1, None)


async def test_a_task_buried_by_its_worker_keeps_its_checkpoint_for_a_kick(stack: Stack) -> None:
    task_id = await stack.queue.put("t", NewTask(""))
    (task,) = await stack.take()
    assert await stack.queue.settle(task, result=SettleResult.BURY, checkpoint="half way") == "buried"
    await stack.queue.kick(task_id)
    (again,) = await stack.take()
    assert again.checkpoint == "half way"


async def test_an_attempt_after_a_retry_has_a_start_of_its_own(stack: Stack) -> None:
    await stack.queue.put("t", NewTask(""))
    (task,) = await stack.take()
    await stack.queue.settle(task, result=SettleResult.RETRY)
    stack.advance_clock(HOUR)
    (again,) = await stack.take()
    assert again.started == again.claimed


async def test_a_script_that_writes_more_than_one_command_can_take_writes_all(stack: Stack) -> None:
    """Pages keep scripts shorter than that; a longer page may cost time but no task."""
    stack.queue.puts.page = 1500
    bodies = [str(n) for n in range(1500)]
    await stack.queue.put_many("t", [NewTask(body, user="u") for body in bodies])
    await stack.audit()
    assert sorted(await stack.finish_all("t")) == sorted(bodies)
