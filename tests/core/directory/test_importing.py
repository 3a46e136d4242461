"""CSV import: what a file becomes in the directory, what is refused, and that it is all or nothing."""

import asyncio
import unicodedata
from io import BytesIO

import pytest
from msgspec.structs import replace
from redis.asyncio import Redis

from core.directory import Directory
from core.directory.csv_cells import FileKind
from core.directory.importing import Imported, Importing, ImportRefused, ImportRunning, RowError
from core.directory.importing.journal import ImportLost, Journal
from core.model.people import Group, Ownership, Supergroup, User, UserChange
from core.redis.store import Store
from tests.core.directory.conftest import OTHER, TENANT
from tests.support.servers import Server, on_both_servers
from tests.support.waiting import until

PEOPLE = """\
id,name,email,role,locale,contacts.telegram,contacts.sms,opt_out
1,Анна,Anna@Example.org,trainer,en,100001,8 (999) 111-22-33,vk
u2,"Пётр, ""Петя"" П",,student,,100002;@Petr,,
"""


@pytest.fixture
def importing(store: Store, directory: Directory) -> Importing:
    return Importing(store, directory)


def file_of(text: str | bytes) -> BytesIO:
    return BytesIO(text if isinstance(text, bytes) else text.encode())


async def load(importing: Importing, kind: str, text: str | bytes, *, dry_run: bool = False) -> Imported:
    return await importing.run(TENANT, FileKind(kind), file_of(text), dry_run=dry_run)


async def errors_of(importing: Importing, kind: str, text: str | bytes) -> list[tuple[int, str, str]]:
    """Row, column and code of every error; asserts that a dry run finds the same."""
    found: list[list[RowError]] = []
    for dry_run in (True, False):
        with pytest.raises(ImportRefused) as refused:
            await load(importing, kind, text, dry_run=dry_run)
        assert all(error.message for error in refused.value.errors)
        found.append(list(refused.value.errors))
    assert found[0] == found[1]
    return [(error.row, error.column, error.code) for error in found[0]]


def directory_keys(server: Server) -> list[str]:
    return [key for key in server.all_keys() if key.startswith("directory:")]


# what is imported


@on_both_servers
async def test_people_are_created_and_found_by_all_their_fields(importing: Importing, directory: Directory) -> None:
    assert await load(importing, "users", PEOPLE) == Imported(2, 0)
    anna = User(
        1, "Анна", "anna@example.org", "trainer", "en", {"telegram": ["100001"], "sms": ["+79991112233"]}, ["vk"]
    )
    petr = User("u2", 'Пётр, "Петя" П', None, "student", None, {"telegram": ["100002", "@petr"]})
    assert await directory.users.find(TENANT, 1) == anna
    assert await directory.users.find(TENANT, "u2") == petr
    assert await directory.users.by_email(TENANT, "ANNA@example.org") == anna
    assert await directory.users.by_contact(TENANT, "sms", "+79991112233") == anna
    assert (await directory.users.page(TENANT, role="student")).items == [petr]
    assert (await directory.users.page(OTHER)).items == []


async def test_columns_that_a_file_lacks_stay_and_empty_cells_clear(importing: Importing, directory: Directory) -> None:
    await load(importing, "users", PEOPLE)
    changed = "id,email,contacts.telegram\n1,new@example.org,\n3,three@example.org,100003\n"
    assert await load(importing, "users", changed) == Imported(1, 1)
    anna = await directory.users.find(TENANT, 1)
    assert (anna.name, anna.email, anna.contacts) == ("Анна", "new@example.org", {"sms": ["+79991112233"]})
    assert await directory.users.by_email(TENANT, "anna@example.org") is None
    assert await directory.users.by_contact(TENANT, "telegram", "100001") is None


async def test_a_person_with_new_values_is_no_longer_found_by_the_old_ones(
    importing: Importing, directory: Directory
) -> None:
    await load(importing, "users", PEOPLE)
    changed = "id,email,role,contacts.telegram,contacts.sms\n1,,staff,100001;100009,+79991110000\nu2,p@example.org,,,\n"
    assert await load(importing, "users", changed) == Imported(0, 2)
    by_role = {role: await directory.users.page(TENANT, role=role) for role in ("trainer", "staff", "student")}
    assert {role: [one.id for one in page.items] for role, page in by_role.items()} == {
        "trainer": [],
        "staff": [1],
        "student": [],
    }
    assert await directory.users.by_email(TENANT, "anna@example.org") is None
    found = {address: await directory.users.by_contact(TENANT, "telegram", address) for address in ("100001", "100009")}
    assert [user and user.id for user in found.values()] == [1, 1]
    assert await directory.users.by_contact(TENANT, "telegram", "100002") is None
    assert await directory.users.by_contact(TENANT, "sms", "+79991112233") is None
    assert (await directory.users.by_email(TENANT, "p@example.org")) == await directory.users.find(TENANT, "u2")


async def test_groups_members_supergroups_and_ownerships_are_imported(
    importing: Importing, directory: Directory
) -> None:
    await load(importing, "users", PEOPLE)
    assert await load(importing, "groups", "id,title,virtual\nИВТ-21,Группа,\n22,,да\n") == Imported(2, 0)
    assert await load(importing, "members", "group,user\nИВТ-21,1\nИВТ-21,u2\n22,1\n") == Imported(3, 0)
    assert await load(importing, "supergroups", "id,title,groups\n1 курс,Первый,ИВТ-21; 22\n") == Imported(1, 0)
    owned = "user,kind,id\n1,supergroup,1 курс\n1,group,22\n1,group,ИВТ-21\n"
    assert await load(importing, "ownerships", owned) == Imported(3, 0)
    assert await directory.groups.find(TENANT, 22) == Group(22, None, True)
    assert [user.id for user in (await directory.groups.members(TENANT, "ИВТ-21")).items] == [1, "u2"]
    assert set((await directory.supergroups.find(TENANT, "1 курс")).groups) == {"ИВТ-21", 22}
    assert Ownership(1, "supergroup", "1 курс") in await directory.ownerships.of(TENANT, 1)
    assert await load(importing, "ownerships", owned) == Imported(0, 0, 3)
    assert await load(importing, "members", "group,user\nИВТ-21,1\n") == Imported(0, 0, 1)


async def test_the_groups_of_a_supergroup_are_replaced_as_a_whole(importing: Importing, directory: Directory) -> None:
    await load(importing, "groups", "id\na\nb\nc\n")
    await load(importing, "supergroups", "id,groups\ns,a;b\n")
    assert await load(importing, "supergroups", "id,groups\ns,b;c\n") == Imported(0, 1)
    assert await directory.supergroups.find(TENANT, "s") == Supergroup("s", None, ("b", "c"))
    await load(importing, "supergroups", "id,title\ns,new\n")
    assert await directory.supergroups.find(TENANT, "s") == Supergroup("s", "new", ("b", "c"))


async def test_contacts_are_added_to_those_that_people_have(importing: Importing, directory: Directory) -> None:
    await load(importing, "users", PEOPLE)
    added = "user,channel,address\n1,vk,200001\nu2,sms,9991112244\n1,telegram,100001\n"
    assert await load(importing, "contacts", added) == Imported(2, 0, 1)
    assert (await directory.users.find(TENANT, 1)).contacts["vk"] == ["200001"]
    assert (await directory.users.by_contact(TENANT, "sms", "+79991112244")) == await directory.users.find(TENANT, "u2")


_SHEET = [
    ["ИД", "ФИО", "Телефон", "Роль"],
    ["7", "Ёлкина, Анна", "8 999 111-22-33", "Преподаватель"],
    ["8", "Пётр", "", ""],
]


def sheet(separator: str = ";", *, end: str = "") -> str:
    """A sheet of two people as Excel writes it; `end` stands at the end of each row."""
    rows = (separator.join(f'"{cell}"' if separator in cell else cell for cell in row) for row in _SHEET)
    return "".join(f"{row}{end}\r\n" for row in rows)


@pytest.mark.parametrize(
    "content",
    [
        sheet().encode("cp1251"),
        sheet().encode("utf-8-sig"),
        sheet("\t").encode("utf-16"),
        b"\xfe\xff" + sheet("\t").encode("utf-16-be"),
        f"sep=;\r\n{sheet()}".encode("cp1251"),
        f"sep=,\r\n{sheet(',')}".encode("utf-8-sig"),
        sheet(",").encode(),
        sheet("|").encode(),
        sheet(end=";;").encode(),
        f";;;\r\n{sheet()};;;\r\n;;;\r\n".encode(),
        sheet().replace(";;\r\n", "\r\n").encode(),
        sheet().replace("ИД;ФИО", " ид ; ф.и.о.:").encode(),
        sheet().replace("ФИО;Телефон", "NAME;Contacts.SMS").encode(),
        sheet().replace("\r\n", "\r").encode(),
        sheet().strip().encode("cp1251"),
    ],
)
async def test_a_sheet_is_read_however_a_spreadsheet_saves_it(
    importing: Importing, directory: Directory, content: bytes
) -> None:
    assert await load(importing, "users", content) == Imported(2, 0)
    anna = User(7, "Ёлкина, Анна", None, "trainer", None, {"sms": ["+79991112233"]})
    assert (await directory.users.page(TENANT)).items == [anna, User(8, "Пётр")]


async def test_several_addresses_of_a_cell_stand_on_lines_or_between_semicolons(
    importing: Importing, directory: Directory
) -> None:
    await load(importing, "users", 'id,contacts.telegram\n1,"100001\n100002; ""@anna"""\n')
    assert (await directory.users.find(TENANT, 1)).contacts == {"telegram": ["100001", "100002", "@anna"]}


async def test_ownerships_may_be_written_in_russian(importing: Importing, directory: Directory) -> None:
    await load(importing, "users", PEOPLE)
    await load(importing, "groups", "Группа;Название\nИВТ-21;Первая\n")
    await load(importing, "members", "Группа;Участник\nИВТ-21;u2\n")
    assert await load(importing, "ownerships", "Владелец;Вид;Группа\n1;Группа;ИВТ-21\n") == Imported(1, 0)
    assert await directory.ownerships.of(TENANT, 1) == [Ownership(1, "group", "ИВТ-21")]
    assert [user.id for user in (await directory.groups.members(TENANT, "ИВТ-21")).items] == ["u2"]


async def test_the_non_breaking_spaces_of_a_spreadsheet_are_spaces_in_every_cell(
    importing: Importing, directory: Directory
) -> None:
    text = "id,name,contacts.sms\nu\u00a01,\u00a0Анна\u00a0Каренина,8\u00a0999\u00a0111-22-33\u00a0\n"
    assert await load(importing, "users", text) == Imported(1, 0)
    anna = await directory.users.find(TENANT, "u 1")
    assert (anna.name, anna.contacts) == ("Анна Каренина", {"sms": ["+79991112233"]})
    await load(importing, "groups", "id,title\nИВТ\u00a021,Группа\u00a021\n")
    assert await directory.groups.find(TENANT, "ИВТ 21") == Group("ИВТ 21", "Группа 21")


SECRETARY = """\
Фамилия;Имя;Отчество;Телефон;Почта
Петрова;Анна;;8 (999) 111-22-33;
Иванов;Пётр;Ильич;;Petr@example.org
"""


async def test_people_without_ids_are_known_by_their_addresses_however_often_they_are_imported(
    importing: Importing, directory: Directory
) -> None:
    await load(importing, "users", "id,contacts.sms\n7,+79991112233\n")
    checked = await load(importing, "users", SECRETARY, dry_run=True)
    assert [(one.row, one.created) for one in checked.changes] == [(2, False), (3, True)]
    assert await load(importing, "users", SECRETARY) == Imported(1, 1)
    assert await load(importing, "users", SECRETARY) == Imported(0, 0, 2)
    petr = await directory.users.by_email(TENANT, "petr@example.org")
    assert petr is not None
    assert (petr.id, petr.name) == (checked.changes[1].id, "Иванов Пётр Ильич")
    assert (await directory.users.find(TENANT, 7)).name == "Петрова Анна"
    moved = "Отчество;Имя;contacts.email\nИльич;Пётр;petr@example.org\n"
    assert await load(importing, "users", moved) == Imported(0, 1)
    assert (await directory.users.find(TENANT, petr.id)).name == "Ильич Пётр"
    assert len((await directory.users.page(TENANT)).items) == 2


async def test_an_address_that_once_made_an_id_does_not_overwrite_a_person_who_has_another_now(
    importing: Importing, directory: Directory
) -> None:
    await load(importing, "users", SECRETARY)
    petr = await directory.users.by_email(TENANT, "petr@example.org")
    assert petr is not None
    await directory.users.update(TENANT, petr.id, UserChange(email="new@example.org"))
    assert await errors_of(importing, "users", SECRETARY) == [(3, "id", "PERSON_AMBIGUOUS")]


@pytest.mark.parametrize(
    ("name", "codec", "encoding"),
    [
        ("Ольга Яшина", "koi8-r", "koi8-r"),
        ("Ольга Яшина", "mac-cyrillic", "mac-cyrillic"),
        ("Ольга Яшина", "cp866", "cp866"),
        ("José Muñoz", "latin-1", "windows-1252"),
        ("Ольга Яшина, ИВТ, Олександр Ґудзь, aльфа", "cp1251", ""),
        ("ОЛЬГА", "cp1251", ""),
        ("ШУМ", "cp1251", ""),
        ("ольга яшина", "cp1251", ""),
        ("ИВАНОВ СЕРГЕЙ", "koi8-r", "koi8-r"),
        ("И\u0306од", "utf-8", ""),
    ],
)
async def test_a_named_encoding_is_used_and_windows_1251_is_known_by_its_words(
    importing: Importing, directory: Directory, name: str, codec: str, encoding: str
) -> None:
    content = f'id,name\n1,"{name}"\n\x1a'.encode(codec)
    await importing.run(TENANT, FileKind.USERS, BytesIO(content), encoding=encoding)
    (user,) = await directory.users.lookup(TENANT, [1])
    assert user
    assert user.name == unicodedata.normalize("NFC", name)


@pytest.mark.parametrize("codec", ["koi8-r", "mac-cyrillic", "cp866"])
async def test_the_likely_encoding_is_named(importing: Importing, codec: str) -> None:
    with pytest.raises(ImportRefused) as refused:
        await load(importing, "users", "id,name\n1,Анна Петрова\n".encode(codec))
    assert f"encoding={codec}," in refused.value.errors[0].message


# what is refused


@pytest.mark.parametrize(
    ("text", "errors"),
    [
        ("", [(1, "", "CSV_EMPTY")]),
        ("id,name\n1,Анна\n2,Пётр".encode()[:-1] + b"\n", [(3, "", "CSV_NOT_UTF8")]),
        *(
            ("id,name\n1,Ольга Яшина\n".encode(codec), [(2, "", "CSV_ENCODING_UNCLEAR")])
            for codec in ("cp866", "koi8-r", "mac-cyrillic")
        ),
        ("id,name\n1,ИВАНОВ СЕРГЕЙ\n".encode("koi8-r"), [(2, "", "CSV_ENCODING_UNCLEAR")]),
        ("Фамилия;Имя;Телефон\nПетрова;Анна;+79991112233\n".encode("mac-cyrillic"), [(1, "", "CSV_ENCODING_UNCLEAR")]),
        ("id,name\n1,José Muñoz\n2,Jörg Müller\n".encode("latin-1"), [(2, "", "CSV_ENCODING_UNCLEAR")]),
        ("id,name\n201.0,Анна\n", [(2, "id", "ID_OF_SPREADSHEET")]),
        ("id,name\n1,Анна\n".encode("utf-16")[:-1], [(1, "", "CSV_NOT_UTF8")]),
        ("id,name\n1,Анна\n".encode("utf-16-le"), [(1, "", "CSV_NOT_TEXT")]),
        (b"PK\x03\x04 a workbook", [(1, "", "CSV_NOT_TEXT")]),
        (bytes(1000), [(1, "", "CSV_NOT_TEXT")]),
        ('id,name\n1,ok\n2,"never closed\n3,x\n', [(3, "", "CSV_QUOTE_UNCLOSED")]),
        ('id,name\n1,"closed"too late\n', [(2, "", "CSV_MALFORMED")]),
        ('id,name\n2,"' + "x,\n" * 100_000, [(2, "", "CSV_QUOTE_UNCLOSED")]),
        ("id,name\n2," + "x" * 200_000, [(2, "", "CELL_TOO_LONG")]),
        ("name\nАнна\n", [(1, "id", "PERSON_UNIDENTIFIED")]),
        ("id,nmae\n1,Анна\n", [(1, "nmae", "COLUMN_UNKNOWN")]),
        ("id,name,name\n1,a,b\n", [(1, "name", "COLUMN_REPEATED")]),
        ("id,name\n1,a,b\n2,b\n3", [(2, "", "WRONG_NUMBER_OF_CELLS"), (4, "", "WRONG_NUMBER_OF_CELLS")]),
        ("id;name;;\n1;a;;b\n", [(2, "", "COLUMN_WITHOUT_NAME")]),
        ("sep=;\nИД;ФИО;Почта\n1;Анна;nonsense\n", [(2, "Почта", "EMAIL_MALFORMED")]),
        ("Имя;ФИО\nАнна;Анна\n", [(1, "name", "COLUMN_REPEATED"), (1, "id", "PERSON_UNIDENTIFIED")]),
        ("id;Имя;ФИО;Фамилия\n1;Анна;Анна;П\n", [(1, "name", "COLUMN_REPEATED")]),
        ("id,name\n,Анна\n", [(2, "id", "PERSON_UNIDENTIFIED")]),
        ("ФИО;Телефон\nАнна;\n", [(2, "id", "PERSON_UNIDENTIFIED")]),
        ("ФИО;Телефон\nАнна;123\n", [(2, "Телефон", "ADDRESS_MALFORMED")]),
        ("Телефон;Почта\n89991112233;a@b.ru\n;a@b.ru\n", [(3, "id", "DUPLICATE_ROW")]),
        ("Телефон;VK\n89991112233;5\n;5\n", [(3, "VK", "CONTACT_TAKEN")]),
        (f"id;Фамилия;Имя\n1;{'П' * 200};{'А' * 60}\n", [(2, "Фамилия, Имя", "TOO_LONG")]),
        ("id\n1\n2\n1\n", [(4, "id", "DUPLICATE_ROW")]),
        ("id,name\n1,a\0b\n", [(2, "name", "NOT_PRINTABLE")]),
        ("id,role\n1,dean\n", [(2, "role", "UNKNOWN_ROLE")]),
        ("id,locale\n1,fr\n", [(2, "locale", "UNKNOWN_LOCALE")]),
        ('id,email\n1,"a@example.org\nBcc: b@example.org"\n', [(2, "email", "EMAIL_MALFORMED")]),
        ('id,email\n1,"a@example.org\n"\n', [(2, "email", "EMAIL_MALFORMED")]),
        ("id,email\n1,a@example.org\n2,A@example.org\n", [(3, "email", "EMAIL_TAKEN")]),
        ("id,contacts.sms\n1,+79991112233\n2,8 999 111 22 33\n", [(3, "contacts.sms", "CONTACT_TAKEN")]),
        (
            "id;contacts.sms\n1;7,9991E+10\n2;79991112208.0\n",
            [(row, "contacts.sms", "ADDRESS_MALFORMED") for row in (2, 3)],
        ),
        (
            "id,contacts.sms\n1,+79991112233;123\n2,abc\n",
            [(row, "contacts.sms", "ADDRESS_MALFORMED") for row in (2, 3)],
        ),
        ("id,contacts.sms\n1,+79991112233 +79991112244\n", [(2, "contacts.sms", "ADDRESS_MALFORMED")]),
        ("id,contacts.telegram\n1,100001.0\n", [(2, "contacts.telegram", "ADDRESS_MALFORMED")]),
        (
            "id,contacts.email,email\n1,nonsense,nonsense\n",
            [(2, "email", "EMAIL_MALFORMED"), (2, "contacts.email", "ADDRESS_MALFORMED")],
        ),
    ],
)
async def test_each_mistake_in_a_file_has_its_own_code_and_place(
    importing: Importing, server: Server, text: str | bytes, errors: list[tuple[int, str, str]]
) -> None:
    assert await errors_of(importing, "users", text) == errors
    assert directory_keys(server) == []


@pytest.mark.parametrize(
    ("kind", "text", "errors"),
    [
        ("users", "id,email\n9,anna@example.org\n", [(2, "email", "EMAIL_TAKEN")]),
        ("users", "ФИО;Телефон;email\nА;+7 999 111-22-33;\nА;;anna@example.org\n", [(3, "id", "DUPLICATE_ROW")]),
        ("users", "telegram;phone\n100002;89991112233\n", [(2, "id", "PERSON_AMBIGUOUS")]),
        ("users", "id,contacts.telegram\n9,100001\n", [(2, "contacts.telegram", "CONTACT_TAKEN")]),
        ("contacts", "user,channel,address\nu2,telegram,100001\n", [(2, "address", "CONTACT_TAKEN")]),
        ("contacts", "user,channel,address\n9,vk,1\n", [(2, "user", "USER_NOT_FOUND")]),
        ("contacts", "user,channel,address\n1,v:k,1\n", [(2, "channel", "UNKNOWN_CHANNEL")]),
        ("contacts", "user,channel,address\n1,vk,5\nu2,vk,5\n", [(3, "address", "CONTACT_TAKEN")]),
        ("contacts", "user,channel,address\n1,sms,9998887766\n1,sms,+79998887766\n", [(3, "address", "DUPLICATE_ROW")]),
        ("contacts", "user,channel,address\n1,vk,5\n1,sms,79991112208.0\n", [(3, "address", "ADDRESS_MALFORMED")]),
        ("contacts", "user,channel,address\n1,sms,123\n1,sms,abc\n1,sms,+79991112244\n",
         [(2, "address", "ADDRESS_MALFORMED"), (3, "address", "ADDRESS_MALFORMED")]),
        ("groups", "id,virtual\na,maybe\n", [(2, "virtual", "WRONG_VALUE")]),
        ("members", "group,user\ng,9\nh,1\n", [(2, "user", "USER_NOT_FOUND"), (3, "group", "GROUP_NOT_FOUND")]),
        ("members", "group,user\ng,1\ng,1\n", [(3, "user", "DUPLICATE_ROW")]),
        ("supergroups", "id,groups\ns,g;h\n", [(2, "groups", "GROUP_NOT_FOUND")]),
        ("ownerships", "user,kind,id\n1,team,g\n", [(2, "kind", "WRONG_VALUE")]),
        ("ownerships", "user,kind,id\n1,group,h\n", [(2, "id", "GROUP_NOT_FOUND")]),
        ("ownerships", "user,kind,id\n9,supergroup,s\n",
         [(2, "user", "USER_NOT_FOUND"), (2, "id", "SUPERGROUP_NOT_FOUND")]),
        ("ownerships", "user,kind,id\n1,supergroup,whole\n", [(2, "id", "GROUP_NOT_OWNED")]),
        ("supergroups", "id,groups\nowned,g\n", [(2, "groups", "GROUP_NOT_OWNED")]),
    ],
)  # fmt: skip
async def test_what_contradicts_the_directory_is_refused_and_nothing_is_written(
    importing: Importing, directory: Directory, server: Server, kind: str, text: str, errors: list[tuple[int, str, str]]
) -> None:
    await load(importing, "users", PEOPLE)
    await load(importing, "groups", "id\ng\nother\n")
    await load(importing, "supergroups", "id,groups\nwhole,g\nowned,\n")
    await directory.ownerships.own(TENANT, "u2", "supergroup", "owned")
    before = await contents(server)
    assert await errors_of(importing, kind, text) == errors
    assert await contents(server) == before


async def contents(server: Server) -> dict[str, bytes]:
    """Every key of the directory with its value."""
    async with Redis.from_url(server.url) as client:
        found = {key: await client.dump(key) for key in directory_keys(server)}
    return {key: value for key, value in found.items() if ":imported:" not in key and value is not None}


async def test_all_errors_are_reported_at_once_the_first_hundred_by_row(importing: Importing) -> None:
    rows = "".join(f"{n},{'x' if n % 2 else 'dean'},{'' if n % 3 else 'no mail'}\n" for n in range(200))
    with pytest.raises(ImportRefused, match="267 errors") as refused:
        await load(importing, "users", f"id,role,email\n{rows}")
    errors = refused.value.errors
    assert len(errors) == 100
    assert [error.row for error in errors] == sorted(error.row for error in errors)
    assert {(error.row, error.column) for error in errors[:3]} == {(2, "role"), (2, "email"), (3, "role")}


async def test_a_dry_run_reports_what_would_be_done_and_writes_nothing(importing: Importing, server: Server) -> None:
    checked = await load(importing, "users", PEOPLE, dry_run=True)
    assert (checked.created, checked.updated, [change.id for change in checked.changes]) == (2, 0, ["1", "u2"])
    assert directory_keys(server) == []


SCHOOL = {
    "users": PEOPLE,
    "groups": "id,title\ng,Группа\nh,\n",
    "members": "group,user\ng,1\n",
    "supergroups": "id,title,groups\ns,Курс,g\n",
    "ownerships": "user,kind,id\n1,group,g\n",
}


@pytest.mark.parametrize(
    ("kind", "text", "changes"),
    [
        ("users", PEOPLE, []),
        ("users", "id,role,contacts.telegram\n1,,100001;100009\nu2,student,100002;@petr\n",
         [("1", False, [("role", "trainer", ""), ("contacts.telegram", "100001", "100001;100009")])]),
        ("users", "id,opt_out,groups\n1,,g;h\n", [("1", False, [("opt_out", "vk", ""), ("groups", "", "h")])]),
        ("users", "ИД;Группа\n5;h\n", [("5", True, [("groups", "", "h")])]),
        ("contacts", "user,channel,address\n1,telegram,100001\n1,telegram,@anna\n",
         [("1", False, [("contacts.telegram", "100001", "100001;@anna")])]),
        ("groups", "id,title,virtual\ng,,да\nh,,\n",
         [("g", False, [("title", "Группа", ""), ("virtual", "false", "true")])]),
        ("members", "group,user\ng,1\ng,u2\n", [("g", False, [("user", "", "u2")])]),
        ("supergroups", "id,groups\ns,h\n", [("s", False, [("groups", "g", "h")])]),
        ("ownerships", "user,kind,id\n1,group,h\n1,group,g\n", [("1", False, [("group", "", "h")])]),
    ],
)  # fmt: skip
async def test_a_dry_run_shows_the_old_and_the_new_value_of_each_field_that_changes(
    importing: Importing, kind: str, text: str, changes: list[tuple[str, bool, list[tuple[str, str, str]]]]
) -> None:
    for school_kind, content in SCHOOL.items():
        await load(importing, school_kind, content)
    checked = await load(importing, kind, text, dry_run=True)
    found = [
        (one.id, one.created, [(each.field, each.old, each.new) for each in one.fields]) for one in checked.changes
    ]
    assert found == changes
    assert len(found) == checked.created + checked.updated
    assert await load(importing, kind, text) == replace(checked, changes=())
    assert (await load(importing, kind, text, dry_run=True)).changes == []


async def test_people_are_imported_with_their_groups(importing: Importing, directory: Directory) -> None:
    await load(importing, "groups", "id\ng\nh\n")
    assert await load(importing, "users", 'ИД;ФИО;Группа\n1;Анна;g;\n2;Пётр;"g; h"\n') == Imported(2, 0)
    members = {group: [one.id for one in (await directory.groups.members(TENANT, group)).items] for group in ("g", "h")}
    assert members == {"g": [1, 2], "h": [2]}
    assert await errors_of(importing, "users", "ИД;Группа\n1;h\n2;i\n") == [(3, "Группа", "GROUP_NOT_FOUND")]


async def test_children_are_imported_with_guardians_that_stand_behind_them(
    importing: Importing, directory: Directory
) -> None:
    await load(importing, "users", 'id;Родители;blocked_guardians\n1;"7; 8";8\n7;;\n8;;\n')
    assert [(await directory.users.find(TENANT, 1)).informed_guardians, await directory.users.children(TENANT, 8)] == [
        ["7"],
        ["1"],
    ]
    await load(importing, "users", "id,blocked_guardians\n1,\n")
    await load(importing, "users", "id,guardians\n1,7\n")
    assert await directory.users.children(TENANT, 8) == []
    errors = await errors_of(importing, "users", "id,guardians\n1,9\n2,2\n")
    assert errors == [(2, "guardians", "USER_NOT_FOUND"), (3, "guardians", "GUARDIAN_SELF")]


# all or nothing


def people(count: int) -> str:
    rows = (f"{n},Имя {n},p{n}@example.org,student,{100_000 + n}\n" for n in range(count))
    return "id,name,email,role,contacts.telegram\n" + "".join(rows)


async def test_until_the_end_of_an_import_every_other_write_is_refused(
    store: Store, importing: Importing, directory: Directory
) -> None:
    await load(importing, "users", PEOPLE)
    await load(importing, "groups", "id\ng\n")
    other = Journal(store, TENANT)
    await other.begin("users", 1)
    attempts = [
        directory.users.create(TENANT, User(5)),
        directory.users.update(TENANT, 1, UserChange(name="B")),
        directory.users.delete(TENANT, 1),
        directory.groups.create(TENANT, Group("h")),
        directory.groups.delete(TENANT, "g"),
        directory.groups.add_member(TENANT, "g", 1),
        directory.ownerships.own(TENANT, 1, "group", "g"),
        directory.supergroups.create(TENANT, Supergroup("s")),
        load(importing, "users", PEOPLE),
    ]
    for attempt in attempts:
        with pytest.raises(ImportRunning):
            await attempt
    await directory.users.create(OTHER, User(5))
    await other.abort()
    await directory.users.create(TENANT, User(5))


async def test_twenty_imports_at_once_are_done_one_at_a_time(store: Store, directory: Directory) -> None:
    importers = [Importing(store, directory) for _ in range(20)]
    results = await asyncio.gather(*(load(one, "users", people(600)) for one in importers), return_exceptions=True)
    done = [one for one in results if isinstance(one, Imported)]
    assert Imported(600, 0) in done
    assert all(one == Imported(0, 0, 600) for one in done if one != Imported(600, 0))
    assert all(isinstance(one, Imported | ImportRunning) for one in results)


async def test_an_import_whose_process_ends_before_the_commit_leaves_nothing(
    store: Store, importing: Importing, directory: Directory, server: Server
) -> None:
    gone = Journal(store, TENANT)
    await gone.begin("users", 2)
    await gone.add([("user", "1", '{"id":1,"version":"x"}')], 1)
    await store.redis.pexpire(store.tenant_key("import", TENANT), 1)
    await store.redis.pexpire(store.tenant_key("importpages", TENANT), 1)
    await until(lambda: not [key for key in server.all_keys() if ":import:" in key or ":importpages:" in key])
    assert await importing.recover() == 1
    assert directory_keys(server) == []
    with pytest.raises(ImportLost):
        await gone.commit()


async def test_a_committed_import_is_completed_by_another_process(
    store: Store, importing: Importing, directory: Directory
) -> None:
    gone = Journal(store, TENANT)
    await gone.begin("groups", 3)
    for name in ("a", "b", "c"):
        await gone.add([("group", name, f'{{"id":"{name}","version":"x"}}')], 1)
    await gone.commit()
    await store.run_for_tenant("write_import", TENANT, 0)  # its first page, then the process ends
    assert [group.id for group in (await directory.groups.page(TENANT)).items] == ["a"]
    assert await importing.recover() == 0  # it may still be at work
    store.clock_offset_ms = 60_000
    assert await importing.recover() == 1
    assert [group.id for group in (await directory.groups.page(TENANT)).items] == ["a", "b", "c"]
    assert await load(importing, "groups", "id\nd\n") == Imported(1, 0)


async def test_the_next_import_completes_the_one_before(
    store: Store, importing: Importing, directory: Directory
) -> None:
    gone = Journal(store, TENANT)
    await gone.begin("groups", 1)
    await gone.add([("group", "a", '{"id":"a","version":"x"}')], 1)
    await gone.commit()
    store.clock_offset_ms = 60_000
    assert await load(importing, "members", "group,user\n") == Imported(0, 0)
    assert (await directory.groups.find(TENANT, "a")).id == "a"


async def test_the_progress_of_an_import_can_be_read(store: Store, importing: Importing) -> None:
    assert (await importing.progress(TENANT)).state == "idle"
    journal = Journal(store, TENANT)
    await journal.begin("users", 40)
    await journal.add([("group", "a", '{"id":"a","version":"x"}')], 20)
    await journal.add([("group", "b", '{"id":"b","version":"x"}')], 40)
    found = await importing.progress(TENANT)
    assert (found.state, found.kind, found.rows, found.done) == ("checking", "users", 40, 40)
    await journal.commit()
    await store.run_for_tenant("write_import", TENANT, 0)
    found = await importing.progress(TENANT)
    assert (found.state, found.rows, found.done) == ("writing", 40, 20)
    await importing.recover()
    await store.run_for_tenant("write_import", TENANT, 0)


async def test_a_person_who_would_own_too_much_is_reported_at_the_last_row(
    importing: Importing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.directory.importing.relations.RELATIONS", 2)
    await load(importing, "users", PEOPLE)
    await load(importing, "groups", "id\na\nb\nc\n")
    assert await load(importing, "ownerships", "user,kind,id\n1,group,a\n") == Imported(1, 0)
    too_many = "user,kind,id\n1,group,a\n1,group,b\n1,group,c\n"
    assert await errors_of(importing, "ownerships", too_many) == [(4, "user", "LIMIT_REACHED")]
    assert await load(importing, "ownerships", "user,kind,id\n1,group,b\n") == Imported(1, 0)


async def test_a_group_in_as_many_supergroups_as_allowed_may_be_imported_with_them_again(
    importing: Importing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.directory.importing.relations.RELATIONS", 2)
    await load(importing, "groups", "id\na\n")
    full = "id,groups\ns1,a\ns2,a\n"
    assert await load(importing, "supergroups", full) == Imported(2, 0)
    assert await load(importing, "supergroups", full) == Imported(0, 0, 2)
    assert await errors_of(importing, "supergroups", "id,groups\ns3,a\n") == [(2, "groups", "LIMIT_REACHED")]
