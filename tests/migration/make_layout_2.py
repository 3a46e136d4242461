"""Wrote layout_2.json: data of layout 2, made by the last version that has it, commit 2fde3a8.

    git archive 2fde3a8 | tar x -C DIR; cp -r tests/migration DIR/tests
    cd DIR && python -m tests.migration.make_layout_2 layout_2.json

`now`: the ms at which they were made. `data`: each key with its type, time to live (ms, -1 without) and content.
`views`: what that version shows of each task and of each history.
"""

import asyncio
import json
import sys
import tempfile
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
from redis.asyncio import Redis

from core.courier.interface import Deferred, Message, Outcome, Sent
from core.jobs.jobs import Jobs
from core.jobs.kinds import JobKinds
from core.jobs.record import JobId
from core.jobs.schedule import Schedule
from core.jobs.states import Actor
from core.model.delivery import Strategy
from core.model.states import Reason, Status
from core.queue import NewTask, SettleResult, Task
from core.queue.tubes import Tube, Tubes
from core.redis.server_checks import sign_layout
from tests.support.delivery_progress import statuses
from tests.support.servers import Server
from tests.support.stack import HOUR, LEASE, TENANT, FakeCourier, Stack, people
from tests.support.waiting import until

MINUTE = timedelta(minutes=1)
LANE = "50 %\tof it"
"""A lane whose name has to be escaped in a record."""


async def make(server: Server) -> dict[str, Any]:
    stack = await Stack.open(server)
    try:
        await declare(stack)
        for step in (put_ready, put_in_lanes, put_off, bury, end_kept, start_job, send, lose, take):
            await step(stack)
        await stack.audit()
        await stack.redis.delete("queue:{0}:timer")  # as after the stop of all workers
        return {"now": await now_ms(stack), "views": await views(stack), "data": await all_data(server)}
    finally:
        await stack.close()


async def now_ms(stack: Stack) -> int:
    seconds, micros = await stack.redis.time()
    return int(seconds * 1000 + micros // 1000) + stack.store.clock_offset_ms


async def declare(stack: Stack) -> None:
    await sign_layout(stack.store)
    tubes = Tubes(stack.store)
    await tubes.create(Tube("kept", keep=timedelta(days=300)))
    for name in ("park", "park later"):
        await tubes.create(Tube(name, retry="park"))
    await tubes.create(Tube("few", attempts=2))
    await JobKinds(stack.store).publish({"hunt": Schedule(HOUR)})


async def take_one(stack: Stack, tube: str) -> Task:
    (task,) = await stack.take(tube, owner="old worker 1")
    return task


async def put_ready(stack: Stack) -> None:
    await stack.queue.put_many("many", [NewTask(f"many {n}") for n in range(120)])  # more than a page
    await stack.queue.put("ready", "low", priority=8)
    facts: dict[str, Any] = {"user": "7", "kind": "mail.reminder", "tags": ["a", "b"], "reply": "caller", "attempts": 3}
    await stack.queue.put("ready", "high", priority=1, **facts)
    await stack.queue.put("ready", "of a tenant", tenant=TENANT, expires=stack.now() + 10 * HOUR)
    await stack.queue.put("ready", "line 1\nline 2\t\x00 \u043a\u043e\u043d\u0435\u0446")


async def put_in_lanes(stack: Stack) -> None:
    for lane in ("a", LANE):
        for n in range(3):
            await stack.queue.put("lanes", f"{lane} {n}", lane=lane)
    await stack.queue.put("lanes", "a later", lane="a", due=stack.now() + HOUR)


async def put_off(stack: Stack) -> None:
    retry, later = SettleResult.RETRY, await now_ms(stack) + 1_800_000
    for tube in ("back off", "park", "park later"):
        for n in range(2):
            await stack.queue.put(tube, f"{tube} {n}", lane="x")
    task = await take_one(stack, "back off")
    await stack.queue.settle(task, result=retry, due=later, checkpoint="page 7", body="changed")
    await stack.queue.settle(await take_one(stack, "park"), result=retry, checkpoint="page 8")
    await stack.queue.settle(await take_one(stack, "park later"), result=retry, due=later)


async def bury(stack: Stack) -> None:
    for n in range(3):
        await stack.queue.put("bury", f"bury {n}", lane="x", kind="mail.invoice")
    for _ in range(2):
        await stack.queue.settle(await take_one(stack, "bury"), result=SettleResult.BURY, checkpoint="page 9")
    await stack.queue.kick_some("bury", 1)


async def end_kept(stack: Stack) -> None:
    for body in ("done", "failed"):
        await stack.queue.put("kept", body, user="8")
    await stack.queue.settle(await take_one(stack, "kept"), answer="42")
    await stack.queue.settle(await take_one(stack, "kept"), result=SettleResult.FAILED, answer="no paper")
    await stack.queue.cancel(await stack.queue.put("kept", "cancelled"))


async def start_job(stack: Stack) -> None:
    jobs = Jobs(stack.store)
    await jobs.start(JobId(TENANT, "hunt", "anna"))
    await jobs.pause(JobId(TENANT, "hunt", "anna"), Actor.USER, "holiday")
    await jobs.start(JobId(TENANT, "hunt", "boris"))


async def send(stack: Stack) -> None:
    def respond(message: Message) -> Outcome:
        return Deferred(Reason.THROTTLED, HOUR / 2) if message.address == "p3" else Sent(f"ref-{message.address}")

    async def three_are_sent() -> bool:
        return list(statuses(await stack.history(partly)).values()).count(Status.SENT) == 3

    courier = FakeCourier("echo", respond, parcel=2)
    runtime = await stack.courier(courier)
    partly = (await stack.deliver(*people(4))).key
    await until(three_are_sent)
    await stack.stop(runtime)
    await stack.deliver(*people(3), deliver_at=stack.now() + HOUR, lane="news")
    await stack.deliver(*people(2, "vk", "sms"), channels=["vk", "sms"], strategy=Strategy.FIRST, wait=HOUR)


async def lose(stack: Stack) -> None:
    """Tasks and a parcel whose worker does not return: they are ready again, or taken again."""
    await stack.deliver(*people(2))
    for tube in ("given back", "twice", "few"):
        for n in range(2):
            await stack.queue.put(tube, f"{tube} {n}", lane="x")
        await take_one(stack, tube)
    await take_one(stack, "echo")
    stack.advance_clock(MINUTE)
    await stack.tick()
    await take_one(stack, "twice")
    await take_one(stack, "few")


async def take(stack: Stack) -> None:
    for n in range(2):
        await stack.queue.put("taken", f"taken {n}", lane="x")
    await stack.queue.extend(await take_one(stack, "taken"), LEASE, checkpoint="half")
    await stack.queue.put("flagged", "cancelled", tags=["a"])
    await stack.queue.cancel((await take_one(stack, "flagged")).task_id)
    partly = (await stack.deliver(*people(3, "fax"), channels=["fax"], lane="news")).key
    parcel = await take_one(stack, "fax")
    sent = ["1", "i", 0, 0, 1, "sent", "", "ref-p1", 1]
    await stack.queue.extend(parcel, LEASE, [sent])
    await stack.deliveries.cancel(partly, TENANT, ["2"])
    await stack.deliver(*people(3))  # two parcels that no courier has taken


async def views(stack: Stack) -> dict[str, Any]:
    """All tasks as operators see them, by id, and all histories by key."""
    names = [name.partition(":task:")[2] for name in stack.server.all_keys() if ":task:" in name]
    keys = [one.key for one in (await stack.deliveries.list(TENANT))[0]]
    return {
        "tasks": {f"0.{name}": as_json(await stack.queue.peek(f"0.{name}")) for name in names},
        "histories": {str(key): as_json(await stack.history(key)) for key in keys},
    }


def as_json(view: Any) -> Any:
    return json.loads(msgspec.json.encode(view))


async def all_data(server: Server) -> dict[str, Any]:
    """Each key with its type, its time to live and its content. Bytes are written as characters of latin-1."""
    async with Redis.from_url(server.url, decode_responses=True, encoding="latin-1", protocol=2) as client:
        return {name: await stored(client, name) async for name in client.scan_iter()}


async def stored(client: Redis, name: str) -> list[Any]:
    read: dict[str, Sequence[Any]] = {
        "string": ("GET", name),
        "hash": ("HGETALL", name),
        "zset": ("ZRANGE", name, 0, -1, "WITHSCORES"),
        "set": ("SMEMBERS", name),
        "stream": ("XRANGE", name, "-", "+"),
    }
    kind = str(await client.type(name))
    content: Any = await client.execute_command(*read[kind])  # type: ignore[no-untyped-call]
    return [kind, await client.pttl(name), flat(content)]


def flat(content: Any) -> Any:
    """What the client makes of a reply, as JSON has it."""
    if isinstance(content, dict):
        return [word for pair in content.items() for word in pair]
    if isinstance(content, (list, set, tuple)):
        return [flat(one) for one in content]
    return content


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        own = Server(Path(directory))
        own.start()
        try:
            found = asyncio.run(make(own))
        finally:
            own.kill()
    Path(sys.argv[1]).write_text(json.dumps(found, indent=0, sort_keys=True) + "\n")
