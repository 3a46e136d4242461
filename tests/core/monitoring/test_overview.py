"""What needs an operator first, and why."""

from datetime import timedelta

from core.deliveries.channels import ChannelFacts, Channels
from core.directory import Directory
from core.jobs.states import JobState
from core.model.content import Display
from core.model.people import Group, User, UserChange
from core.monitoring.figures import OutcomeCount
from core.monitoring.overview import Matter, MatterKind, Overviews, failing_channels, unclear_channels
from core.queue import NewTask, Queue, SettleResult, Tubes
from core.redis.keys import KEYS
from core.webhooks.http_client import WebhookClient
from core.webhooks.registry import Webhooks
from core.webhooks.webhook import AttemptRecord, EventType
from tests.support.stack import Stack


def webhooks_on(stack: Stack) -> Webhooks:
    return Webhooks(stack.store, stack.queue, WebhookClient(allow_private=True))


async def test_what_needs_attention_is_named_with_its_reason_the_most_urgent_first(stack: Stack) -> None:
    channels, webhooks = Channels(stack.store), webhooks_on(stack)
    overviews = Overviews(stack.store, stack.queue, channels, webhooks)
    quiet = await overviews.show()
    assert (quiet.health, quiet.matters) == ("good", [])
    await Tubes(stack.store).pause("reports", "anna", "the printer is empty")
    await stack.queue.put("t", NewTask("", kind="speech"))
    (task,) = await stack.take()
    await stack.queue.settle(task, result=SettleResult.BURY, error="no voice 7")
    hook = await webhooks.create("default", "http://127.0.0.1:9/hook", [EventType.FINISHED])
    await webhooks.disable(hook)
    assert (await overviews.show()).health == "attention"
    await channels.register("sms", ChannelFacts(100, "the money is spent"), display=Display())
    await stack.queue.put_many("email", [NewTask("")] * 3)
    await channels.register("email", ChannelFacts(100))
    await stack.queue.throttle("email", "account:ada", timedelta(minutes=1))
    found = await Overviews(stack.store, stack.queue, Channels(stack.store), webhooks).show()
    assert found.health == "bad"
    seen = [(one.kind, one.subject, one.count, one.reason or one.command or one.by) for one in found.matters]
    assert seen == [
        (MatterKind.HALTED, "sms", 0, "the money is spent"),
        (MatterKind.UNSERVED, "email", 3, "./ada courier email"),
        (MatterKind.WEBHOOK, "http://127.0.0.1:9/hook", 0, f"./ada webhook attempts {hook.id}"),
        (MatterKind.DEAD_LETTERS, "", 1, "no voice #"),
        (MatterKind.PAUSED, "reports", 0, "the printer is empty"),
        (MatterKind.THROTTLED, "email", 0, "account:ada"),
    ]
    assert next((one.by, one.command) for one in found.matters if one.kind is MatterKind.PAUSED) == (
        "anna",
        "./ada queue resume reports",
    )


async def test_a_webhook_that_is_refused_again_and_again_is_a_matter_until_it_is_accepted(stack: Stack) -> None:
    webhooks = webhooks_on(stack)
    overviews = Overviews(stack.store, stack.queue, Channels(stack.store), webhooks)
    hook = await webhooks.create("default", "http://127.0.0.1:9/hook", [EventType.FINISHED])
    for number, found in ((1, []), (2, []), (3, [("status 503", 1000)])):
        await webhooks.record(hook, AttemptRecord("m", EventType.FINISHED, number, 1000 * number, 5, 503, "status"))
        assert [(one.reason, one.at) for one in (await overviews.show()).matters] == found
    await webhooks.record(hook, AttemptRecord("m", EventType.FINISHED, 4, 4000, 5, 200))
    assert (await overviews.show()).matters == []


async def test_a_server_that_refuses_writes_is_a_matter(stack: Stack) -> None:
    """The page said that all is well while every message was refused."""
    overviews = Overviews(stack.store, stack.queue, Channels(stack.store), webhooks_on(stack))
    await stack.redis.config_set("maxmemory", "1")
    full = await overviews.show()
    await stack.redis.config_set("maxmemory", "0")
    assert [(one.kind, one.subject) for one in full.matters] == [(MatterKind.SERVER_SETTING, "STORE_FULL")]
    assert (await overviews.show()).matters == []


async def test_due_tasks_that_no_worker_takes_are_the_first_matter(stack: Stack) -> None:
    queue: Queue = stack.queue
    await queue.put("t", NewTask("", due=stack.now() + timedelta(seconds=1)))
    stack.advance_clock(timedelta(seconds=30))
    found = await Overviews(stack.store, queue, Channels(stack.store), webhooks_on(stack)).show()
    assert [one.kind for one in found.matters] == [MatterKind.OVERDUE]
    assert 28_000 < found.now - found.matters[0].at < 60_000


def test_a_channel_in_which_half_of_the_last_hours_messages_failed_is_named_with_the_main_reason() -> None:
    outcomes = [
        OutcomeCount("sms", "failed", "blocked", 9),
        OutcomeCount("sms", "sent", "", 8),
        OutcomeCount("vk", "failed", "privacy", 4),
        OutcomeCount("sms", "expired", "", 1),
        OutcomeCount("email", "sent", "", 90),
        OutcomeCount("email", "failed", "blocked", 40),
    ]
    assert list(failing_channels(outcomes)) == [Matter(MatterKind.FAILURES, "sms", 10, 18, reason="blocked")]


def test_messages_of_which_nobody_knows_whether_they_arrived_are_named_below_half_of_them_too() -> None:
    outcomes = [
        OutcomeCount("sms", "sent", "", 80),
        OutcomeCount("sms", "unknown", "answer_lost", 39),
        OutcomeCount("vk", "unknown", "crashed", 2),
        OutcomeCount("vk", "unknown", "answer_lost", 1),
        OutcomeCount("max", "unknown", "crashed", 9),
    ]
    assert list(unclear_channels(outcomes, {"max"})) == [
        Matter(MatterKind.UNCLEAR, "sms", 39, 119, reason="answer_lost"),
        Matter(MatterKind.UNCLEAR, "vk", 3, 3, reason="crashed"),
    ]


async def test_a_job_that_has_failed_is_a_matter_of_its_tenant(stack: Stack) -> None:
    overviews = Overviews(stack.store, stack.queue, Channels(stack.store), webhooks_on(stack))
    shard = stack.store.shards - 1
    await stack.store.command("HINCRBY", KEYS["job_counts"].at(shard, "north"), JobState.FAILED, 2)
    (matter,) = (await overviews.show("north")).matters
    assert (matter.kind, matter.count) == (MatterKind.JOBS_FAILED, 2)
    assert (await overviews.show("south")).matters == []
    await stack.store.command("DEL", KEYS["job_counts"].at(shard, "north"))


async def test_an_office_that_nobody_reads_needs_attention(stack: Stack) -> None:
    directory, school = Directory(stack.store), ("dean", "school")
    overviews = Overviews(stack.store, stack.queue, Channels(stack.store), webhooks_on(stack), *school)

    async def why(tenant: str = "school") -> list[str]:
        found = await overviews.show(tenant)
        assert all((one.kind, one.subject) == (MatterKind.OFFICE, "dean") for one in found.matters)
        assert found.health == ("attention" if found.matters else "good")
        return [one.reason for one in found.matters]

    assert await why() == ["no_group"]
    assert await why("north") == [], "a tenant without bots has no office"
    await directory.groups.create("school", Group("dean"))
    assert await why() == ["no_members"]
    await directory.users.create("school", User(1, role="student"))
    await directory.groups.add_members("school", "dean", [1])
    assert await why() == ["no_readers"]
    await directory.users.update("school", 1, UserChange(role="staff"))
    assert await why() == []
