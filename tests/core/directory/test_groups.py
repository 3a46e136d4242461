"""Groups, supergroups and ownerships, and the rule that the owner of a supergroup owns each of its groups."""

import asyncio

import pytest

from core.directory import Directory
from core.errors import Refused
from core.model.people import Group, GroupChange, Ownership, Supergroup, User
from core.redis.constants import RELATIONS
from core.redis.store import Store
from tests.core.directory.conftest import OTHER, TENANT
from tests.core.directory.test_users import code_of
from tests.support.servers import on_both_servers


@pytest.fixture
async def school(directory: Directory) -> None:
    """The people 1 to 4, the groups A (1, 2), B (2, 3) and V (virtual: 3, 4), the supergroup S (A, B)."""
    for n in range(1, 5):
        await directory.users.create(TENANT, User(n))
    await directory.groups.create(TENANT, Group("A", "Group A"), [1, 2])
    await directory.groups.create(TENANT, Group("B"), [2, "3", 2])
    await directory.groups.create(TENANT, Group("V", virtual=True), [3, 4])
    await directory.supergroups.create(TENANT, Supergroup("S", "All", ["A", "B"]))


async def member_ids(directory: Directory, group: str) -> list[object]:
    return [one.id for one in (await directory.groups.members(TENANT, group)).items]


@on_both_servers
async def test_groups_and_supergroups_are_stored_changed_and_listed(directory: Directory, school: None) -> None:
    assert await directory.groups.find(TENANT, "V") == Group("V", virtual=True)
    assert await directory.supergroups.find(TENANT, "S") == Supergroup("S", "All", ("A", "B"))
    assert await directory.groups.update(TENANT, "A", GroupChange(virtual=True)) == Group("A", "Group A", True)
    assert await directory.groups.update(TENANT, "A", GroupChange(title=None)) == Group("A", None, True)
    changed = await directory.supergroups.update(TENANT, "S", GroupChange(title="x"))
    assert changed == await directory.supergroups.find(TENANT, "S") == Supergroup("S", "x", ("A", "B"))
    assert [one.id for one in (await directory.groups.page(TENANT)).items] == ["A", "B", "V"]
    assert (await directory.supergroups.page(TENANT)).items == [changed]
    assert [one.id for one in await directory.groups.with_member(TENANT, 3)] == ["B", "V"]


async def test_a_title_that_is_no_single_line_is_refused_and_the_old_one_stays(
    directory: Directory, school: None
) -> None:
    title = GroupChange(title="a\nb")
    assert (await code_of(directory.groups.update(TENANT, "A", title)))[0] == "NOT_PRINTABLE"
    assert (await code_of(directory.supergroups.update(TENANT, "S", title)))[0] == "NOT_PRINTABLE"
    assert (await directory.groups.find(TENANT, "A")).title == "Group A"
    assert (await directory.supergroups.find(TENANT, "S")).title == "All"


async def test_lists_of_groups_are_paged(directory: Directory) -> None:
    names = [f"group {n}" for n in range(12)]
    for name in names:
        await directory.groups.create(TENANT, Group(name))
        await directory.supergroups.create(TENANT, Supergroup(name))
    for listed in (directory.groups.page, directory.supergroups.page):
        found, cursor = [], None
        while True:
            page = await listed(TENANT, cursor=cursor, limit=5)
            found += [one.id for one in page.items]
            cursor = page.next
            if cursor is None:
                break
        assert found == sorted(names)


async def test_unknown_names_are_refused_and_nothing_is_written(directory: Directory, store: Store) -> None:
    await directory.users.create(TENANT, User(1))
    await directory.groups.create(TENANT, Group("A"))
    before = await store.command("DBSIZE")
    refusals = [
        (directory.groups.create(TENANT, Group("A")), "GROUP_EXISTS"),
        (directory.groups.create(TENANT, Group("B"), [1, 9]), "USER_NOT_FOUND"),
        (directory.groups.add_members(TENANT, "A", [1, 9]), "USER_NOT_FOUND"),
        (directory.groups.add_member(TENANT, "Z", 1), "GROUP_NOT_FOUND"),
        (directory.groups.add_members(TENANT, "Z", []), "GROUP_NOT_FOUND"),
        (directory.groups.remove_member(TENANT, "Z", 1), "GROUP_NOT_FOUND"),
        (directory.groups.remove_member(TENANT, "A", 9), "USER_NOT_FOUND"),
        (directory.groups.members(TENANT, "Z"), "GROUP_NOT_FOUND"),
        (directory.groups.update(TENANT, "Z", GroupChange()), "GROUP_NOT_FOUND"),
        (directory.groups.delete(TENANT, "Z"), "GROUP_NOT_FOUND"),
        (directory.supergroups.create(TENANT, Supergroup("S", None, ["A", "Z"])), "GROUP_NOT_FOUND"),
        (directory.supergroups.add_member(TENANT, "Z", "A"), "SUPERGROUP_NOT_FOUND"),
        (directory.supergroups.update(TENANT, "Z", GroupChange()), "SUPERGROUP_NOT_FOUND"),
        (directory.supergroups.delete(TENANT, "Z"), "SUPERGROUP_NOT_FOUND"),
        (directory.ownerships.own(TENANT, 9, "group", "A"), "USER_NOT_FOUND"),
        (directory.ownerships.own(TENANT, 1, "group", "Z"), "GROUP_NOT_FOUND"),
        (directory.ownerships.own(TENANT, 1, "supergroup", "A"), "SUPERGROUP_NOT_FOUND"),
        (directory.ownerships.disown(TENANT, 9, "group", "A"), "USER_NOT_FOUND"),
        (directory.ownerships.of(TENANT, 9), "USER_NOT_FOUND"),
        (directory.groups.add_member(OTHER, "A", 1), "GROUP_NOT_FOUND"),
        (directory.ownerships.own(OTHER, 1, "group", "A"), "USER_NOT_FOUND"),
        (directory.groups.create(TENANT, Group("a\nb")), "NOT_PRINTABLE"),
        (directory.groups.create(TENANT, Group("C", "a\nb")), "NOT_PRINTABLE"),
        (directory.groups.update(TENANT, "A", GroupChange(title="a\nb")), "NOT_PRINTABLE"),
        (directory.supergroups.create(TENANT, Supergroup("D", "a\nb")), "NOT_PRINTABLE"),
    ]
    for attempt, code in refusals:
        assert (await code_of(attempt))[0] == code
    assert await store.command("DBSIZE") == before
    assert await member_ids(directory, "A") == []


async def test_membership_is_added_and_removed_once(directory: Directory, school: None) -> None:
    for _ in range(2):
        await directory.groups.add_member(TENANT, "A", "4")
        assert await member_ids(directory, "A") == [1, 2, 4]
    for _ in range(2):
        await directory.groups.remove_member(TENANT, "A", 1)
        assert await member_ids(directory, "A") == [2, 4]
    assert await directory.groups.has_member(TENANT, "A", 4)
    assert not await directory.groups.has_member(TENANT, "A", 1)


async def test_a_deleted_group_leaves_supergroups_members_and_ownerships(directory: Directory, school: None) -> None:
    for name in ("A", "B"):
        await directory.ownerships.own(TENANT, 1, "group", name)
    await directory.ownerships.own(TENANT, 1, "supergroup", "S")
    await directory.groups.delete(TENANT, "A")
    assert (await directory.supergroups.find(TENANT, "S")).groups == ("B",)
    assert await directory.groups.with_member(TENANT, 1) == []
    assert await directory.ownerships.of(TENANT, 1) == [Ownership(1, "group", "B"), Ownership(1, "supergroup", "S")]
    assert await directory.users.find(TENANT, 1) == User(1)
    await directory.groups.create(TENANT, Group("A"))
    assert await member_ids(directory, "A") == []


async def test_a_large_group_is_deleted_in_steps_and_cannot_be_used_meanwhile(
    directory: Directory, store: Store
) -> None:
    """After the first step the process dies; a new group with the same id does not get the former members."""
    people = list(range(1200))
    for n in people:
        await directory.users.create(TENANT, User(n))
    await directory.groups.create(TENANT, Group("A"))
    await directory.groups.add_members(TENANT, "A", people)
    assert await store.run_for_tenant("delete_collection", TENANT, "group", "A") == 700
    for attempt in (directory.groups.find(TENANT, "A"), directory.groups.add_member(TENANT, "A", 1)):
        assert (await code_of(attempt))[0] == "GROUP_NOT_FOUND"
    await directory.groups.create(TENANT, Group("A"), [5])
    assert await member_ids(directory, "A") == [5]
    assert [len(await directory.groups.with_member(TENANT, n)) for n in (0, 5, 1199)] == [0, 1, 0]


async def test_the_owner_of_a_supergroup_must_own_each_of_its_groups(directory: Directory, school: None) -> None:
    await directory.ownerships.own(TENANT, 1, "group", "A")
    assert (await code_of(directory.ownerships.own(TENANT, 1, "supergroup", "S")))[0] == "GROUP_NOT_OWNED"
    assert not await directory.ownerships.owns(TENANT, 1, "supergroup", "S")
    await directory.ownerships.own(TENANT, 1, "group", "B")
    await directory.ownerships.own(TENANT, 1, "supergroup", "S")
    assert await directory.ownerships.owns(TENANT, "1", "supergroup", "S")
    assert not await directory.ownerships.owns(TENANT, 2, "supergroup", "S")
    assert not await directory.ownerships.owns(TENANT, 1, "group", "S")
    assert not await directory.ownerships.owns(OTHER, 1, "group", "A")


async def test_a_group_joins_a_supergroup_only_if_each_of_its_owners_owns_it(
    directory: Directory, school: None
) -> None:
    for kind, name in (("group", "A"), ("group", "B"), ("supergroup", "S")):
        await directory.ownerships.own(TENANT, 1, kind, name)  # type: ignore[arg-type]
    assert (await code_of(directory.supergroups.add_member(TENANT, "S", "V")))[0] == "GROUP_NOT_OWNED"
    assert (await directory.supergroups.find(TENANT, "S")).groups == ("A", "B")
    await directory.ownerships.own(TENANT, 1, "group", "V")
    await directory.supergroups.add_member(TENANT, "S", "V")
    assert (await directory.supergroups.find(TENANT, "S")).groups == ("A", "B", "V")
    await directory.supergroups.add_member(TENANT, "S", "V")
    await directory.supergroups.remove_member(TENANT, "S", "V")
    await directory.supergroups.remove_member(TENANT, "S", "V")
    assert (await directory.supergroups.find(TENANT, "S")).groups == ("A", "B")


async def test_withdrawing_a_group_withdraws_its_supergroups_of_this_person_alone(
    directory: Directory, school: None
) -> None:
    await directory.supergroups.create(TENANT, Supergroup("T", None, ["B"]))
    for user in (1, 2):
        for kind, name in (("group", "A"), ("group", "B"), ("supergroup", "S"), ("supergroup", "T")):
            await directory.ownerships.own(TENANT, user, kind, name)  # type: ignore[arg-type]
    withdrawn = await directory.ownerships.disown(TENANT, 1, "group", "A")
    assert withdrawn == [Ownership(1, "group", "A"), Ownership(1, "supergroup", "S")]
    assert await directory.ownerships.of(TENANT, 1) == [Ownership(1, "group", "B"), Ownership(1, "supergroup", "T")]
    assert len(await directory.ownerships.of(TENANT, 2)) == 4
    assert await directory.ownerships.disown(TENANT, 1, "group", "A") == []
    assert await directory.ownerships.disown(TENANT, 1, "supergroup", "T") == [Ownership(1, "supergroup", "T")]


async def test_a_deleted_supergroup_leaves_its_groups(directory: Directory, school: None) -> None:
    for kind, name in (("group", "A"), ("group", "B"), ("supergroup", "S")):
        await directory.ownerships.own(TENANT, 1, kind, name)  # type: ignore[arg-type]
    await directory.supergroups.delete(TENANT, "S")
    assert await directory.ownerships.of(TENANT, 1) == [Ownership(1, "group", "A"), Ownership(1, "group", "B")]
    await directory.supergroups.create(TENANT, Supergroup("S"))
    assert (await directory.supergroups.find(TENANT, "S")).groups == ()


async def test_the_rule_of_ownership_holds_when_everybody_writes_at_once(directory: Directory, school: None) -> None:
    """Adding the group to the supergroup and owning the supergroup race; the audit after the test checks the rule."""
    await directory.supergroups.create(TENANT, Supergroup("T"))
    attempts = [directory.ownerships.own(TENANT, n % 4 + 1, "supergroup", "T") for n in range(8)]
    attempts += [directory.supergroups.add_member(TENANT, "T", name) for name in "ABV" * 3]
    results = await asyncio.gather(*attempts, return_exceptions=True)
    assert {one.code for one in results if isinstance(one, Refused)} <= {"GROUP_NOT_OWNED"}
    supergroup = await directory.supergroups.find(TENANT, "T")
    owners = [n for n in range(1, 5) if await directory.ownerships.owns(TENANT, n, "supergroup", "T")]
    assert not (supergroup.groups and owners)


async def test_the_number_of_owners_of_a_group_is_limited(directory: Directory) -> None:
    await directory.groups.create(TENANT, Group("A"))
    await asyncio.gather(*(directory.users.create(TENANT, User(n)) for n in range(RELATIONS + 1)))
    await asyncio.gather(*(directory.ownerships.own(TENANT, n, "group", "A") for n in range(RELATIONS)))
    assert (await code_of(directory.ownerships.own(TENANT, RELATIONS, "group", "A")))[0] == "LIMIT_REACHED"
    await directory.ownerships.own(TENANT, 0, "group", "A")


async def test_the_number_of_relations_is_limited(directory: Directory, store: Store) -> None:
    await directory.users.create(TENANT, User(1))
    groups = [f"g{n}" for n in range(RELATIONS + 1)]
    await asyncio.gather(*(directory.groups.create(TENANT, Group(name)) for name in groups))
    await asyncio.gather(*(directory.groups.add_member(TENANT, name, 1) for name in groups[:-1]))
    await asyncio.gather(*(directory.ownerships.own(TENANT, 1, "group", name) for name in groups[:-1]))
    await directory.supergroups.create(TENANT, Supergroup("S", None, groups[:-1]))
    for attempt in (
        directory.groups.add_member(TENANT, groups[-1], 1),
        directory.ownerships.own(TENANT, 1, "group", groups[-1]),
        directory.supergroups.add_member(TENANT, "S", groups[-1]),
        directory.supergroups.create(TENANT, Supergroup("T", None, groups)),
    ):
        assert (await code_of(attempt))[0] == "LIMIT_REACHED"
    await directory.groups.add_member(TENANT, groups[0], 1)
    await directory.supergroups.add_member(TENANT, "S", groups[0])
    await directory.ownerships.own(TENANT, 1, "group", groups[0])
    await directory.users.delete(TENANT, 1)
    assert await store.command("ZCARD", store.tenant_key("owners", TENANT, "group:g0")) == 0
