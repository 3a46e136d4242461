"""The audit finds every entry of the directory that another contradicts (I19 to I21)."""

import pytest

from core.directory import Directory
from core.model.people import Group, Supergroup, User
from tests.core.audit.damages import Scene
from tests.support.servers import Server
from tests.support.stack import TENANT, Stack

D = "directory:{0}:"

# The invariant that reports it, and the damage.
DAMAGES = [
    ("I19", ["HDEL", D + "users:university", "1"]),
    ("I19", ["HSET", D + "users:university", "1", "no JSON"]),
    ("I19", ["ZREM", D + "userids:university", "1"]),
    ("I19", ["ZADD", D + "userids:university", "0", "9"]),
    ("I19", ["HDEL", D + "emails:university", "a@example.org"]),
    ("I19", ["HSET", D + "emails:university", "a@example.org", "2"]),
    ("I19", ["HSET", D + "emails:university", "b@example.org", "2"]),
    ("I19", ["HSET", D + "emails:university", "b@example.org", "9"]),
    ("I19", ["HDEL", D + "contacts:university", "sms:+79991112233"]),
    ("I19", ["HSET", D + "contacts:university", "sms:+79991112233", "2"]),
    ("I19", ["HSET", D + "contacts:university", "vk:1", "2"]),
    ("I19", ["ZREM", D + "role:university:staff", "1"]),
    ("I19", ["ZADD", D + "role:university:admin", "0", "1"]),
    ("I19", ["ZADD", D + "role:university:staff", "0", "2"]),
    ("I19", ["ZREM", D + "names:university", "анна 1"]),
    ("I19", ["ZADD", D + "names:university", "0", "борис 1"]),
    ("I20", ["ZREM", D + "collectionids:university:group", "A"]),
    ("I20", ["ZADD", D + "collectionids:university:group", "0", "Z"]),
    ("I20", ["ZREM", D + "collectionids:university:supergroup", "S"]),
    ("I20", ["ZADD", D + "collectionids:university:supergroup", "0", "Z"]),
    ("I20", ["ZREM", D + "members:university:group:A", "1"]),
    ("I20", ["ZADD", D + "members:university:group:A", "0", "2"]),
    ("I20", ["ZADD", D + "members:university:group:A", "0", "9"]),
    ("I20", ["ZREM", D + "member_of:university:group:1", "A"]),
    ("I20", ["ZADD", D + "member_of:university:group:2", "0", "A"]),
    ("I20", ["ZREM", D + "members:university:supergroup:S", "A"]),
    ("I20", ["ZADD", D + "members:university:supergroup:S", "0", "Z"]),
    ("I20", ["ZREM", D + "member_of:university:supergroup:A", "S"]),
    ("I20", ["ZADD", D + "member_of:university:supergroup:B", "0", "S"]),
    ("I20", ["ZADD", D + "members:university:unknown:A", "0", "1"]),
    ("I20", ["HDEL", D + "collections:university:supergroup", "S"]),
    ("I20", ["ZREM", D + "owned:university:1", "supergroup:S"]),
    ("I20", ["ZADD", D + "owned:university:2", "0", "group:A"]),
    ("I20", ["ZREM", D + "owners:university:group:A", "1"]),
    ("I20", ["ZADD", D + "owners:university:group:B", "0", "1"]),
    ("I21", ["ZREM", D + "owned:university:1", "group:A"]),
]


@pytest.fixture
async def damaged(server: Server) -> Scene:
    """Person 1 is staff, in group A, and owns A and the supergroup S of A; person 2 and group B have nothing."""
    stack = await Stack.open(server)
    directory = Directory(stack.store)
    user = User(1, "Анна", email="a@example.org", role="staff", contacts={"sms": ["+79991112233"]})
    for one in (user, User(2)):
        await directory.users.create(TENANT, one)
        await directory.users.create("other", one)
    await directory.groups.create(TENANT, Group("A"), [1])
    await directory.groups.create(TENANT, Group("B"))
    await directory.supergroups.create(TENANT, Supergroup("S", groups=["A"]))
    await directory.ownerships.own(TENANT, 1, "group", "A")
    await directory.ownerships.own(TENANT, 1, "supergroup", "S")
    return Scene(stack)


async def test_a_violation_says_whether_an_entry_is_absent_or_another(damaged: Scene) -> None:
    await damaged.stack.redis.hdel(D + "emails:university", "a@example.org")
    await damaged.stack.redis.hset(D + "contacts:university", "sms:+79991112233", "2")
    found = {violation.found for violation in await damaged.violations()}
    assert {"a@example.org is absent", "sms:+79991112233 is another"} <= found
    await damaged.stack.close()


async def test_every_damage_of_the_directory_is_found(damaged: Scene) -> None:
    assert all(one.why for one in await damaged.check_each(DAMAGES))
    await damaged.stack.close()
