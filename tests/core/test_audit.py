"""The audit itself: it finds every kind of damage, and nothing else."""

from collections.abc import AsyncIterator

import pytest

from core.orders import HistoryKey
from tests.core.audit import dump, violations
from tests.core.house import HOUR, House, Played, people, person
from tests.core.tour import tour
from tests.servers import Server

pytestmark = pytest.mark.row("K-44")


@pytest.fixture
async def damaged(server: Server) -> AsyncIterator[House]:
    """A house with tasks in every state and deliveries; its end is not audited."""
    house = await House.open(server)
    yield house
    await house.close()


async def rules(house: House) -> set[str]:
    return {violation.rule for violation in violations(await dump(house.server.url))}


async def test_a_house_at_work_is_sound(house: House) -> None:
    await tour(house)
    assert await rules(house) == set()


async def sound(house: House) -> tuple[str, HistoryKey]:
    """A task that can be taken and a finished delivery."""
    task = await house.queue.put("t", "a", lane="lane")
    await house.queue.put("t", "b", lane="lane")
    courier = await house.courier(Played())
    key = (await house.deliver(*people(3))).key
    await house.finished(key)
    await house.stop(courier)
    assert await rules(house) == set()
    return task.partition(".")[2], key


DAMAGES = [
    ("I1", ["ZADD", "queue:{0}:due", "1", "<task>"]),
    ("I1", ["HSET", "queue:{0}:task:<task>", "state", "waiting"]),
    ("I1", ["HSET", "queue:{0}:task:<task>", "state", "lost"]),
    ("I1", ["ZREM", "queue:{0}:lane:t:lane", "<task>"]),
    ("I5", ["ZADD", "queue:{0}:lease", "1", "<task>"]),
    ("I5", ["HSET", "queue:{0}:task:<task>", "state", "taken"]),
    ("I2", ["HSET", "queue:{0}:held:t", "lane", "somebody"]),
    ("I2", ["HSET", "queue:{0}:held:t", "empty", "somebody"]),
    ("I3", ["DEL", "queue:{0}:ready:t:default"]),
    ("I3", ["ZADD", "queue:{0}:ready:t:default", "5", "@lane"]),
    ("I3", ["ZADD", "queue:{0}:ready:t:default", "5", "@empty"]),
    ("I3", ["ZADD", "queue:{0}:ready:t:other", "5", "@lane"]),
    ("I4", ["DEL", "queue:{0}:tenants:t"]),
    ("I4", ["ZADD", "queue:{0}:tenants:t", "0", "nobody"]),
    ("I6", ["ZADD", "queue:{0}:expires", "1", "nothing"]),
    ("I6", ["ZADD", "queue:{0}:due", "1", "order:1795240000000000000:7"]),
    ("I6", ["HSET", "queue:{0}:task:<task>", "order", "99"]),
    ("I7", ["HINCRBY", "queue:{0}:counters", "t:put", "1"]),
    ("I7", ["HINCRBY", "queue:{0}:counters", "echo:done", "-1"]),
    ("I8", ["HSET", "queue:{0}:counters", "order", "0"]),
    ("I8", ["HSET", "queue:{0}:task:<task>", "token", "99"]),
    ("I13", ["HSET", "<key>:outcomes", "1:echo", "failed||1|1|1|"]),
    ("I13", ["HDEL", "<key>:outcomes", "1:echo"]),
    ("I13", ["HINCRBY", "<key>", "n:echo:sent", "1"]),
    ("I13", ["HINCRBY", "<key>", "left:echo", "1"]),
    ("I13", ["HINCRBY", "<key>", "reached", "1"]),
    ("I13", ["SETBIT", "<key>:reached", "1", "0"]),
    ("I13", ["DEL", "events:{0}"]),
    ("I16", ["PERSIST", "<key>"]),
    ("I16", ["DEL", "deliveries:{0}:retained"]),
    ("I16", ["DEL", "deliveries:{0}:listed:university"]),
    ("I16", ["ZADD", "deliveries:{0}:live:university", "1", "7:1795240000000000000"]),
    ("I16", ["SET", "delivery:{0}:idle:t", "for ever"]),
    ("I16", ["SET", "stranger:{0}", "x"]),
]


@pytest.mark.parametrize(
    ("rule", "damage"), DAMAGES, ids=lambda value: value if isinstance(value, str) else "-".join(value[:2])
)
async def test_the_audit_names_the_rule_that_was_broken(damaged: House, rule: str, damage: list[str]) -> None:
    task, key = await sound(damaged)
    await damaged.store.command(*(word.replace("<task>", task).replace("<key>", str(key)) for word in damage))
    assert rule in await rules(damaged)


async def test_the_audit_finds_what_is_left_of_finished_work(damaged: House) -> None:
    """I16. The only task ended; an index of it stayed."""
    await damaged.queue.put("t", "a", due=damaged.now() + HOUR)
    await damaged.redis.delete(*[key for key in damaged.server.all_keys() if ":task:" in key])
    assert {"I6", "I16"} <= await rules(damaged)


async def test_the_audit_finds_a_delivery_that_nobody_works_on(damaged: House) -> None:
    await damaged.deliver(person(1, "nobody"), channels=("nobody",))
    (task,) = await damaged.take("nobody")
    await damaged.redis.delete(f"queue:{{0}}:task:{task.id}", "queue:{0}:lease")
    assert "I7" in await rules(damaged)
