"""Texts by language over HTTP: the language of each person selects, the base text is the fallback (D-47)."""

from typing import Any

import pytest

from tests.delivery.conftest import Api, Couriers, delivery_body
from tests.delivery.test_deliveries import finished

TEXTS = {"ru": "Здравствуйте, {{имя|друзья}}!", "en": "Hello, {{name}}: {{mark|none}}!"}


@pytest.fixture(autouse=True)
async def people(api: Api) -> None:
    """Two people of the directory, in Russian and English."""
    for number, (name, locale) in enumerate([("Анна", "ru"), ("Bob", "en")], 1):
        contacts = {"sms": f"+7999000000{number}"}
        await api.call("POST", "/v1/users", {"id": number, "name": name, "locale": locale, "contacts": contacts})


def body(**more: Any) -> dict[str, Any]:
    guest = {"id": "guest", "contacts": {"sms": "+79990000003"}}
    eve = {"id": "eve", "name": "Eve", "locale": "en", "contacts": {"sms": "+79990000004"}, "values": {"mark": 5}}
    people = [{"id": 1}, {"id": 2}, guest, eve]
    return delivery_body(text="Guten Tag", texts=TEXTS, recipients=people, channels=["sms"], **more)


EXPECTED = {1: "Здравствуйте, Анна!", 2: "Hello, Bob: none!", "guest": "Guten Tag", "eve": "Hello, Eve: 5!"}


async def test_each_person_gets_the_text_of_its_language_and_the_history_keeps_it(api: Api, courier: Couriers) -> None:
    sms = await courier("sms")
    shown = (await api.call("POST", "/v1/deliveries/preview", body())).json
    assert shown["languages"] == {"ru": 1, "en": 2, "base": 1}
    assert shown["fields"] == ["имя", "name", "mark"]
    second = (await api.call("POST", "/v1/deliveries/preview?recipient=2", body())).json
    assert second["text"] == EXPECTED[2]
    made = await api.call("POST", "/v1/deliveries", body())
    history = await finished(api, made.headers["Location"])
    assert {one["id"]: one["text"] for one in history["recipients"]} == EXPECTED
    assert sorted(one.text for one in sms.attempted) == sorted(EXPECTED.values())
    assert (history["texts"], history["text"]) == (TEXTS, "Guten Tag")
    assert "@language" not in history["personal"]
    await api.call("PATCH", "/v1/users/2", {"locale": "ru"})
    kept = (await api.call("GET", made.headers["Location"])).json
    assert {one["id"]: one["text"] for one in kept["recipients"]} == EXPECTED


async def test_braces_stay_as_they_are_in_texts_that_are_not_personal(api: Api, courier: Couriers) -> None:
    sms = await courier("sms")
    pasted = {"en": "Write {{name}} \\{{", "ru": "Пишите {{имя}}"}
    people = [{"id": 1}, {"id": 2}]
    given = delivery_body(text="Base {{", texts=pasted, recipients=people, channels=["sms"], personal=False)
    made = await api.call("POST", "/v1/deliveries", given)
    assert made.status == 202, made
    await finished(api, made.headers["Location"])
    assert sorted(one.text for one in sms.attempted) == sorted(pasted.values())


async def test_a_value_is_missing_only_where_the_text_of_the_language_needs_it(api: Api) -> None:
    needed = {"en": "Hello {{mark}}", "ru": "Без оценки"}
    given = delivery_body(text="Base", texts=needed, recipients=[{"id": 1}, {"id": 2}], channels=["sms"])
    refused = await api.call("POST", "/v1/deliveries", given)
    assert refused.status == 400
    assert [(one["code"], one["column"]) for one in refused.json["errors"]] == [("VALUE_MISSING", "mark")]
    assert "Bob" in refused.json["errors"][0]["message"]


REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("REQUIRED", {"text": None}),
    ("MARKS_BROKEN", {"texts": {"en": "<b>open"}, "content": {"parse_mode": "HTML"}}),
    ("TEXT_EMPTY", {"texts": {"en": "   "}}),
    ("TEXT_TOO_LONG", {"texts": {"en": "a" * 4097}}),
    ("FIELD_MALFORMED", {"texts": {"en": "{{"}}),
    ("WRONG_VALUE", {"texts": {"tlh": "nuqneH"}}),
]


async def test_wrong_texts_are_refused_by_their_code(api: Api) -> None:
    for code, more in REFUSED:
        given = {name: value for name, value in {**body(), **more}.items() if value is not None}
        for path in ("/v1/deliveries", "/v1/deliveries/preview"):
            refused = await api.call("POST", path, given)
            codes = {refused.code, *(error["code"] for error in refused.json.get("errors", ()))}
            assert code in codes, (code, refused)


async def test_programs_get_rows_for_programs_whatever_the_form_of_the_page(api: Api, courier: Couriers) -> None:
    await courier("sms")
    made = await api.call("POST", "/v1/deliveries", body())
    await finished(api, made.headers["Location"])
    for path in (f"{made.headers['Location']}/recipients.csv", "/v1/export/users"):
        plain, excel = await api.call("GET", path), await api.call("GET", f"{path}?language=ru&excel")
        raw = await api.call("GET", f"{path}?language=ru&excel&format=raw")
        assert raw.body == plain.body
        assert raw.body != excel.body
        assert b"\xef\xbb\xbf" not in raw.body
