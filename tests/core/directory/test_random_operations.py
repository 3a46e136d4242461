"""Random operations: every result and every index is that of a plain model."""

from collections.abc import Awaitable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.directory import Directory
from core.directory.collections import Groups, Supergroups
from core.directory.directory import Ownerships
from core.errors import Refused
from core.model.people import ROLES, Group, ObjectKind, Supergroup, User, UserChange
from core.redis.store import Store
from tests.core.directory.conftest import OTHER, TENANT
from tests.core.directory.model import Model
from tests.support.audited import violations_in

USERS, GROUPS, SUPERGROUPS = ["1", "2", "3"], ["A", "B", "C"], ["S", "T"]
user, group, supergroup = st.sampled_from(USERS), st.sampled_from(GROUPS), st.sampled_from(SUPERGROUPS)
emails = st.sampled_from(["a@example.org", "b@example.org"])
contacts = st.dictionaries(
    st.sampled_from(["telegram", "vk"]), st.lists(st.sampled_from(["100", "200"]), min_size=1, max_size=2, unique=True)
)
person = st.builds(User, user, email=st.none() | emails, role=st.none() | st.sampled_from(ROLES), contacts=contacts)
owned = st.tuples(st.just("group"), group) | st.tuples(st.just("supergroup"), supergroup)
OPERATIONS = st.one_of(
    st.tuples(st.just("create_user"), person),
    st.tuples(st.just("update_user"), person),
    st.tuples(st.just("delete_user"), user),
    st.tuples(st.just("create_group"), group, st.lists(user, max_size=3)),
    st.tuples(st.just("delete_group"), group),
    st.tuples(st.just("member"), group, user, st.booleans()),
    st.tuples(st.just("create_supergroup"), supergroup, st.lists(group, max_size=3)),
    st.tuples(st.just("delete_supergroup"), supergroup),
    st.tuples(st.just("part"), supergroup, group, st.booleans()),
    st.tuples(st.just("own"), user, owned),
    st.tuples(st.just("disown"), user, owned),
)


def predict(model: Model, operation: tuple[Any, ...]) -> str:
    match operation:
        case ("create_user", one):
            return model.put_user(one, is_new=True)
        case ("update_user", one):
            return model.put_user(one, is_new=False)
        case ("member", group, user, member):
            return model.set_member(group, user, member=member)
        case ("part", supergroup, group, part):
            return model.set_part(supergroup, group, part=part)
        case (name, *arguments):
            return str(getattr(model, name)(*arguments))
    raise AssertionError(operation)


def start(directory: Directory, operation: tuple[Any, ...]) -> Awaitable[object]:
    name, *arguments = operation
    match name:
        case "update_user":
            (one,) = arguments
            change = UserChange(email=one.email, role=one.role, contacts=one.contacts)
            return directory.users.update(TENANT, one.id, change)
        case "create_group":
            return directory.groups.create(TENANT, Group(arguments[0]), arguments[1])
        case "create_supergroup":
            return directory.supergroups.create(TENANT, Supergroup(arguments[0], None, arguments[1]))
        case "member" | "part":
            return start_membership(directory.groups if name == "member" else directory.supergroups, *arguments)
        case "own" | "disown":
            user, (kind, object_id) = arguments
            return start_ownership(directory.ownerships, name, user, kind, object_id)
    verb, _, part = name.partition("_")
    simple: Awaitable[object] = getattr(getattr(directory, f"{part}s"), verb)(TENANT, *arguments)
    return simple


def start_membership(collections: Groups | Supergroups, given: str, member: str, added: bool) -> Awaitable[object]:
    return (collections.add_member if added else collections.remove_member)(TENANT, given, member)


def start_ownership(
    ownerships: Ownerships, name: str, user: str, kind: ObjectKind, object_id: str
) -> Awaitable[object]:
    return (ownerships.own if name == "own" else ownerships.disown)(TENANT, user, kind, object_id)


async def code(result: Awaitable[object]) -> str:
    try:
        await result
    except Refused as refused:
        return refused.code
    return ""


async def seen(directory: Directory) -> Model:
    """What the directory shows, read through its lists."""
    found = Model({str(one.id): one for one in (await directory.users.page(TENANT)).items})
    for group in (await directory.groups.page(TENANT)).items:
        found.groups[str(group.id)] = {str(one.id) for one in (await directory.groups.members(TENANT, group.id)).items}
    for one in (await directory.supergroups.page(TENANT)).items:
        found.supergroups[str(one.id)] = {str(part) for part in one.groups}
    for name in found.users:
        for ownership in await directory.ownerships.of(TENANT, name):
            found.owned.add((name, (ownership.kind, str(ownership.id))))
    return found


async def check_indexes(directory: Directory, model: Model) -> None:
    for email in ("a@example.org", "b@example.org"):
        wanted = next((one.id for one in model.users.values() if one.email == email), None)
        found = await directory.users.by_email(TENANT, email)
        assert (found.id if found else None) == wanted
    for channel in ("telegram", "vk"):
        for address in ("100", "200"):
            wanted = next((n for n, one in model.users.items() if address in one.contacts.get(channel, ())), None)
            by_contact = await directory.users.by_contact(TENANT, channel, address)
            assert (by_contact.id if by_contact else None) == wanted
    for role in ROLES:
        with_role = {one.id for one in (await directory.users.page(TENANT, role=role)).items}
        assert with_role == {name for name, one in model.users.items() if one.role == role}
    for name in model.users:
        groups = {one.id for one in await directory.groups.with_member(TENANT, name)}
        assert groups == {group for group, members in model.groups.items() if name in members}


@given(operations=st.lists(OPERATIONS, max_size=40))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
async def test_after_any_operations_records_and_indexes_are_those_of_the_model(
    store: Store, operations: list[tuple[Any, ...]]
) -> None:
    await store.command("FLUSHALL")
    directory, model = Directory(store), Model()
    await directory.users.create(OTHER, User("1", email="a@example.org", contacts={"telegram": ["100"]}))
    for operation in operations:
        assert await code(start(directory, operation)) == predict(model, operation), operation
    assert await seen(directory) == model
    await check_indexes(directory, model)
    assert await violations_in(store) == []
    assert [one.id for one in (await directory.users.page(OTHER)).items] == ["1"]
