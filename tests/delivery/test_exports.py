"""CSV exports over HTTP: what is exported imports again without changes, and outcomes as rows."""

import csv
import io
from collections.abc import Sequence
from datetime import datetime
from urllib.parse import unquote

import pytest

from core.deliveries.channels import ChannelFacts
from core.directory.csv_cells import FileKind
from core.directory.exporting import EXPORTED
from core.model.people import Group, Supergroup, User
from core.model.states import Reason
from couriers.sending.interface import Rejected
from tests.delivery.conftest import Api, ApiResponse, Couriers, delivery_body
from tests.delivery.test_deliveries import finished
from tests.support.waiting import until

TENANT, OTHER = "default", "other"
PEOPLE = [
    User(1, "=HYPERLINK(1)", "anna@example.org", "trainer", "en", {"sms": ["+79991112233", "+79991112244"]}, ["vk"]),
    User(-5, "Пётр, «Петя»; П.", contacts={"telegram": ["@petr", "-100200300"], "vk": ["-7"]}),
    User("u 2", "'+", contacts={"email": ["+@example.org"]}),
    User("007", "-", guardians=("u 2", "-5"), blocked_guardians=("-5",)),
    User("@x"),
]
GROUPS = [Group("ИВТ-21", "Первая", True), Group("a;b", "-1+1"), Group(22, '"кавычки"')]


@pytest.fixture
async def school(api: Api) -> None:
    """People and groups whose texts a spreadsheet would take for formulas, and CSV for separators."""
    directory = api.services.core.directory
    for user in PEOPLE:
        await directory.users.create(TENANT, user)
    for group in GROUPS:
        await directory.groups.create(TENANT, group, [1, "u 2"] if group.id == "a;b" else [-5])
    await directory.supergroups.create(TENANT, Supergroup("1 курс", "@курс", ["a;b", "ИВТ-21"]))
    for group in GROUPS:
        await directory.ownerships.own(TENANT, 1, "group", group.id)
    await directory.ownerships.own(TENANT, 1, "supergroup", "1 курс")


def rows(exported: ApiResponse, separator: str = ",") -> list[list[str]]:
    assert (exported.status, exported.headers["Content-Type"]) == (200, "text/csv; charset=utf-8; header=present")
    return list(csv.reader(io.StringIO(exported.body.decode("utf-8-sig")), delimiter=separator))


@pytest.mark.parametrize("form", ["", "?excel"])
@pytest.mark.parametrize("kind", EXPORTED)
async def test_an_exported_file_imports_again_without_a_change(
    api: Api, school: None, kind: FileKind, form: str
) -> None:
    exported = await api.call("GET", f"/v1/export/{kind}{form}")
    count = len(rows(exported, ";" if form else ",")) - 1
    assert count > 0
    again = await api.call(
        "POST", f"/v1/import?kind={kind}&dry_run", exported.body, headers={"Content-Type": "text/csv"}
    )
    assert (again.json["created"], again.json["updated"], again.json["unchanged"]) == (0, 0, count), again.json


@pytest.mark.parametrize("form", ["", "?excel=1"])
async def test_an_exported_directory_is_the_same_in_another_tenant(api: Api, school: None, form: str) -> None:
    _, secret = await api.services.api_keys.create("other", ["manage"], OTHER)
    other = api.as_key(secret)
    await api.services.core.channels.register("email", ChannelFacts(1))
    await api.services.core.channels.read()
    for kind in EXPORTED:
        exported = await api.call("GET", f"/v1/export/{kind}{form}")
        made = await other.call("POST", f"/v1/import?kind={kind}", exported.body, headers={"Content-Type": "text/csv"})
        assert made.status == 200, made.json
        assert (await other.call("GET", f"/v1/export/{kind}{form}")).body == exported.body
    directory = api.services.core.directory
    assert (await directory.users.page(OTHER)).items == (await directory.users.page(TENANT)).items
    assert (await directory.groups.page(OTHER)).items == (await directory.groups.page(TENANT)).items


async def test_no_exported_cell_begins_as_a_formula(api: Api, school: None) -> None:
    for kind in EXPORTED:
        cells = [cell for row in rows(await api.call("GET", f"/v1/export/{kind}")) for cell in row]
        assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]
    users = rows(await api.call("GET", "/v1/export/users"))
    assert users[0][-2:] == ["contacts.vk", "guardians"]
    assert [row[8] for row in users if row[0] == "1"] == ["'+79991112233;+79991112244"]


async def test_a_file_for_excel_begins_with_a_byte_order_mark_and_has_semicolons(api: Api, school: None) -> None:
    exported = await api.call("GET", "/v1/export/groups?excel")
    assert exported.body.startswith("\ufeffid;title;virtual\r\n".encode())
    assert exported.headers["Content-Disposition"] == "attachment; filename*=UTF-8''groups.csv"


async def test_more_people_than_one_page_are_exported_each_once(api: Api) -> None:
    text = "id,name\n" + "".join(f"{n},Имя {n}\n" for n in range(1234))
    await api.call("POST", "/v1/import?kind=users", text.encode(), headers={"Content-Type": "text/csv"})
    exported = rows(await api.call("GET", "/v1/export/users"))
    assert {row[0] for row in exported[1:]} == {str(n) for n in range(1234)}
    assert len(exported) == 1235


async def test_an_export_needs_its_scope_and_shows_only_its_tenant(api: Api, school: None) -> None:
    async def call_as(scopes: Sequence[str], tenant: str, path: str) -> ApiResponse:
        _, secret = await api.services.api_keys.create("some", scopes, tenant)
        return await api.as_key(secret).call("GET", path)

    made = await api.call("POST", "/v1/deliveries", delivery_body())
    outcomes = f"/v1/deliveries/{made.json['id']}/recipients.csv"
    assert (await call_as(["read", "send"], TENANT, "/v1/export/users")).status == 403
    assert (await call_as(["manage", "send"], TENANT, outcomes)).status == 403
    assert (await call_as(["read"], TENANT, outcomes)).status == 200
    assert (await call_as(["read"], OTHER, outcomes)).code == "HISTORY_NOT_FOUND"
    assert len(rows(await call_as(["manage"], OTHER, "/v1/export/users"))) == 1
    assert (await api.call("GET", "/v1/export/contacts")).code == "WRONG_VALUE"
    assert (await api.call("GET", "/v1/export/users?excel=2")).code == "WRONG_VALUE"


async def test_the_outcomes_of_a_delivery_are_rows(api: Api, courier: Couriers) -> None:
    await courier("sms")
    people = [{"id": n, "name": f"=Имя {n}", "contacts": {"sms": f"+7999111{n:04}"}} for n in range(1, 1203)]
    body = delivery_body(recipients=[*people, {"id": "x", "contacts": {}}], channels=["sms"])
    made = await api.call("POST", "/v1/deliveries", body)
    path = f"/v1/deliveries/{made.json['id']}"

    async def is_finished() -> bool:
        return bool((await api.call("GET", path)).json["state"] == "finished")

    await until(is_finished)
    header, *found = rows(await api.call("GET", f"{path}/recipients.csv"))
    named = [dict(zip(header, row, strict=True)) for row in found]
    assert {row["recipient"] for row in named} == {"x", *(str(n) for n in range(1, 1203))}
    assert [(row["channel"], row["status"]) for row in named if row["recipient"] == "x"] == [("sms", "no_contact")]
    seventh = next(row for row in named if row["recipient"] == "7")
    assert (seventh["name"], seventh["status"], seventh["attempts"]) == ("'=Имя 7", "sent", "1")
    assert seventh["at"].endswith("Z")


async def test_a_table_for_people_has_one_row_for_each_recipient_in_their_words(api: Api, courier: Couriers) -> None:
    await courier("sms")
    await courier("email", lambda _: Rejected(Reason.BLOCKED))
    people = [
        {"id": 1, "name": "=Анна", "contacts": {"sms": "+79991110001"}, "values": {"mark": 5}},
        {"id": 2, "name": "Борис", "contacts": {"email": "b@example.org"}, "values": {"mark": 4}},
        {"id": 3, "contacts": {}, "values": {"mark": 3}},
    ]
    body = delivery_body(recipients=people, channels=["sms", "email"], text="Оценка: {{mark}}\nза год")
    made = await api.call("POST", "/v1/deliveries", body)
    done = await finished(api, made.headers["Location"])
    exported = await api.call("GET", f"{made.headers['Location']}/recipients.csv?excel&language=ru")
    header, *found = rows(exported, ";")
    assert header == ["Номер", "Человек", "Группы", "Состояние", "SMS", "Почта", "Текст"]
    at = datetime.fromisoformat(done["recipients"][0]["outcomes"]["sms"]["at"])
    by_id = {row[0]: row[1:] for row in found}
    assert by_id["1"] == ["'=Анна", "", "получено", f"отправлено, {at:%d.%m.%Y %H:%M}", "", "Оценка: 5\nза год"]
    assert by_id["2"][2] == "заблокировал бота"
    assert by_id["2"][4].startswith("не доставлено: получатель заблокировал отправителя, ")
    assert by_id["3"] == ["", "", "нет контакта", "", "", "Оценка: 3\nза год"]
    name = unquote(exported.headers["Content-Disposition"].partition("''")[2])
    assert name == f"Оценка: {{{{mark}}}} {at:%d.%m.%Y}.csv"
    english, *_ = rows(await api.call("GET", f"{made.headers['Location']}/recipients.csv?language=en"))
    assert english == ["Number", "Person", "Groups", "State", "SMS", "E-mail", "Text"]
    await api.call("POST", "/v1/users", {"id": 4, "contacts": {"sms": "+79991110004"}})
    await api.call("POST", "/v1/groups", {"id": "g-17", "title": "8 «А»", "members": [4]})
    body = delivery_body(recipients=[{"group": "g-17"}], deliver_at="2030-01-01T00:00:00Z", far=True)
    where = (await api.call("POST", "/v1/deliveries", body)).headers["Location"]
    _, (_, _, groups, *_) = rows(await api.call("GET", f"{where}/recipients.csv?language=en"))
    assert groups == "8 «А»"


@pytest.mark.parametrize(("kind", "columns"), [("users", "ИД,ФИО,Почта,Роль,Язык,Отказ"), ("members", "Группа,ИД")])
async def test_an_export_in_russian_is_imported_again_without_changes(
    api: Api, school: None, kind: str, columns: str
) -> None:
    exported = await api.call("GET", f"/v1/export/{kind}?language=ru")
    header, *found = rows(exported)
    assert ",".join(header).startswith(columns)
    assert kind == "members" or {"преподаватель", "английский"} <= {cell for row in found for cell in row}
    csv_type = {"Content-Type": "text/csv"}
    done = await api.call("POST", f"/v1/import?kind={kind}", exported.body, headers=csv_type)
    assert (done.status, done.json["created"], done.json["updated"]) == (200, 0, 0)


@pytest.mark.parametrize("language", ["ru", "en"])
async def test_each_sample_file_is_imported_as_it_is(api: Api, language: str) -> None:
    for kind in ("groups", "users", "supergroups", "members", "contacts", "ownerships"):
        for number in (201, 202) if kind == "members" else ():
            await api.services.core.directory.users.create(TENANT, User(number))
        sample = await api.call("GET", f"/v1/import/sample?kind={kind}&excel&language={language}")
        body = sample.body.replace(b"+79991112201", b"+79991112209") if kind == "contacts" else sample.body
        done = await api.call("POST", f"/v1/import?kind={kind}", body, headers={"Content-Type": "text/csv"})
        assert done.status == 200, (kind, done.json)
        assert done.json["created"] == len(sample.body.splitlines()) - 1, kind
