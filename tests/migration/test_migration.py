"""`./ada migrate` converts data that the last version with layout 2 has made (layout_2.json)."""

import json
from collections import defaultdict
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from core.audit.audit import Audit
from core.errors import LayoutUnknown, NotFound, SetupError
from core.history.channels import Channels
from core.history.deliveries import Deliveries
from core.jobs.jobs import Jobs
from core.jobs.record import JobId
from core.model.history_key import HistoryKey
from core.model.states import Status, TaskState
from core.queue import Task
from core.redis.keys import LAYOUT
from core.redis.migration import Migration, migrate
from core.redis.server_checks import sign_layout
from core.redis.store import Store
from tests.migration.make_layout_2 import LANE
from tests.migration.stored_data import body_ids, layout_2, load, old_stack
from tests.support.delivery_progress import statuses
from tests.support.servers import Server, on_both_servers
from tests.support.stack import HOUR, LEASE, TENANT, FakeCourier, Stack
from tests.support.stored_tasks import stored_facts
from tests.support.waiting import until

TASKS = len(layout_2()["views"]["tasks"])
ALL = Migration(tasks=TASKS, job_logs=2)


@pytest.fixture
async def old(server: Server) -> AsyncIterator[Stack]:
    """Everything of this version on data of layout 2, at the moment at which they were made."""
    load(server.url)
    stack = await old_stack(await Stack.open(server))
    yield stack
    await stack.close()


def as_json(view: Any) -> Any:
    return json.loads(msgspec.json.encode(view))


def as_shown_now(view: dict[str, Any]) -> dict[str, Any]:
    """The version before showed the last owner of a task that had lost it, and of a parcel no body."""
    shown = {"body": "", **view}
    if view["state"] != "taken":
        shown.pop("owner", None)
    return shown


async def worked_off(stack: Stack, tube: str) -> list[Task]:
    """Take and settle one task after the other until none is left; return them."""
    tasks: list[Task] = []
    while taken := await stack.take(tube):
        await stack.queue.settle(taken[0])
        tasks += taken
    return tasks


def facts(tasks: list[Task]) -> list[tuple[str, int, str]]:
    return [(task.body, task.attempts, task.checkpoint) for task in tasks]


@on_both_servers
async def test_data_of_layout_2_are_refused_with_the_command_that_converts_them(old: Stack) -> None:
    with pytest.raises(LayoutUnknown, match=r"LAYOUT_UNKNOWN.*layout 2.*Stop all processes.*`\./ada migrate`"):
        await sign_layout(old.store)
    await migrate(old.store)
    await sign_layout(old.store)
    assert await old.redis.get("layout:{0}") == str(LAYOUT)


@on_both_servers
async def test_operators_see_every_task_and_every_delivery_as_before(old: Stack) -> None:
    assert await migrate(old.store) == ALL
    for task_id, view in layout_2()["views"]["tasks"].items():
        assert as_json(await old.queue.peek(task_id)) == as_shown_now(view)
    for key, view in layout_2()["views"]["histories"].items():
        assert as_json(await old.history(HistoryKey.parse(key))) == view
    await old.audit()
    assert not await old.redis.exists("queue:{0}:by:tenant:default")


@on_both_servers
async def test_every_field_of_a_task_is_kept_with_its_time_to_live(old: Stack) -> None:
    (given_back,) = body_ids("given back 0")
    await old.redis.hset(f"queue:{{0}}:task:{given_back[2:]}", "unclear", "[]")
    names = [task_id[2:] for task_id in layout_2()["views"]["tasks"]]
    before = {name: await old.redis.hgetall(f"queue:{{0}}:task:{name}") for name in names}
    await migrate(old.store)
    for name, fields in before.items():
        if fields["state"] != "taken":
            for left_behind in ("token", "owner", "started"):
                fields.pop(left_behind, None)
        found: dict[str, str] = await stored_facts(old.redis, name)
        assert {str(field): found.get(str(field)) for field in fields} == fields
        if "ended" in fields:
            ttls = [await old.redis.pttl(f"queue:{{0}}:{kind}:{name}") for kind in ("task", "progress")]
            assert all(ttl > 20_000_000_000 or ttl == -2 for ttl in ttls), ttls  # -2: it has no progress


@on_both_servers
async def test_tasks_go_on_in_order_with_their_attempts_and_checkpoints(old: Stack) -> None:
    await migrate(old.store)
    assert [task.body for task in await worked_off(old, "many")] == [f"many {n}" for n in range(120)]
    ready = [task.body for task in await worked_off(old, "ready")]
    assert (ready[0], ready[-1], len(ready)) == ("high", "low", 4)
    assert "line 1\nline 2\t\x00 конец" in ready
    by_lane: dict[str, list[str]] = defaultdict(list)
    for task in await worked_off(old, "lanes"):
        by_lane[task.lane].append(task.body)
    assert by_lane == {lane: [f"{lane} {n}" for n in range(3)] for lane in ("a", LANE)}
    assert facts(await worked_off(old, "park")) == [("park 1", 1, ""), ("park 0", 2, "page 8")]
    assert facts(await worked_off(old, "bury")) == [("bury 2", 1, ""), ("bury 0", 1, "page 9")]
    given_back = await worked_off(old, "given back")
    assert facts(given_back) == [("given back 0", 2, ""), ("given back 1", 1, "")]
    assert given_back[0].started < given_back[0].claimed
    for tube in ("back off", "taken", "twice", "few", "flagged"):
        assert await worked_off(old, tube) == []
    await old.audit()


@on_both_servers
async def test_what_was_put_off_taken_or_kept_goes_on_in_its_time(old: Stack) -> None:
    await migrate(old.store)
    done, failed, flagged, few, buried = body_ids("done", "failed", "cancelled", "few 0", "bury 1")
    assert await old.queue.notify_end(done, "caller") == ("done", "42")
    assert await old.queue.notify_end(failed, "caller") == ("failed", "no paper")
    old.advance_clock(LEASE * 2)
    await old.tick()
    assert facts(await worked_off(old, "taken")) == [("taken 0", 2, "half"), ("taken 1", 1, "")]
    assert facts(await worked_off(old, "twice")) == [("twice 0", 3, ""), ("twice 1", 1, "")]
    assert await old.state(few) == TaskState.BURIED  # it had two attempts, as many as its tube allows
    assert facts(await worked_off(old, "few")) == [("few 1", 1, "")]
    await old.queue.kick(buried)
    assert facts(await worked_off(old, "bury"))[-1] == ("bury 1", 1, "page 9")
    old.advance_clock(HOUR)
    await old.tick()
    assert facts(await worked_off(old, "back off")) == [("changed", 2, "page 7"), ("back off 1", 1, "")]
    assert facts(await worked_off(old, "park later")) == [("park later 1", 1, ""), ("park later 0", 2, "")]
    assert "a later" in [task.body for task in await worked_off(old, "lanes")]
    old.advance_clock(timedelta(days=301))
    await old.tick()
    with pytest.raises(NotFound):
        await old.queue.peek(flagged)
    assert not [key for key in old.server.all_keys() if key.endswith((done[2:], failed[2:]))]
    await old.audit()


@on_both_servers
async def test_deliveries_finish_and_nobody_gets_a_message_twice(old: Stack) -> None:
    await migrate(old.store)
    couriers = {name: FakeCourier(name) for name in ("echo", "fax", "vk", "sms")}
    old.advance_clock(2 * HOUR)
    for courier in couriers.values():
        await old.courier(courier)
    old.deliveries = Deliveries(old.store, Channels(old.store, ()))
    await until(lambda: couriers["vk"].addresses == ["p1", "p2"])
    old.advance_clock(2 * HOUR)  # no receipt came from vk: the next channel is sms
    histories = [await old.finished(HistoryKey.parse(key)) for key in layout_2()["views"]["histories"]]
    attempted = {name: sorted(courier.addresses) for name, courier in couriers.items()}
    # Of p1 to p4 only p3 was left; then three that were scheduled, two of a lost parcel, three that were ready.
    assert attempted["echo"] == sorted(["p3", *["p1", "p2", "p3"] * 2, "p1", "p2"])
    assert (attempted["fax"], attempted["vk"], attempted["sms"]) == (["p3"], ["p1", "p2"], ["p1", "p2"])
    (fax,) = [statuses(history, "fax") for history in histories if "fax" in history.channels]
    # The second was cancelled while a worker that did not return may have sent to it.
    assert fax == {1: Status.SENT, 2: Status.UNKNOWN, 3: Status.SENT}
    await old.audit()


@on_both_servers
async def test_jobs_and_their_logs_are_kept(old: Stack) -> None:
    await migrate(old.store)
    jobs = Jobs(old.store)
    anna = JobId(TENANT, "hunt", "anna")
    lines = await jobs.log.last(anna)
    assert [(line.id, line.text) for line in lines] == [("1", "started by user"), ("2", "paused by user: holiday")]
    assert (await jobs.find(anna)).record.reason == "holiday"
    assert [task.user for task in await worked_off(old, "jobs")] == ["anna", "boris"]


@on_both_servers
async def test_a_hash_that_is_no_task_is_set_aside_and_reported_by_the_audit(old: Stack) -> None:
    await old.redis.hset("queue:{0}:task:strange", "color", "red")
    await old.redis.rpush("queue:{0}:task:list", "red")
    assert await migrate(old.store) == Migration(tasks=TASKS, job_logs=2, damaged=1)
    found = [violation.key async for violation in Audit(old.store).find()]
    assert sorted(found) == ["damaged:{0}:queue:{0}:task:strange", "queue:{0}:task:list"]


async def test_a_worker_that_still_runs_is_refused_and_nothing_is_changed(old: Stack) -> None:
    await old.redis.set("queue:{0}:timer", "old worker 1", px=5_000_000)
    before = await old.dump()
    with pytest.raises(SetupError, match=r"a worker is running.*wait 5000 s"):
        await migrate(old.store)
    assert (await old.dump()).keys() == before.keys()
    assert await old.redis.get("layout:{0}") == "2"


async def test_every_shard_is_converted(old: Stack) -> None:
    for name in old.server.all_keys():
        if name.startswith(("queue:{0}", "layout:{0}", "job-log:{0}")):
            await old.redis.copy(name, name.replace("{0}", "{1}"))
    store = await Store.open(old.server.url, 2)
    assert await migrate(store) == Migration(tasks=2 * TASKS, job_logs=4)
    assert [await old.redis.get(f"layout:{{{shard}}}") for shard in range(2)] == [str(LAYOUT)] * 2
    await store.close()


async def test_data_of_this_layout_are_left_as_they_are(old: Stack) -> None:
    await migrate(old.store)
    before = await old.dump()
    assert await migrate(old.store) is None
    assert (await old.dump()).keys() == before.keys()


@pytest.mark.parametrize("found", ["1", "99", "nonsense"])
async def test_data_of_any_other_layout_stay_refused(old: Stack, found: str) -> None:
    await old.redis.set("layout:{0}", found)
    with pytest.raises(LayoutUnknown, match=f"layout {found}"):
        await migrate(old.store)
    assert await old.redis.get("layout:{0}") == found
