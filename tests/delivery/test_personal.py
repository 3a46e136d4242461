"""Personal texts over HTTP: what is given with the recipients, what is refused, the preview, the history, bulk."""

import json
from pathlib import Path
from typing import Any

import pytest

from cli.commands.messages.deliveries import unfilled_marks
from core.deliveries.channels import ChannelFacts
from core.model.content import Display, Limits
from couriers.email.courier import Email
from couriers.sending.shown import display_of
from tests.delivery.conftest import Api, Couriers
from tests.delivery.test_deliveries import finished
from tests.delivery.test_directory_commands import Ada, ada

__all__ = ["ada"]

SMS = Display(as_text=display_of(object.__new__(Email)).as_text, limits=Limits(in_sms=True))
TEXT = "{{first_name|Friend}}, your mark is {{Mark}}."


def person(number: int, **more: Any) -> dict[str, Any]:
    return {"id": number, "contacts": {"sms": f"+7999000000{number}"}, **more}


def body(*people: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"sender": {"id": "dean"}, "text": TEXT, "recipients": people, "channels": ["sms"], **more}


ANNA = person(1, name="Anna", values={"mark": 5})
BORIS = person(2, values={" MARK ": "4.5"})


async def test_values_come_with_the_recipients_and_each_text_is_in_the_history(api: Api, courier: Couriers) -> None:
    sms = await courier("sms")
    made = await api.call("POST", "/v1/deliveries", body(ANNA, BORIS))
    assert made.status == 202, made
    done = await finished(api, made.headers["Location"])
    expected = {1: "Anna, your mark is 5.", 2: "Friend, your mark is 4.5."}
    assert {one["id"]: one["text"] for one in done["recipients"]} == expected
    assert sorted(one.text for one in sms.attempted) == sorted(expected.values())
    assert (done["text"], done["personal"]) == (TEXT, ["first_name", "mark"])
    listed = (await api.call("GET", f"{made.headers['Location']}/recipients")).json["recipients"]
    assert {one["id"]: one["text"] for one in listed} == expected
    rows = (await api.call("GET", f"{made.headers['Location']}/recipients.csv")).body.decode().splitlines()
    assert rows[0].endswith(",text,detail")
    assert rows[1].endswith(',"Anna, your mark is 5.",')


async def test_every_missing_value_is_named_and_nothing_is_sent(api: Api) -> None:
    before = await api.keys()
    people = [person(1, name="Anna"), BORIS, person(3, values={"mark": None})]
    refused = await api.call("POST", "/v1/deliveries", body(*people, personal=True))
    assert (refused.status, refused.code) == (400, "VALUE_MISSING")
    assert refused.json["detail"].startswith("2 values are missing. The first: Anna (1) has no value for {{mark}}.")
    named = [(one["path"], one["code"]) for one in refused.json["errors"]]
    assert named == [("recipients.0.values.mark", "VALUE_MISSING"), ("recipients.2.values.mark", "VALUE_MISSING")]
    assert await api.keys() == before


@pytest.mark.parametrize(
    ("asked", "code", "path"),
    [
        (body(ANNA, personal=False), "VALUES_NOT_PERSONAL", "personal"),
        (body(person(1, values={"A": 1, "a ": 2})), "FIELD_REPEATED", "recipients.0.values.a "),
        (body(person(1, values={"a": "x" * 4097})), "TOO_LONG", "recipients.0.values.a"),
        (body(person(1, values={"a": [1]})), "WRONG_TYPE", "recipients.0.values.a"),
        (body({"group": "8A", "values": {"a": 1}}), "RECIPIENT_AMBIGUOUS", "recipients.0"),
        (body(ANNA, text="if {{"), "FIELD_MALFORMED", "text"),
    ],
)
async def test_wrong_values_are_refused(api: Api, asked: dict[str, Any], code: str, path: str) -> None:
    refused = await api.call("POST", "/v1/deliveries", asked)
    assert (refused.status, refused.code, refused.json["errors"][0]["path"]) == (400, code, path)


async def test_marks_that_nothing_fills_are_named_in_every_answer_unless_they_are_said_to_be_none(api: Api) -> None:
    button = {"inline": [[{"text": "{{ room }}", "url": "https://example.org"}]]}
    asked = body(person(1), text="Dear {{name}}, {{name}}, {{", content=button)
    series = {"message": asked, "when": "every Monday 8:00"}
    made = (await api.call("POST", "/v1/series", series)).json
    bulk = await api.call(
        "POST", "/v1/deliveries/bulk", json.dumps(asked).encode(), headers={"Content-Type": "application/x-ndjson"}
    )
    for answer in (
        (await api.call("POST", "/v1/deliveries", asked)).json,
        (await api.call("POST", "/v1/deliveries/preview", asked)).json,
        json.loads(bulk.body),
        made,
        (await api.call("PATCH", f"/v1/series/{made['id']}", {"message": asked})).json,
    ):
        assert answer["unfilled"] == ["{{name}}", "{{ room }}"]
        assert unfilled_marks(answer).startswith("{{name}}, {{ room }} are sent as written; --personal")
    said = (await api.call("POST", "/v1/deliveries", {**asked, "personal": False})).json
    assert "unfilled" not in said
    assert not unfilled_marks(said)


async def test_a_preview_shows_the_text_of_each_person_and_counts_its_sms(api: Api) -> None:
    await api.services.core.channels.register("sms", ChannelFacts(100), display=SMS)
    asked = body({"id": 9, "contacts": {}}, person(1, values={"mark": "5" * 150}), BORIS, personal=True)
    asked["recipients"][0]["values"] = {"mark": 3}
    for query, name, text in (
        ("", 1, f"Friend, your mark is {'5' * 150}."),
        ("?number=2", 2, "Friend, your mark is 4.5."),
        ("?recipient=2", 2, "Friend, your mark is 4.5."),
    ):
        found = (await api.call("POST", f"/v1/deliveries/preview{query}", asked)).json
        assert found["recipient"]["id"] == name
        assert [one["text"] for one in found["shown"]["sms"]["messages"]] == [text]
        assert found["fields"] == ["first_name", "mark"]
        assert found["channels"]["sms"]["total_parts"] == 3, "two SMS and one"
        assert found["fallback"] == {"people": 3, "first": [{"id": one, "name": None} for one in (9, 1, 2)]}
    missing = await api.call("POST", "/v1/deliveries/preview?number=3", asked)
    assert (missing.status, missing.code) == (404, "RECIPIENT_NOT_FOUND")


async def test_a_preview_names_who_gets_a_fallback_in_the_text_of_its_language(api: Api) -> None:
    people = [ANNA, person(2, name="Boris"), {**person(3, name="Vera"), "locale": "ru"}]
    texts = {"ru": "Оценка: {{mark|–}}"}
    asked = body(*people, text="Hello, {{first_name|friend}}!", texts=texts, personal=True)
    seen = (await api.call("POST", "/v1/deliveries/preview", asked)).json
    assert "fallback" not in (await api.call("POST", "/v1/deliveries/preview", body(ANNA, personal=True))).json
    assert seen["fallback"] == {"people": 1, "first": [{"id": 3, "name": "Vera"}]}


async def test_a_bulk_line_has_values_too(api: Api) -> None:
    lines = b"\n".join(json.dumps(body(one, personal=True)).encode() for one in (ANNA, person(1, name="Anna")))
    bulk = await api.call("POST", "/v1/deliveries/bulk", lines, headers={"Content-Type": "application/x-ndjson"})
    first, second = (json.loads(line) for line in bulk.body.splitlines())
    assert (first["status"], second["code"]) == (202, "VALUE_MISSING")


TABLE = "Имя;Телефон;Оценка\r\nАнна;8 999 000-00-01;5\r\nБорис;нет;4\r\n"


async def table(api: Api, text: str = TABLE) -> str:
    octets = {"Content-Type": "application/octet-stream"}
    stored = await api.call("POST", "/v1/files?name=marks.csv", text.encode("cp1251"), headers=octets)
    return str(stored.json["id"])


async def test_a_table_is_uploaded_looked_at_and_sent_to(api: Api, courier: Couriers) -> None:
    sms, file = await courier("sms"), await table(api, TABLE.replace("нет", "+79990000002"))
    seen = (await api.call("GET", f"/v1/files/{file}/table")).json
    columns = [(one["name"], one["field"], one["meaning"]) for one in seen["columns"]]
    assert columns == [("Имя", "имя", "name"), ("Телефон", "телефон", "contacts.sms"), ("Оценка", "оценка", None)]
    assert seen["rows"] == 2
    asked = body({"table": file}, person(3, name="Вера"), text="{{имя}}: {{оценка}}")
    refused = await api.call("POST", "/v1/deliveries", asked)
    assert [one["path"] for one in refused.json["errors"]] == ["recipients.1.values.оценка"]
    made = await api.call("POST", "/v1/deliveries", {**asked, "recipients": [{"table": file}]})
    await finished(api, made.headers["Location"])
    assert sorted(one.text for one in sms.attempted) == ["Анна: 5", "Борис: 4"]
    assert (await api.call("GET", "/v1/users")).json["users"] == []


async def test_the_errors_of_a_table_have_row_column_and_value(api: Api) -> None:
    file = await table(api)
    for path in ("/v1/deliveries", "/v1/deliveries/preview"):
        refused = await api.call("POST", path, body({"table": file}, text="{{оценка}}"))
        assert (refused.status, refused.code) == (422, "TABLE_INVALID")
        (error,) = refused.json["errors"]
        assert (error["row"], error["column"], error["code"]) == (3, "Телефон", "ADDRESS_MALFORMED")
        assert error["message"].startswith("'нет': ")
    missing = await api.call("POST", "/v1/deliveries", body({"table": "0" * 32}, text="{{оценка}}"))
    assert (missing.code, missing.json["errors"][0]["path"]) == ("FILE_NOT_FOUND", "recipients.0.table")
    for recipient in ({"table": file, "id": 1}, {"sheet": "x"}):
        refused = await api.call("POST", "/v1/deliveries", body(recipient))
        assert refused.code == "RECIPIENT_AMBIGUOUS"


async def test_the_command_line_sends_to_a_table(ada: Ada, api: Api, courier: Couriers, tmp_path: Path) -> None:
    sms, file = await courier("sms"), tmp_path / "marks.csv"
    send = ("send", "--table", str(file), "--channel", "sms", "--text", "У {{имя}} оценка {{оценка}}", "--wait")
    file.write_text(TABLE)
    code, _, err = await ada(*send)
    assert code == 1
    assert "row 3, column Телефон: 'нет': " in err
    assert err.splitlines()[0] == "ada: TABLE_INVALID: The table has errors; nothing was sent"
    file.write_text(TABLE.replace("нет", "+79990000002"))
    code, out, _ = await ada(*send)
    assert code == 0
    assert "У Анна оценка 5" in out, "the history shows the text of each"
    assert sorted(one.text for one in sms.attempted) == ["У Анна оценка 5", "У Борис оценка 4"]
    assert (await ada("send", "--text", "x"))[0] == 2
    assert (await ada(*send[:2], "nowhere.csv", *send[3:]))[2].startswith("ada: --table nowhere.csv: ")


async def test_own_fields_are_stored_changed_exported_and_imported_again(api: Api, ada: Ada) -> None:
    made = await api.call("POST", "/v1/users", {"id": 1, "fields": {" Курс ": "2", "empty": " ", "form": "day"}})
    assert made.json["fields"] == {"курс": "2", "form": "day"}
    exported = (await api.call("GET", "/v1/export/users")).body
    assert exported.decode().splitlines()[0].endswith(",opt_out,fields.form,fields.курс")
    await api.call("PATCH", "/v1/users/1", {"fields": {}})
    assert "fields" not in (await api.call("GET", "/v1/users/1")).json
    csv = {"Content-Type": "text/csv"}
    assert (await api.call("POST", "/v1/import?kind=users", exported, headers=csv)).json["updated"] == 1
    changed = "id,Fields.КУРС,fields.form\n1,3,\n".encode()
    await api.call("POST", "/v1/import?kind=users", changed, headers=csv)
    assert (await api.call("GET", "/v1/users/1")).json["fields"] == {"курс": "3"}
    await ada("user", "change", "1", "--field", "course=4")
    assert "field course" in (await ada("user", "show", "1"))[1]
    await api.call("POST", "/v1/users", {"id": 2, "fields": {"course": "5", "курс": "1"}})
    merged = await api.call("POST", "/v1/users/1:merge", {"other": 2})
    assert merged.json["lost"] == {"fields.course": "5"}
    assert (await api.call("GET", "/v1/users/1")).json["fields"] == {"course": "4", "курс": "1"}


@pytest.mark.parametrize("name", ["a{b", "a|b", "x" * 65, " "])
async def test_a_field_that_no_text_could_name_is_refused(api: Api, name: str) -> None:
    refused = await api.call("POST", "/v1/users", {"id": 1, "fields": {name: "x"}})
    assert (refused.status, refused.json["errors"][0]["path"]) == (400, f"fields.{name}")


CSV = {"Content-Type": "text/csv"}
TYPES: dict[str, dict[str, Any]] = {
    "Mark": {"type": "number"},
    "born": {"type": "date"},
    "форма": {"type": "choice", "choices": ["очная", "заочная"]},
}


async def defined(api: Api) -> None:
    for name, field in TYPES.items():
        assert (await api.call("PUT", f"/v1/fields/{name}", field)).status == 200


async def test_a_value_has_the_one_form_of_its_type_or_is_refused(api: Api) -> None:
    await api.call("POST", "/v1/users", {"id": 9, "fields": {"mark": "good"}})
    refused = await api.call("PUT", "/v1/fields/mark", TYPES["Mark"])
    assert (refused.status, refused.code) == (409, "FIELD_VALUES_DIFFER")
    assert "9: 'good'" in refused.json["detail"]
    await api.call("DELETE", "/v1/users/9")
    await defined(api)
    assert (await api.call("GET", "/v1/fields")).json["fields"] == [
        {"name": "born", "type": "date", "choices": []},
        {"name": "mark", "type": "number", "choices": []},
        {"name": "форма", **TYPES["форма"]},
    ]
    given = {"MARK": " 4,50 ", "born": "1.9.2010", "форма": "Очная", "free": "x"}
    made = await api.call("POST", "/v1/users", {"id": 1, "fields": given})
    assert made.json["fields"] == {"mark": "4.5", "born": "2010-09-01", "форма": "очная", "free": "x"}
    for name, value in (("mark", "good"), ("born", "31.02.2010"), ("форма", "вечерняя")):
        refused = await api.call("PATCH", "/v1/users/1", {"fields": {name: value}})
        assert (refused.status, refused.code) == (400, "FIELD_VALUE_WRONG")
        assert refused.json["errors"][0]["path"] == f"fields.{name}"
    for field in ({"type": "choice"}, {"type": "date", "choices": ["a"]}, {"type": "choice", "choices": ["a", "A "]}):
        assert (await api.call("PUT", "/v1/fields/x", field)).code == "CHOICES_WRONG"
    assert (await api.call("PUT", "/v1/fields/a=b", {"type": "text"})).code == "FIELD_MALFORMED"
    assert (await api.call("DELETE", "/v1/fields/born")).status == 204
    assert (await api.call("PATCH", "/v1/users/1", {"fields": {"born": "in spring"}})).status == 200
    assert (await api.call("DELETE", "/v1/fields/born")).code == "FIELD_NOT_FOUND"


async def test_people_are_found_by_own_fields(api: Api, ada: Ada) -> None:
    await defined(api)
    for number, fields in enumerate(({"mark": "10", "born": "2010-01-31"}, {"mark": "9.5", "free": "Да"}, {}), 1):
        await api.call("POST", "/v1/users", {"id": number, "role": "student", "fields": fields})

    async def found(where: str, query: str = "") -> list[Any]:
        listed = await api.call("GET", f"/v1/users?where={where.replace(';', '%3B').replace('+', '%2B')}{query}")
        return [one["id"] for one in listed.json["users"]] if listed.status == 200 else [listed.code]

    assert await found("mark>9,5") == [1]
    assert await found("mark>=9.5; Mark<10") == [2]
    assert await found("born<01.02.2010") == [1]
    assert await found("free=да") == [2]
    assert await found("mark=", "&role=student") == [3]
    assert await found("mark=10", "&limit=1") == [1]
    assert await found("mark") == await found("free>1") == ["CONDITION_MALFORMED"]
    assert await found("born=soon") == ["FIELD_VALUE_WRONG"]
    assert (await ada("user", "list", "--where", "mark=9.5"))[1].strip() == "2  (no name)  student"
    assert "форма  choice  очная, заочная" in (await ada("user", "fields"))[1]


async def test_an_import_reads_typed_values_under_their_own_headings_and_an_export_writes_them(api: Api) -> None:
    await defined(api)
    columns = await api.call("POST", "/v1/import/columns?kind=users", "Почта;Форма;born\n".encode(), headers=CSV)
    assert [one["column"] for one in columns.json["columns"]] == ["email", "fields.форма", "fields.born"]
    assert columns.json["names"][-3:] == ["fields.born", "fields.mark", "fields.форма"]
    rows = "id;Форма;born;fields.mark\n1;Заочная;01.09.2010;4,5\n".encode()
    assert (await api.call("POST", "/v1/import?kind=users", rows, headers=CSV)).json["created"] == 1
    exported = (await api.call("GET", "/v1/export/users")).body.decode().splitlines()
    assert exported[0].endswith(",fields.born,fields.mark,fields.форма")
    assert exported[1].endswith(",2010-09-01,4.5,заочная")
    refused = await api.call("POST", "/v1/import?kind=users", rows.replace(b"01.09", b"31.02"), headers=CSV)
    (error,) = refused.json["errors"]
    assert (error["column"], error["code"], error["value"]) == ("born", "FIELD_VALUE_WRONG", "31.02.2010")


async def test_a_text_shows_a_typed_value_in_the_language_of_each_person(api: Api, courier: Couriers) -> None:
    await defined(api)
    sms = await courier("sms")
    for number, locale in ((1, "ru"), (2, "en")):
        own = {"locale": locale, "fields": {"born": "2010-09-01", "mark": "4.5"}}
        await api.call("POST", "/v1/users", {**person(number), **own})
    made = await api.call("POST", "/v1/deliveries", body({"id": 1}, {"id": 2}, text="{{born}} {{mark}}", personal=True))
    await finished(api, made.headers["Location"])
    assert sorted(one.text for one in sms.attempted) == ["01.09.2010 4,5", "1 September 2010 4.5"]
