"""A scene with tasks and deliveries in every state, and the commands that damage it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from core.audit.audit import Audit
from core.audit.invariants.invariant import Violation
from core.queue import NewTask, Tube, Tubes
from tests.support.audited import violations_in
from tests.support.stack import HOUR, FakeCourier, Stack, people, person
from tests.support.stored_tasks import change_record

Stored = Mapping[str, tuple[bytes, int]]
"""Key → its content, and the time in ms when it expires; -1: never."""


@dataclass
class Scene:
    """`names`: placeholders in a damage and the keys or ids they stand for."""

    stack: Stack
    names: dict[str, str] = field(default_factory=dict)

    def filled(self, word: str) -> str:
        for name, value in self.names.items():
            word = word.replace(f"<{name}>", value)
        return word

    async def damage(self, *commands: list[str]) -> None:
        for command in commands:
            if command[0] == "TASK":
                task_id, name, value = map(self.filled, command[1:])
                await change_record(self.stack.redis, task_id, name, value)
                continue
            await self.stack.redis.execute_command(*(self.filled(word) for word in command))  # type: ignore[no-untyped-call]

    async def violations(self) -> list[Violation]:
        return await violations_in(self.stack.store)

    async def check_each(self, damages: Iterable[tuple[str, list[str]]]) -> list[Violation]:
        """Check that each damage is found under its invariant, each one alone; return all that was found."""
        stored = await self.stored()
        every: list[Violation] = []
        for rule, command in damages:
            assert await self.violations() == []
            every += await self.found(rule, command)
            await self.put_back(stored)
        return every

    async def found(self, rule: str, *commands: list[str]) -> list[Violation]:
        """Do a damage; return what is found, of which something is of the invariant."""
        await self.damage(*commands)
        found = await self.violations()
        assert rule in {one.rule for one in found}, (commands, found)
        assert all(one.key and one.found and one.wanted for one in found)
        return found

    async def stored(self) -> Stored:
        keys = self.stack.server.all_keys()
        async with self.stack.redis.pipeline(transaction=False) as calls:
            for key in keys:
                calls.dump(key)
                calls.pexpiretime(key)
            replies = await calls.execute()
        found = zip(keys, replies[::2], replies[1::2], strict=True)
        return {key: (content, expires) for key, content, expires in found if content is not None}

    async def put_back(self, stored: Stored) -> None:
        """Return to what was stored."""
        async with self.stack.redis.pipeline(transaction=False) as calls:
            calls.flushdb()
            for key, (content, expires) in stored.items():
                calls.restore(key, max(expires, 0), content, absttl=True)
            await calls.execute()

    async def repair(self) -> list[str]:
        """Check and repair until nothing is repaired any more; returns the scripts that repaired."""
        used: list[str] = []
        for _ in range(5):
            audit, repaired = Audit(self.stack.store), 0
            async for violation in audit.find():
                if await audit.repair(violation):
                    assert violation.repair
                    used.append(violation.repair.script)
                    repaired += 1
            if not repaired:
                return used
        raise AssertionError(f"the repairs do not end: {used}")


async def scene(stack: Stack) -> Scene:
    """Tasks: a and b in lane `lane`; c free; d deferred; e buried; f taken in lane `held` before g; h backing off in
    lane `slow` before i; k kept. Deliveries: over, later, open.
    """
    made = Scene(stack)
    await Tubes(stack.store).create(Tube("kept", keep=timedelta(hours=1)))
    await _taken(made)
    put, later = stack.queue.put, stack.now() + HOUR
    ids = {
        "a": await put("t", NewTask("a", lane="lane", kind="k.one", user="u", tags=["x"], expires=later)),
        "b": await put("t", NewTask("b", lane="lane")),
        "c": await put("t", NewTask("c")),
        "d": await put("t", NewTask("d", due=later, lane="later")),
        "e": await put("t", NewTask("e", lane="lane")),
    }
    await stack.queue.bury(ids["e"])
    made.names |= {name: task_id.partition(".")[2] for name, task_id in ids.items()}
    await _deliveries(made)
    return made


async def _taken(made: Scene) -> None:
    stack = made.stack
    for name, lane in (("h", "slow"), ("i", "slow"), ("f", "held"), ("g", "held")):
        made.names[name] = (await stack.queue.put("t", NewTask(name, lane=lane))).partition(".")[2]
    tasks = {task.body: task for task in await stack.take("t", 10)}
    await stack.queue.release(tasks["h"], due=int((stack.now() + HOUR).timestamp() * 1000))
    made.names["k"] = (await stack.queue.put("kept", NewTask("k"))).partition(".")[2]
    (kept,) = await stack.take("kept")
    await stack.queue.settle(kept)


async def _deliveries(made: Scene) -> None:
    stack = made.stack
    courier = await stack.courier(FakeCourier())
    over = (await stack.deliver(*people(3))).key
    await stack.finished(over)
    await stack.stop(courier)
    later = (await stack.deliver(person(1), deliver_at=stack.now() + HOUR)).key
    open_ = (await stack.deliver(person(1, "unserved"), channels=("unserved",))).key
    made.names |= {"over": str(over), "later": str(later), "open": str(open_)}
    made.names |= {f"{name}:suffix": key.suffix for name, key in (("over", over), ("later", later), ("open", open_))}
    made.names |= {f"{name}:due": f"order:{key.ns}:{key.sender}" for name, key in (("over", over), ("later", later))}
    made.names["parcel"] = f"{open_.ns}.{open_.sender}.unserved.0"


Q = "queue:{0}:"


async def damage_everything(stack: Stack) -> Scene:
    """Damage a server after the tour so that every repair script has something to do."""
    made = Scene(stack)
    keys = stack.server.all_keys()
    made.names["history"] = next(key for key in keys if key.startswith("history:") and not key.endswith(("s", "d")))
    made.names["task"] = next(key for key in keys if ":task:" in key).partition("task:")[2]
    await made.damage(
        ["ZADD", Q + "finished", "1", "<task>"],
        ["ZADD", Q + "due", "9999999999999", "nothing"],
        ["HSET", Q + "head:t", "empty", "stranger"],
        ["ZADD", Q + "ready:t:default", "5", "@empty"],
        ["ZADD", Q + "tenants:t", "0", "unserved"],
        ["ZADD", Q + "kinds", "0", "none"],
        ["ZADD", Q + "dead", "7", "none"],
        ["EXPIRE", Q + "counters", "1000"],
        ["ZADD", "deliveries:{0}:live:university", "1", "7:1795240000000000000"],
        ["HINCRBY", "<history>", "reached", "7"],
        ["HINCRBY", Q + "counters", "t:put", "1"],
        ["SET", Q + "task:overwritten", "not a task"],
        ["HSET", Q + "progress:gone", "left", "1"],
    )
    return made


# The invariant that reports it, the damage, and whether it can be repaired.
DAMAGES: list[tuple[str, list[list[str]], bool]] = [
    # a task in a wrong index, or missing in its own
    ("I1", [["ZADD", Q + "due", "1", "<a>"]], True),
    ("I1", [["ZADD", Q + "buried", "1", "<c>"]], True),
    ("I1", [["ZADD", Q + "finished", "1", "<c>"]], True),
    ("I1", [["ZADD", Q + "expires", "1", "<c>"]], True),
    ("I1", [["ZREM", Q + "expires", "<a>"]], True),
    ("I1", [["ZREM", Q + "due", "<d>"]], True),
    ("I1", [["ZREM", Q + "due", "<h>"]], True),
    ("I1", [["ZREM", Q + "buried", "<e>"]], True),
    ("I1", [["ZREM", Q + "finished", "<k>"]], True),
    ("I1", [["HDEL", Q + "head:t", "lane"]], True),
    ("I1", [["HDEL", Q + "head:t", "held"]], True),
    ("I1", [["HSET", Q + "head:t", "held", "<g>"]], True),
    ("I1", [["ZREM", Q + "lane:t:lane", "<b>"]], True),
    ("I1", [["ZADD", Q + "lane:t:lane", "0", "<a>"]], True),
    ("I1", [["ZREM", Q + "by:lane:later", "<d>"]], True),
    ("I1", [["ZADD", Q + "lane:t:later", "1", "<d>"]], True),
    ("I1", [["ZREM", Q + "ready:t:default", "<c>"]], True),
    ("I1", [["ZADD", Q + "ready:t:default", "1", "<a>"]], True),
    ("I1", [["TASK", "<a>", "state", "waiting"]], True),
    ("I1", [["TASK", "<c>", "state", "buried"]], True),
    ("I1", [["TASK", "<a>", "state", "lost"]], False),
    ("I1", [["TASK", "<a>", "tube", ""]], True),
    ("I5", [["ZADD", Q + "lease", "1", "<a>"]], True),
    ("I5", [["ZREM", Q + "lease", "<f>"]], True),
    ("I5", [["HSET", Q + "taken", "<c>", "1 1 w"]], True),
    # lanes
    ("I2", [["HSET", Q + "head:t", "lane", "stranger"]], True),
    ("I2", [["HSET", Q + "head:t", "lane", "<e>"]], True),
    ("I2", [["HSET", Q + "head:t", "lane", "<f>"]], True),
    ("I2", [["HSET", Q + "head:t", "empty", "stranger"]], True),
    ("I2", [["HSET", Q + "head:other", "held", "<f>"]], True),
    ("I2", [["HDEL", Q + "head:t", "lane"]], True),
    ("I2", [["HDEL", Q + "head:t", "held"]], True),
    ("I2", [["HDEL", Q + "head:t", "slow"]], True),
    ("I1", [["HSET", Q + "head:t", "slow", "<i>"]], True),
    ("I2", [["HSET", Q + "taken", "<g>", "1 1 w"], ["ZADD", Q + "lease", "1", "<g>"]], False),
    ("I3", [["ZREM", Q + "ready:t:default", "@lane"]], True),
    ("I3", [["ZADD", Q + "ready:t:default", "5", "@lane"]], True),
    ("I3", [["ZADD", Q + "ready:t:default", "5", "@empty"]], True),
    ("I3", [["ZADD", Q + "ready:t:default", "5", "@held"]], True),
    ("I3", [["ZADD", Q + "ready:t:other", "5", "@lane"]], True),
    ("I4", [["DEL", Q + "tenants:t"]], True),
    ("I4", [["ZADD", Q + "tenants:t", "0", "unserved"]], True),
    # indexes
    ("I6", [["ZADD", Q + "expires", "1", "nothing"]], True),
    ("I6", [["ZADD", Q + "due", "1", "nothing"]], True),
    ("I6", [["ZADD", Q + "lease", "1", "nothing"]], True),
    ("I6", [["ZADD", Q + "buried", "1", "nothing"]], True),
    ("I6", [["ZADD", Q + "finished", "1", "nothing"]], True),
    ("I6", [["ZADD", Q + "lane:t:lane", "0", "nothing"]], True),
    ("I6", [["ZADD", Q + "lane:t:lane", "99", "<c>"]], True),
    ("I6", [["ZADD", Q + "ready:t:default", "1", "nothing"]], True),
    ("I6", [["ZADD", Q + "ready:t:other", "1", "<c>"]], True),
    ("I6", [["ZADD", Q + "by:user:u", "1", "nothing"]], True),
    ("I6", [["ZADD", Q + "by:user:u", "1", "<k>"]], True),
    ("I6", [["DEL", Q + "by:user:u"]], True),
    ("I6", [["DEL", Q + "by:tag:x"]], True),
    ("I6", [["DEL", Q + "by:lane:lane"]], True),
    ("I6", [["ZADD", Q + "by:lane:lane", "1", "nothing"]], True),
    ("I6", [["ZADD", Q + "dead", "7", "none"]], True),
    ("I6", [["DEL", Q + "kinds"]], True),
    ("I6", [["ZADD", Q + "kinds", "0", "none"]], True),
    ("I6", [["TASK", "<b>", "order", "5"]], True),
    ("I6", [["ZADD", Q + "due", "77", "<d>"]], True),
    ("I6", [["ZADD", Q + "ready:t:default", "77", "<c>"]], True),
    ("I6", [["ZADD", Q + "due", "1", "order:1795240000000000000:7"]], True),
    ("I6", [["ZREM", Q + "due", "<later:due>"]], True),
    ("I6", [["ZADD", Q + "due", "1", "<later:due>"]], True),
    ("I6", [["ZADD", Q + "due", "1", "<over:due>"]], True),
    ("I6", [["DEL", "delivery:{0}:<later:suffix>"]], True),
    # counts, numbers and the order of attempts
    ("I7", [["HINCRBY", Q + "counters", "t:put", "1"]], True),
    ("I7", [["HINCRBY", Q + "counters", "echo:done", "-1"]], True),
    ("I7", [["HINCRBY", Q + "states", "t:ready", "1"]], True),
    ("I7", [["HINCRBY", Q + "states", "t:taken", "-1"]], True),
    ("I7", [["HINCRBY", Q + "states", "t:locked", "2"]], True),
    ("I7", [["DEL", Q + "task:<c>"]], True),
    ("I7", [["DEL", Q + "task:<parcel>"]], False),
    ("I8", [["HSET", Q + "counters", "order", "0"]], False),
    ("I8", [["HSET", Q + "taken", "<a>", "99 1 w"]], False),
    ("I8", [["HSET", Q + "taken", "<f>", "w"]], False),
    ("I8", [["HSET", Q + "taken", "<a>", "1 1 w", "<f>", "1 1 w"]], False),
    ("I9", [["HSET", Q + "progress:<g>", "started", "1"]], False),
    ("I10", [["TASK", "<f>", "due", "9999999999999"]], False),
    ("I10", [["TASK", "<f>", "expires", "1"]], False),
    ("I11", [["HSET", Q + "progress:<a>", "cancel", "1"]], False),
    ("I12", [["TASK", "<f>", "attempts", "1"]], False),
    ("I12", [["TASK", "<f>", "attempts", "3"], ["HSET", Q + "progress:<f>", "allowed", "3"]], False),
    ("I12", [["TASK", "<parcel>", "attempts", "11"], ["HSET", Q + "progress:<parcel>", "allowed", "10"]], False),
    # deliveries
    ("I13", [["HSET", "<over>:outcomes", "1:echo", "failed||1|1|1|"]], False),
    ("I13", [["HDEL", "<over>:outcomes", "1:echo"]], False),
    ("I13", [["HSET", "<over>", "version", "0"]], False),
    ("I13", [["HINCRBY", "<over>", "n:echo:sent", "1"]], True),
    ("I13", [["HSET", "<over>", "n:echo:failed", "2"]], True),
    ("I13", [["HINCRBY", "<over>", "reached", "1"]], True),
    ("I13", [["SETBIT", "<over>:reached", "1", "0"]], True),
    ("I13", [["HINCRBY", "<over>", "left:echo", "1"]], False),
    ("I13", [["HINCRBY", "<open>", "left:unserved", "1"]], False),
    ("I13", [["DEL", "events:{0}"]], False),
    ("I16", [["PERSIST", "<over>"]], True),
    ("I16", [["PERSIST", "<over>:outcomes"]], True),
    ("I16", [["EXPIRE", "<open>", "1000"]], True),
    ("I16", [["DEL", "deliveries:{0}:retained"]], True),
    ("I16", [["DEL", "deliveries:{0}:live:university"]], True),
    ("I16", [["DEL", "deliveries:{0}:listed:university"]], True),
    ("I16", [["ZADD", "deliveries:{0}:live:university", "1", "7:1795240000000000000"]], True),
    ("I16", [["ZADD", "deliveries:{0}:live:university", "1", "<over:suffix>"]], True),
    ("I16", [["ZADD", "deliveries:{0}:listed:stranger", "1", "<over:suffix>"]], True),
    ("I16", [["ZADD", "deliveries:{0}:retained", "1", "university|<open:suffix>"]], True),
    ("I16", [["DEL", "<over>"]], True),
    ("I16", [["HDEL", "<over>", "plan"]], False),
    # keys
    ("I16", [["SET", "delivery:{0}:idle:t", "for ever"]], True),
    ("I16", [["EXPIRE", Q + "counters", "1000"]], True),
    ("I16", [["EXPIRE", Q + "lane:t:lane", "1000"]], True),
    ("I16", [["EXPIRE", Q + "task:<a>", "1000"]], True),
    ("I16", [["PERSIST", Q + "task:<k>"]], True),
    ("I16", [["DEL", Q + "task:<parcel>"], ["RPUSH", Q + "task:<parcel>", "x"]], True),
    ("I16", [["DEL", Q + "task:<c>"], ["RPUSH", Q + "task:<c>", "x"]], True),
    ("I1", [["SET", Q + "task:<c>", "no record"]], True),
    ("I5", [["HSET", Q + "taken", "nothing", "1 1 w"]], True),
    ("I16", [["HSET", Q + "progress:nothing", "left", "1"]], True),
    ("I16", [["DEL", "<over>:outcomes"], ["SET", "<over>:outcomes", "x"]], False),
    ("I16", [["DEL", "<over>"], ["SET", "<over>", "x"]], True),
    ("I16", [["DEL", "<later>"], ["SET", "<later>", "x"]], True),
    ("I16", [["SET", "stranger:{0}", "x"]], False),
    ("I16", [["SET", Q + "finished:", "x"]], False),
    ("I16", [["SET", "channels:{0}", "no hash"]], False),
    ("I16", [["SET", Q + "lease", "no zset"]], False),
]
