"""CSV import over HTTP: the body as a stream, errors by row and column, limits, repeats, progress."""

import gzip
import io
from dataclasses import replace

import pytest
from openpyxl import Workbook

from cli.commands.directory.csv_files import format_import
from core.deliveries.channels import ChannelFacts
from core.directory.importing.journal import Journal
from delivery.http.options import Options
from tests.delivery.conftest import Api, ApiResponse
from tests.support.servers import several_shards

__all__ = ["several_shards"]

CSV = "id,name,email\n1,Анна,anna@example.org\n2,Пётр,\n"
TENANT = "default"
DONE = {"created": 2, "updated": 0, "unchanged": 0, "dry_run": False, "changes": [], "more_changes": 0}
ANNA = {
    "row": 2,
    "id": "1",
    "created": True,
    "fields": [
        {"field": "name", "old": "", "new": "Анна"},
        {"field": "email", "old": "", "new": "anna@example.org"},
    ],
}
PETR = {"row": 3, "id": "2", "created": True, "fields": [{"field": "name", "old": "", "new": "Пётр"}]}


async def post(api: Api, kind: str, text: str | bytes, query: str = "", **headers: str) -> ApiResponse:
    body = text if isinstance(text, bytes) else text.encode()
    headers = {"Content-Type": "text/csv; charset=utf-8"} | {
        name.replace("_", "-"): one for name, one in headers.items()
    }
    return await api.call("POST", f"/v1/import?kind={kind}{query}", body, headers=headers)


async def test_a_file_is_imported_and_its_people_are_found(api: Api) -> None:
    made = await post(api, "users", CSV)
    assert (made.status, made.json) == (200, DONE)
    found = await api.call("GET", "/v1/users?email=anna@example.org")
    assert [user["name"] for user in found.json["users"]] == ["Анна"]


@pytest.mark.parametrize("query", ["&dry_run", "&dry_run=1", "&dry_run=true"])
async def test_a_dry_run_writes_nothing(api: Api, query: str) -> None:
    made = await post(api, "users", CSV, query)
    assert (made.status, made.json) == (200, {**DONE, "dry_run": True, "changes": [ANNA, PETR]})
    assert (await api.call("GET", "/v1/users")).json["users"] == []


async def test_a_dry_run_shows_for_each_person_what_would_change(api: Api) -> None:
    await post(api, "users", CSV)
    changed = await post(api, "users", "id;ФИО;почта\n1;Анна;new@example.org\n2;;\n3;Вера;\n", "&dry_run")
    assert {name: changed.json[name] for name in ("created", "updated", "unchanged")} == {
        "created": 1,
        "updated": 2,
        "unchanged": 0,
    }
    rows = {one["row"]: (one["id"], one["created"], one["fields"]) for one in changed.json["changes"]}
    assert rows[2] == ("1", False, [{"field": "email", "old": "anna@example.org", "new": "new@example.org"}])
    assert rows[3] == ("2", False, [{"field": "name", "old": "Пётр", "new": ""}])
    assert rows[4][:2] == ("3", True)


async def test_who_has_an_address_to_sign_in_and_none_for_messages_is_counted_and_gets_one_if_wanted(api: Api) -> None:
    await api.services.core.channels.register("email", ChannelFacts(100))
    await api.call("POST", "/v1/users", {"id": 3, "email": "vera@example.org", "opt_out": ["email"]})
    rows = [CSV, "3,Вера,vera@example.org\n", "4,Глеб,gleb@example.org\n"]
    checked = (await post(api, "users", "".join(rows), "&dry_run")).json
    assert checked["not_mailed"] == 2, "Vera wants no mails"
    assert "2 people have an address to sign in (email) but none to be written to" in format_import(checked)
    assert (await post(api, "users", CSV)).json["not_mailed"] == 1
    with_contacts = (await post(api, "users", "".join(rows), "&dry_run&mail_contact")).json
    assert "not_mailed" not in with_contacts
    assert "contacts.email: (none) → anna@example.org" in format_import(with_contacts)
    assert (await post(api, "users", "".join(rows), "&mail_contact=1")).json["updated"] == 2
    people = (await api.call("GET", "/v1/users")).json["users"]
    found = {one["id"]: one["contacts"].get("email") for one in people}
    assert found == {1: ["anna@example.org"], 2: None, 3: None, 4: ["gleb@example.org"]}
    await post(api, "users", "id,contacts.email\n2,anna.p@example.org\n")
    other = "id,email\n2,petr@example.org\n5,anna.p@example.org\n"
    refused = await post(api, "users", other, "&mail_contact")
    errors = {(one["row"], one["column"], one["code"]) for one in refused.json["errors"]}
    assert errors == {(3, "contacts.email", "CONTACT_TAKEN")}
    assert (await post(api, "groups", "id\n1\n", "&mail_contact")).code == "MAIL_CONTACT_NOT_ALLOWED"


async def test_a_dry_run_of_a_large_file_shows_the_first_hundred_changes(api: Api) -> None:
    found = await post(api, "users", "id\n" + "".join(f"{n}\n" for n in range(250)), "&dry_run")
    assert (len(found.json["changes"]), found.json["more_changes"]) == (100, 150)


async def test_errors_name_row_column_and_code_and_nothing_is_written(api: Api) -> None:
    refused = await post(api, "users", "id,email,contacts.pigeon\n1,a@example.org,y\n2,nonsense,x\n")
    assert (refused.status, refused.code) == (422, "ROWS_INVALID")
    assert [(one["row"], one["column"], one["code"]) for one in refused.json["errors"]] == [
        (2, "contacts.pigeon", "UNKNOWN_CHANNEL"),
        (3, "email", "EMAIL_MALFORMED"),
        (3, "contacts.pigeon", "UNKNOWN_CHANNEL"),
    ]
    assert all(one["message"] for one in refused.json["errors"])
    assert (await api.call("GET", "/v1/users")).json["users"] == []


async def test_a_packed_file_is_unpacked(api: Api) -> None:
    assert (await post(api, "users", gzip.compress(CSV.encode()), Content_Encoding="gzip")).json["created"] == 2


@pytest.mark.parametrize(
    ("query", "kind", "status", "code"),
    [("", "application/json", 415, "CONTENT_TYPE_UNSUPPORTED"), ("&nonsense=1", "text/csv", 400, "UNKNOWN_PARAMETER")],
)
async def test_a_request_that_makes_no_sense_is_refused(
    api: Api, query: str, kind: str, status: int, code: str
) -> None:
    refused = await post(api, "users", CSV, query, Content_Type=kind)
    assert (refused.status, refused.code) == (status, code)


async def test_a_file_that_is_not_in_the_named_encoding_is_refused(api: Api) -> None:
    """Regression: UTF-16 without a byte order mark was an internal error, found by a generator of valid requests."""
    refused = await post(api, "users", "id,name".encode("utf-16-le") + b"\n\0", "&encoding=utf-16")
    assert (refused.status, refused.json["errors"][0]["code"]) == (422, "CSV_NOT_UTF8")


async def test_the_kind_of_the_rows_must_be_given(api: Api) -> None:
    refused = await api.call("POST", "/v1/import", CSV.encode(), headers={"Content-Type": "text/csv"})
    assert (refused.status, refused.code) == (400, "REQUIRED")
    assert (await post(api, "people", CSV)).code == "WRONG_VALUE"


async def test_a_repeat_returns_the_first_response(api: Api) -> None:
    first = await post(api, "users", CSV, Idempotency_Key="k")
    again = await post(api, "users", CSV, Idempotency_Key="k")
    assert again.json == first.json
    assert again.headers["Idempotency-Replayed"] == "true"
    other = await post(api, "users", CSV + "3,,\n", Idempotency_Key="k")
    assert (other.status, other.code) == (422, "IDEMPOTENCY_KEY_REUSED")


async def test_during_an_import_other_writes_are_refused_for_a_few_seconds(api: Api) -> None:
    other = Journal(api.store, TENANT)
    await other.begin("users", 100)
    for refused in (await post(api, "users", CSV), await api.call("POST", "/v1/users", {"id": 5})):
        assert (refused.status, refused.code) == (409, "IMPORT_RUNNING")
        assert refused.headers["Retry-After"] == "5"
    running = await api.call("GET", "/v1/import")
    assert running.json == {"state": "checking", "kind": "users", "rows": 100, "done": 0}
    await other.abort()
    assert (await api.call("GET", "/v1/import")).json["state"] == "idle"
    assert (await api.call("POST", "/v1/users", {"id": 5})).status == 201


class TestSmallLimit:
    @pytest.fixture
    def options(self) -> Options:
        return replace(Options(), import_limit=1000)

    async def test_a_file_above_the_limit_is_refused(self, api: Api) -> None:
        rows = "".join(f"{n},\n" for n in range(1000))
        refused = await post(api, "users", f"id,name\n{rows}")
        assert (refused.status, refused.code) == (413, "BODY_TOO_LARGE")
        packed = await post(api, "users", gzip.compress(f"id,name\n{rows}".encode()), Content_Encoding="gzip")
        assert (packed.status, packed.code) == (413, "BODY_TOO_LARGE")
        assert (await api.call("GET", "/v1/users")).json["users"] == []


async def test_a_hundred_megabytes_are_refused_before_they_are_sent(api: Api) -> None:
    announced = {"Content-Length": str(100 * 2**20), "Expect": "100-continue", "Content-Type": "text/csv"}
    headers = {"Authorization": f"Bearer {api.secret}", **announced}
    async with api.session.post(f"{api.url}/v1/import?kind=users", headers=headers) as response:
        assert response.status == 413


def workbook(*sheets: tuple[str, list[list[object]]]) -> bytes:
    """An .xlsx file with these sheets: title and rows."""
    book, file = Workbook(), io.BytesIO()
    book.remove(book.worksheets[0])
    for title, rows in sheets:
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    book.save(file)
    return file.getvalue()


PEOPLE: list[list[object]] = [["ФИО", "Телефон", "Класс"], ["Анна; Ли", 79161234567, "8А"], [], ["Борис", "нет", "8А"]]


async def test_a_workbook_is_imported_as_its_table_and_an_error_has_the_row_and_the_value(api: Api) -> None:
    refused = await post(api, "users", workbook(("Лист1", PEOPLE)))
    found = {(one["row"], one["column"], one["code"], one["value"]) for one in refused.json["errors"]}
    assert (4, "Телефон", "ADDRESS_MALFORMED", "нет") in found
    unknown = await post(api, "users", workbook(("Лист1", PEOPLE[:2])))
    assert [(one["code"], one["value"]) for one in unknown.json["errors"]] == [("GROUP_NOT_FOUND", "8А")]
    await api.call("POST", "/v1/groups", {"id": "8А"})
    made = await post(api, "users", workbook(("Лист1", PEOPLE[:2]), ("Пустой", [])))
    assert (made.status, made.json["created"]) == (200, 1)
    (anna,) = (await api.call("GET", "/v1/groups/8А/members")).json["users"]
    assert (anna["name"], anna["contacts"]) == ("Анна; Ли", {"sms": ["+79161234567"]})


async def test_of_several_sheets_one_is_named_and_a_broken_workbook_is_refused(api: Api) -> None:
    body = workbook(("Дети", [["ид", "имя"], [1, "Анна"]]), ("Прочее", [["ид", "имя"], [2, "Борис"]]))
    unclear = (await post(api, "users", body)).json["errors"][0]
    assert (unclear["code"], unclear["value"]) == ("SHEET_UNCLEAR", "Дети\nПрочее")
    assert (await post(api, "users", body, "&sheet=Прочее")).json["created"] == 1
    assert (await api.call("GET", "/v1/users/2")).json["name"] == "Борис"
    assert (await post(api, "users", b"PK\x03\x04 nothing")).json["errors"][0]["code"] == "WORKBOOK_UNREADABLE"


OWN_HEADINGS = "Ребёнок;Mobile;Примечание\nАнна;+79990000001;\nПётр;нет;болеет\n"


async def test_the_columns_of_a_school_are_guessed_and_chosen(api: Api) -> None:
    found = await api.call(
        "POST", "/v1/import/columns?kind=users", OWN_HEADINGS.encode(), headers={"Content-Type": "text/csv"}
    )
    assert found.json["columns"] == [
        {"heading": "Ребёнок", "column": None, "value": "Анна"},
        {"heading": "Mobile", "column": "contacts.sms", "value": "+79990000001"},
        {"heading": "Примечание", "column": None, "value": ""},
    ]
    assert {"name", "email", "contacts.sms"} <= set(found.json["names"])
    empty = await api.call("POST", "/v1/import/columns?kind=users", b" \n", headers={"Content-Type": "text/csv"})
    assert [one["code"] for one in empty.json["errors"]] == ["CSV_EMPTY"]
    refused = await post(api, "users", OWN_HEADINGS)
    assert [one["code"] for one in refused.json["errors"]] == ["COLUMN_UNKNOWN", "COLUMN_UNKNOWN"]
    assert ["The columns are" in one["message"] for one in refused.json["errors"]] == [True, False]
    chosen = await post(api, "users", OWN_HEADINGS.replace("нет", "+79990000002"), "&columns=name,contacts.sms,-")
    assert (chosen.status, chosen.json["created"]) == (200, 2)
    corrected = "Ребёнок;Mobile;Примечание;Error\nПётр;+79990000003;болеет;It was wrong\n"
    again = await post(api, "users", corrected, "&columns=name,contacts.sms,-")
    assert (again.status, again.json["created"]) == (200, 1)
    other = await post(api, "users", OWN_HEADINGS, "&columns=name,contacts.sms")
    assert [one["code"] for one in other.json["errors"]] == ["COLUMNS_OF_ANOTHER_FILE"]


async def test_the_right_rows_are_imported_and_the_wrong_ones_are_returned_as_they_are(api: Api) -> None:
    """A row is right without a wrong one beside it, such as the second person with an address."""
    rows = ["ИД;Почта", "1;nonsense", "2;b@example.org;c", "3;a@example.org", "3;d@example.org", "4;4@example.org"]
    query = "&wrong_rows=leave_out"
    checked = await post(api, "users", "\n".join(rows), f"{query}&dry_run")
    assert (checked.json["header"], checked.json["created"]) == (["ИД", "Почта"], 2)
    assert [(one["row"], one["cells"]) for one in checked.json["wrong"]] == [
        (2, ["1", "nonsense"]),
        (3, ["2", "b@example.org", "c"]),
        (5, ["3", "d@example.org"]),
    ]
    assert (await api.call("GET", "/v1/users")).json["users"] == []
    done = await post(api, "users", "\n".join(rows), query)
    assert (done.json["created"], len(done.json["wrong"])) == (2, 3)
    assert [user["id"] for user in (await api.call("GET", "/v1/users")).json["users"]] == [3, 4]
    corrected = await post(api, "users", "ИД;Почта;Ошибка\n1;1@example.org;Такого адреса не бывает\n", query)
    assert (corrected.json["created"], corrected.json["wrong"]) == (1, [])


async def test_more_than_a_thousand_wrong_rows_are_refused(api: Api) -> None:
    text = "id,email\n1,a@example.org\n" + "".join(f"{n + 2},wrong\n" for n in range(1001))
    refused = await post(api, "users", text, "&wrong_rows=leave_out")
    assert (refused.status, refused.code, len(refused.json["errors"])) == (422, "ROWS_INVALID", 100)
    assert (await api.call("GET", "/v1/users")).json["users"] == []
