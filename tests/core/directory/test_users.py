"""People: their records, the indexes by which they are found, and what is refused."""

import asyncio
from collections import Counter

import pytest

from core.directory import Directory
from core.errors import NotFound, Refused
from core.model.people import Group, User, UserChange
from core.queue import Queue, TaskFilter
from core.redis.store import Store
from tests.core.directory.conftest import OTHER, TENANT
from tests.support.servers import Server, on_both_servers

ANNA = User(
    id=1,
    name="Анна «А.» Петрова",
    email="Anna@Example.org",
    role="trainer",
    locale="en",
    contacts={"telegram": ["100001", "@Anna"], "sms": ["8 (999) 111-22-33"], "vk": []},
    opt_out=["vk", "vk"],
)
STORED = User(
    id=1,
    name="Анна «А.» Петрова",
    email="anna@example.org",
    role="trainer",
    locale="en",
    contacts={"telegram": ["100001", "@anna"], "sms": ["+79991112233"]},
    opt_out=["vk"],
)


async def code_of(attempt: object) -> tuple[str, str]:
    """Code and path of the refusal of a call."""
    with pytest.raises(Refused) as refused:
        await attempt  # type: ignore[misc]
    return refused.value.code, refused.value.path


def plain(user: User | None) -> object:
    """A person with lists for tuples, for comparison."""
    assert user is not None
    contacts = {channel: list(some) for channel, some in user.contacts.items()}
    return (user.id, user.name, user.email, user.role, user.locale, contacts, list(user.opt_out))


@on_both_servers
async def test_a_person_is_stored_with_canonical_addresses_and_found_by_each(directory: Directory) -> None:
    created = await directory.users.create(TENANT, ANNA)
    assert plain(created) == plain(STORED)
    found = [
        await directory.users.find(TENANT, "1"),
        await directory.users.by_email(TENANT, "ANNA@example.org"),
        await directory.users.by_contact(TENANT, "sms", "+7 999 111 22 33"),
        await directory.users.by_contact(TENANT, "telegram", "@ANNA"),
        *(await directory.users.lookup(TENANT, [1, "1"])),
    ]
    assert [plain(one) for one in found] == [plain(STORED)] * len(found)
    assert await directory.users.by_email(TENANT, "other@example.org") is None
    assert await directory.users.by_contact(TENANT, "vk", "100001") is None


@pytest.mark.parametrize("given", [7, "7", -(2**63), 2**63 - 1, "группа:1 [x]{y}", "a" * 128, "+7", "007"])
async def test_an_id_comes_back_as_it_was_given(directory: Directory, given: int | str) -> None:
    await directory.users.create(TENANT, User(given, email="a@example.org"))
    await directory.users.update(TENANT, given, UserChange(name="x"))
    found = await directory.users.by_email(TENANT, "a@example.org")
    assert found is not None
    assert found.id == given
    assert type(found.id) is type(given)


async def test_a_number_and_the_same_digits_are_one_person(directory: Directory) -> None:
    await directory.users.create(TENANT, User(7))
    assert await code_of(directory.users.create(TENANT, User("7"))) == ("USER_EXISTS", "id")


@pytest.mark.parametrize(
    ("user", "code", "path"),
    [
        (User(""), "TOO_SHORT", "id"),
        (User("a" * 129), "TOO_LONG", "id"),
        (User("a\nb"), "NOT_PRINTABLE", "id"),
        (User(2**63), "OUT_OF_RANGE", "id"),
        (User(1, name="a\x1b[0m"), "NOT_PRINTABLE", "name"),
        (User(1, role="dean"), "UNKNOWN_ROLE", "role"),
        (User(1, locale="de"), "UNKNOWN_LOCALE", "locale"),
        (User(1, contacts={"telegram": ["1\n2"]}), "NOT_PRINTABLE", "contacts.telegram.0"),
        (User(1, contacts={"telegram": ["1", ""]}), "TOO_SHORT", "contacts.telegram.1"),
        (User(1, contacts={"sms": [f"+7999000{n:04}" for n in range(17)]}), "TOO_LONG", "contacts.sms"),
        (User(1, contacts={"tele:gram": ["1"]}), "UNKNOWN_CHANNEL", "contacts.tele:gram"),
        (User(1, opt_out=["a", ""]), "UNKNOWN_CHANNEL", "opt_out.1"),
    ],
)
async def test_a_malformed_person_is_refused_with_the_field(
    directory: Directory, store: Store, user: User, code: str, path: str
) -> None:
    assert await code_of(directory.users.create(TENANT, user)) == (code, path)
    assert await store.command("DBSIZE") == 0


@pytest.mark.parametrize(
    "email",
    ["", "a", "a@", "@b.org", "a@b", "a b@c.org", "a@b.org\n", "a@b.org\r\nBcc: x@y.org", "a@-b.org", "a@b-.org",
     ".a@b.org", "a..b@c.org", "a@b..org", "a@b.org,c@d.org", "<a@b.org>", "я@b.org", "a@" + "b" * 300 + ".org",
     "a" * 65 + "@b.org", '"a"@b.org', "a@b.org\0", "a@[127.0.0.1]", "a@я_б.рф", "a@я.рф\r\nBcc: x@y.org"],
)  # fmt: skip
async def test_a_malformed_email_address_is_refused(directory: Directory, email: str) -> None:
    assert await code_of(directory.users.create(TENANT, User(1, email=email))) == ("EMAIL_MALFORMED", "email")


@pytest.mark.parametrize("email", ["a@b.org", "a.b+c@d-e.f.ru", "ivan_o'neil@тест.рф", "1@2.org"])
async def test_a_usual_email_address_is_accepted(directory: Directory, email: str) -> None:
    assert (await directory.users.create(TENANT, User(1, email=email))).email == email


async def test_an_email_address_with_a_domain_in_cyrillic_is_one_in_each_written_form(directory: Directory) -> None:
    created = await directory.users.create(TENANT, User(1, email="Sidorov@Пример.рф"))
    assert created.email == "sidorov@пример.рф"
    for written in ("sidorov@пример.рф", "sidorov@ПРИМЕР.РФ", "sidorov@xn--e1afmkfd.xn--p1ai"):
        assert await directory.users.by_email(TENANT, written) == created
        assert await code_of(directory.users.create(TENANT, User(2, email=written))) == ("EMAIL_TAKEN", "email")


async def test_an_email_address_and_a_contact_belong_to_one_person(directory: Directory) -> None:
    await directory.users.create(TENANT, ANNA)
    await directory.users.create(TENANT, User(2))
    taken_email, taken_sms = "ANNA@EXAMPLE.ORG", {"sms": ["9991112233"]}
    for attempt in (
        directory.users.create(TENANT, User(3, email=taken_email)),
        directory.users.update(TENANT, 2, UserChange(email=taken_email)),
    ):
        assert await code_of(attempt) == ("EMAIL_TAKEN", "email")
    for attempt in (
        directory.users.create(TENANT, User(3, contacts=taken_sms)),
        directory.users.update(TENANT, 2, UserChange(contacts=taken_sms)),
        directory.users.add_contact(TENANT, 2, "sms", "89991112233"),
    ):
        assert await code_of(attempt) == ("CONTACT_TAKEN", "contacts.sms")
    assert await code_of(directory.users.find(TENANT, 3)) == ("USER_NOT_FOUND", "")
    assert await directory.users.find(TENANT, 2) == User(2)


async def test_a_change_replaces_the_fields_that_are_given_and_their_indexes(directory: Directory) -> None:
    await directory.users.create(TENANT, ANNA)
    changed = await directory.users.update(
        TENANT, 1, UserChange(email=None, role="staff", contacts={"vk": ["200001"]}, opt_out=[])
    )
    assert (changed.name, changed.email, changed.role, changed.contacts) == (
        ANNA.name,
        None,
        "staff",
        {"vk": ["200001"]},
    )
    await directory.users.create(TENANT, User(2, email=ANNA.email, contacts={"sms": ["+79991112233"]}))
    assert [one.id for one in (await directory.users.page(TENANT, role="trainer")).items] == []
    assert [one.id for one in (await directory.users.page(TENANT, role="staff")).items] == [1]
    assert await code_of(directory.users.update(TENANT, 9, UserChange(name="x"))) == ("USER_NOT_FOUND", "")


async def test_unlinking_removes_only_that_contact(directory: Directory) -> None:
    await directory.users.create(TENANT, ANNA)
    await directory.users.remove_contact(TENANT, 1, "telegram", "@ANNA")
    left = {"telegram": ["100001"], "sms": ["+79991112233"]}
    assert (await directory.users.find(TENANT, 1)).contacts == left
    assert await directory.users.by_contact(TENANT, "telegram", "@anna") is None
    assert await directory.users.by_contact(TENANT, "telegram", "100001") is not None
    for channel, address in (("telegram", "@anna"), ("vk", "1")):
        assert (await code_of(directory.users.remove_contact(TENANT, 1, channel, address)))[0] == "CONTACT_NOT_FOUND"
    await directory.users.create(TENANT, User(2, contacts={"telegram": ["@Anna"]}))
    with pytest.raises(NotFound, match="does not have"):
        await directory.users.remove_contact(TENANT, 1, "telegram", "@anna")
    assert await directory.users.by_contact(TENANT, "telegram", "@anna") is not None


async def test_a_contact_that_the_person_has_is_added_once(directory: Directory) -> None:
    await directory.users.create(TENANT, User(1))
    for written in ("+79991112233", "8 999 111-22-33"):
        user = await directory.users.add_contact(TENANT, 1, "sms", written)
        assert user.contacts == {"sms": ["+79991112233"]}


async def test_the_seventeenth_address_of_a_channel_is_refused(directory: Directory) -> None:
    await directory.users.create(TENANT, User(1, contacts={"vk": [str(n) for n in range(1, 17)]}))
    assert (await code_of(directory.users.add_contact(TENANT, 1, "vk", "17")))[0] == "LIMIT_REACHED"
    assert (await directory.users.add_contact(TENANT, 1, "vk", "16")).id == 1


async def test_of_fifty_concurrent_creates_with_one_contact_one_wins(directory: Directory) -> None:
    attempts = [directory.users.create(TENANT, User(n, contacts={"sms": ["+79991112233"]})) for n in range(50)]
    results = await asyncio.gather(*attempts, return_exceptions=True)
    codes = Counter(one.code if isinstance(one, Refused) else "created" for one in results)
    assert codes == {"created": 1, "CONTACT_TAKEN": 49}
    assert len((await directory.users.page(TENANT)).items) == 1


async def test_of_fifty_concurrent_creates_with_one_id_one_wins(directory: Directory) -> None:
    attempts = [directory.users.create(TENANT, User(1, name=str(n))) for n in range(50)]
    results = await asyncio.gather(*attempts, return_exceptions=True)
    assert Counter(one.code if isinstance(one, Refused) else "" for one in results) == {"": 1, "USER_EXISTS": 49}


async def test_fifty_concurrent_changes_of_one_person_lose_nothing(directory: Directory) -> None:
    await directory.users.create(TENANT, User(1))
    channels = [f"channel{n % 25}" for n in range(50)]
    await asyncio.gather(
        *(directory.users.add_contact(TENANT, 1, channel, str(n)) for n, channel in enumerate(channels))
    )
    user = await directory.users.find(TENANT, 1)
    assert sum(len(some) for some in user.contacts.values()) == 50


async def test_a_call_that_is_repeated_after_a_lost_reply_returns_the_first_result(store: Store) -> None:
    """The server ran the function, and the connection broke before its reply: the store sends it again."""

    class Twice(Store):
        async def run(self, name: str, shard: int, *arguments: object) -> object:
            await store.run(name, shard, *arguments)  # type: ignore[arg-type]
            return await store.run(name, shard, *arguments)  # type: ignore[arg-type]

    repeating = Twice(store.url)
    repeating.command = store.command  # type: ignore[method-assign]
    twice = Directory(repeating)
    await twice.users.create(TENANT, ANNA)
    await twice.users.update(TENANT, 1, UserChange(name="x", email="b@example.org"))
    await twice.groups.create(TENANT, Group("A"), [1])
    await twice.ownerships.own(TENANT, 1, "group", "A")
    await twice.users.remove_contact(TENANT, 1, "telegram", "100001")
    await twice.users.delete(TENANT, 1)
    await twice.groups.delete(TENANT, "A")
    assert await store.command("KEYS", "directory:*") == []


async def test_a_deleted_person_leaves_nothing_behind(directory: Directory, store: Store) -> None:
    await directory.users.create(TENANT, ANNA)
    await directory.groups.create(TENANT, Group("A"), [1])
    await directory.ownerships.own(TENANT, 1, "group", "A")
    await directory.users.delete(TENANT, "1")
    assert (await directory.groups.members(TENANT, "A")).items == []
    assert await code_of(directory.users.delete(TENANT, 1)) == ("USER_NOT_FOUND", "")
    await directory.groups.delete(TENANT, "A")
    assert await store.command("DBSIZE") == 0


class TestLists:
    @pytest.fixture
    async def people(self, directory: Directory) -> list[str]:
        """25 people; every third is staff, every other one is in the group A."""
        for n in range(25):
            role = "staff" if n % 3 == 0 else "student"
            await directory.users.create(
                TENANT, User(n, email=f"u{n}@example.org", role=role, contacts={"vk": [str(n + 1)]})
            )
        await directory.groups.create(TENANT, Group("A"), list(range(0, 25, 2)))
        return sorted(str(n) for n in range(25))

    @pytest.mark.parametrize("limit", [1, 7, 24, 25, 100])
    async def test_pages_have_everybody_once_in_order(
        self, directory: Directory, people: list[str], limit: int
    ) -> None:
        found, cursor = [], None
        while True:
            page = await directory.users.page(TENANT, cursor=cursor, limit=limit)
            found += [str(one.id) for one in page.items]
            assert len(page.items) == limit or page.next is None
            cursor = page.next
            if cursor is None:
                break
        assert found == people

    @pytest.mark.parametrize("limit", [1, 100])
    async def test_filters_hold_together_over_all_pages(
        self, directory: Directory, people: list[str], limit: int
    ) -> None:
        found, cursor = [], None
        while True:
            page = await directory.users.page(TENANT, group="A", role="staff", cursor=cursor, limit=limit)
            found += [one.id for one in page.items]
            cursor = page.next
            if cursor is None:
                break
        assert sorted(found, key=int) == list(range(0, 25, 6))

    async def test_an_index_finds_one_person_if_all_conditions_are_true(
        self, directory: Directory, people: list[str]
    ) -> None:
        async def ids(**wanted: object) -> list[object]:
            return [one.id for one in (await directory.users.page(TENANT, **wanted)).items]  # type: ignore[arg-type]

        assert await ids(email="U6@example.org", contact=("vk", "7"), group="A", role="staff") == [6]
        assert await ids(email="u6@example.org", contact=("vk", "8")) == []
        assert await ids(email="u6@example.org", role="student") == []
        assert await ids(contact=("vk", "8"), group="A") == []
        assert await ids(group="unknown") == []
        assert await ids(email="none@example.org") == []

    @pytest.mark.parametrize("cursor", ["", "~00", "a~FF"])
    async def test_a_malformed_cursor_is_refused(self, directory: Directory, cursor: str) -> None:
        assert await code_of(directory.users.page(TENANT, cursor=cursor)) == ("CURSOR_MALFORMED", "cursor")


async def test_tenants_see_nothing_of_each_other(directory: Directory, store: Store, server: Server) -> None:
    """Both have objects with the same ids, addresses and names."""
    for tenant in (TENANT, OTHER):
        await directory.users.create(tenant, ANNA)
        await directory.users.create(tenant, User(2, name=tenant))
        await directory.groups.create(tenant, Group("A"), [1, 2])
        await directory.ownerships.own(tenant, 1, "group", "A")
    before = await contents(directory, OTHER)
    await directory.users.update(TENANT, 1, UserChange(name="changed", contacts={}, email=None, role="admin"))
    await directory.users.delete(TENANT, 2)
    await directory.groups.delete(TENANT, "A")
    assert await contents(directory, OTHER) == before
    for attempt in (directory.groups.find(TENANT, "A"), directory.users.find(TENANT, 2)):
        assert (await code_of(attempt))[0] in ("GROUP_NOT_FOUND", "USER_NOT_FOUND")
    found = await directory.users.by_contact(TENANT, "telegram", "100001")
    assert found is None


async def contents(directory: Directory, tenant: str) -> object:
    people = (await directory.users.page(tenant)).items
    return (
        people,
        (await directory.groups.page(tenant)).items,
        (await directory.groups.members(tenant, "A")).items,
        [await directory.ownerships.of(tenant, one.id) for one in people],
        await directory.users.by_contact(tenant, "telegram", "100001"),
    )


@on_both_servers
async def test_guardians_exist_are_listed_with_their_children_and_survive_a_merge(
    directory: Directory, store: Store
) -> None:
    users = directory.users
    for one in (User(7, "Olga"), User(8, "Pavel"), User(9, "Olga P."), User(1, "Ivan", guardians=("9", "8"))):
        await users.create(TENANT, one)
    await users.create(TENANT, User(2, "Vera", guardians=("8",), blocked_guardians=("9",)))
    missing = [
        await code_of(users.create(TENANT, User(3, guardians=("99",)))),
        await code_of(users.update(TENANT, 1, UserChange(blocked_guardians=("99",)))),
        await code_of(users.update(TENANT, 1, UserChange(guardians=("1",)))),
    ]
    assert [code for code, _ in missing] == ["GUARDIAN_NOT_FOUND", "GUARDIAN_NOT_FOUND", "GUARDIAN_SELF"]
    assert (await users.find(TENANT, 2)).informed_guardians == ["8"]
    assert [one.id for one in (await users.page(TENANT, guardian=9)).items] == [1, 2]
    await users.merge(TENANT, 7, 9)
    assert await users.children(TENANT, 7) == ["1", "2"]
    assert [list((await users.find(TENANT, one)).guardians) for one in (1, 2)] == [["7", "8"], ["8"]]
    await users.delete(TENANT, 8)
    await users.merge(TENANT, 1, 2)
    ivan = await users.find(TENANT, 1)
    assert (list(ivan.guardians), list(ivan.blocked_guardians), ivan.informed_guardians) == (["7"], ["7"], [])
    await users.merge(TENANT, 1, 7)
    assert list((await users.find(TENANT, 1)).guardians) == [], "nobody is its own guardian"
    await users.delete(TENANT, 1)
    assert await directory.users.children(TENANT, 7) == []
    left_out = await Queue(store).cancel_by(TaskFilter(tenant=TENANT, tube="answers"))
    assert left_out.cancelled == 2, "what waits for guardians who were blocked is left out"


async def test_people_are_found_by_any_number_of_external_ids(directory: Directory) -> None:
    """Also by more than one read of the index names."""
    for number in range(7):
        await directory.users.create(TENANT, User(number + 1, f"P{number}", external_ids=[f"sis:{number}"]))
    wanted = {f"sis:{number}": f"{number + 1}" for number in range(7)}
    assert await directory.users.own_ids(TENANT, [*wanted, "sis:unknown", 1]) == wanted
