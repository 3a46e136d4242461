"""What the directory reads by plain commands, on fakeredis: pages, indexes and expansion of records that are there.

The scripts that write need a real server, as all other tests of the directory have it.
"""

from typing import Any, cast

import pytest
from fakeredis import FakeAsyncRedis

from core.directory import Directory
from core.directory.records import all_ids, encode_record, pages_of_ids, read_cursor, write_cursor
from core.errors import Invalid, NotFound
from core.model.people import Group, Supergroup, User, id_text
from core.redis.keys import KEYS
from core.redis.store import Store
from tests.core.directory.conftest import OTHER, TENANT

MANY = 1_203
"""People of one group: three pages of records."""


class PlainStore:
    """The plain commands of a `Store`, on fakeredis."""

    def __init__(self) -> None:
        self.redis = FakeAsyncRedis(decode_responses=True)

    async def command(self, *command: Any) -> Any:
        return await self.redis.execute_command(*command)  # type: ignore[no-untyped-call]

    def tenant_key(self, name: str, *parts: str) -> str:
        return KEYS[name].at(0, *parts)


class Records:
    """Writes what the scripts write."""

    def __init__(self, store: PlainStore) -> None:
        self._redis = store.redis

    async def user(self, user: User, *groups: str) -> None:
        name = id_text(user.id)
        await self._redis.hset(KEYS["users"].at(0, TENANT), name, encode_record(user))
        await self._index("userids", name)
        if user.role:
            await self._index("role", name, user.role)
        if user.email:
            await self._redis.hset(KEYS["emails"].at(0, TENANT), user.email, name)
        for channel, addresses in user.contacts.items():
            for address in addresses:
                await self._redis.hset(KEYS["contacts"].at(0, TENANT), f"{channel}:{address}", name)
        for group in groups:
            await self._index("members", name, "group", group)
            await self._index("member_of", group, "group", name)

    async def group(self, group: Group, *supergroups: str) -> None:
        await self._redis.hset(KEYS["collections"].at(0, TENANT, "group"), id_text(group.id), encode_record(group))
        await self._index("collectionids", id_text(group.id), "group")
        for supergroup in supergroups:
            record = encode_record(Supergroup(supergroup))
            await self._redis.hset(KEYS["collections"].at(0, TENANT, "supergroup"), supergroup, record)
            await self._index("members", id_text(group.id), "supergroup", supergroup)

    async def _index(self, key: str, member: str, *of: str) -> None:
        await self._redis.zadd(KEYS[key].at(0, TENANT, *of), {member: 0})


@pytest.fixture
def plain_store() -> PlainStore:
    return PlainStore()


@pytest.fixture
def records(plain_store: PlainStore) -> Records:
    return Records(plain_store)


@pytest.fixture
def people(plain_store: PlainStore) -> Directory:
    return Directory(cast(Store, plain_store))


async def test_a_person_is_found_by_id_email_and_contact_in_its_own_tenant_only(
    records: Records, people: Directory
) -> None:
    await records.user(User(7, "Anna", "anna@example.org", "trainer", contacts={"sms": ["+79990000001"]}))
    found = [
        await people.users.find(TENANT, "7"),
        await people.users.by_email(TENANT, "ANNA@Example.org"),
        await people.users.by_contact(TENANT, "sms", "8 (999) 000-00-01"),
    ]
    assert [one.name for one in found if one] == ["Anna"] * 3
    assert await people.users.by_email(OTHER, "anna@example.org") is None
    with pytest.raises(NotFound):
        await people.users.find(OTHER, 7)


async def test_pages_of_people_neither_overlap_nor_skip(records: Records, people: Directory) -> None:
    for number in range(25):
        await records.user(User(number, role="trainer" if number % 2 else "student"))
    found, cursor = list[Any](), None
    while True:
        page = await people.users.page(TENANT, role="trainer", cursor=cursor, limit=5)
        found += [one.id for one in page.items]
        cursor = page.next
        if cursor is None:
            break
    assert found == sorted(range(1, 25, 2), key=str)


async def test_a_supergroup_expands_to_each_person_once_with_the_groups_that_are_not_virtual(
    records: Records, people: Directory
) -> None:
    await records.group(Group("a"), "course")
    await records.group(Group("b"), "course")
    await records.group(Group("v", virtual=True), "course")
    await records.user(User(1), "a", "b")
    await records.user(User(2), "b", "v")
    await records.user(User(3), "v")
    expanded = await people.expander.expand(TENANT, ["a"], ["course"])
    assert {one.user.id: sorted(one.origin) for one in expanded.members} == {1: ["a", "b"], 2: ["b"], 3: []}


async def test_a_group_of_several_pages_expands_to_all_its_members(
    plain_store: PlainStore, records: Records, people: Directory
) -> None:
    await records.group(Group("g"))
    for number in range(MANY):
        await records.user(User(number), "g")
    assert len((await people.expander.expand(TENANT, ["g"], [])).members) == MANY
    key = KEYS["members"].at(0, TENANT, "group", "g")
    sizes = [len(page) async for page in pages_of_ids(cast(Store, plain_store), key)]
    assert sizes == [500, 500, 203]
    assert len(set(await all_ids(cast(Store, plain_store), key))) == MANY


async def test_an_unknown_group_or_supergroup_is_refused_by_name(people: Directory) -> None:
    for groups, supergroups, code in ((["x"], [], "GROUP_NOT_FOUND"), ([], ["x"], "SUPERGROUP_NOT_FOUND")):
        with pytest.raises(NotFound) as refused:
            await people.expander.expand(TENANT, groups, supergroups)
        assert refused.value.code == code


def test_a_cursor_names_the_last_id_and_a_forged_one_is_refused() -> None:
    assert read_cursor(write_cursor("группа 1")) == "группа 1"
    for forged in ("%", "~00", "~d0", "я"):
        with pytest.raises(Invalid) as refused:
            read_cursor(forged)
        assert refused.value.code == "CURSOR_MALFORMED"
