"""Invalid requests: each has its own code and path, causes no internal error and writes no key."""

import dataclasses
import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from core.jobs import JobId, Schedule
from delivery.http.context import ApiServices
from delivery.http.responses import problem_types
from delivery.routes import ROUTES
from scenarios.inspection.bots import BotReader
from scenarios.inspection.runs import RunReader
from scenarios.stores.forms import FormAnswer, Forms
from tests.delivery.conftest import Api, delivery_body
from tests.delivery.test_threads import written
from tests.support.paths import ROOT
from tests.support.servers import Server


def ahead(**by: float) -> str:
    return (datetime.now(UTC) + timedelta(**by)).isoformat()


def to(**recipient: Any) -> dict[str, Any]:
    return delivery_body(recipients=[recipient])


def without(field: str) -> dict[str, Any]:
    body = delivery_body()
    del body[field]
    return body


BODIES = [
    ("TEXT_EMPTY", "text", delivery_body(text="")),
    ("TEXT_EMPTY", "text", delivery_body(text=" \n\t\u3000")),
    ("TEXT_TOO_LONG", "text", delivery_body(text="я" * 4097)),
    ("NUL_CHARACTER", "text", delivery_body(text="a\0b")),
    ("WRONG_TYPE", "text", delivery_body(text=7)),
    ("WRONG_TYPE", "text", delivery_body(text=None)),
    ("REQUIRED", "text", without("text")),
    ("REQUIRED", "sender", without("sender")),
    ("REQUIRED", "recipients", without("recipients")),
    ("REQUIRED", "sender.id", delivery_body(sender={"name": "Иванов"})),
    ("WRONG_TYPE", "sender.id", delivery_body(sender={"id": True})),
    ("WRONG_TYPE", "sender.id", delivery_body(sender={"id": 1.5})),
    ("WRONG_TYPE", "sender.id", delivery_body(sender={"id": None})),
    ("OUT_OF_RANGE", "sender.id", delivery_body(sender={"id": 2**63})),
    ("TOO_SHORT", "sender.id", delivery_body(sender={"id": ""})),
    ("TOO_LONG", "sender.id", delivery_body(sender={"id": "i" * 129})),
    (
        "WRONG_FORMAT",
        "content.inline.0.0.text",
        delivery_body(content={"inline": [[{"text": "\ufeff", "url": "https://a.b"}]]}),
    ),
    ("NOT_PRINTABLE", "sender.id", delivery_body(sender={"id": "a\nb"})),
    ("NO_RECIPIENTS", "recipients", delivery_body(recipients=[])),
    ("TOO_MANY_RECIPIENTS", "recipients", delivery_body(recipients=[{"id": n} for n in range(10_001)])),
    ("WRONG_TYPE", "recipients", delivery_body(recipients={"id": 1})),
    ("WRONG_TYPE", "recipients.0", delivery_body(recipients=[1])),
    ("RECIPIENT_WITHOUT_ID", "recipients.0.id", to(name="Петя")),
    ("RECIPIENT_AMBIGUOUS", "recipients.0", to(id=1, group="ИВТ-21")),
    ("GROUP_NOT_FOUND", "recipients.0.group", to(group="ИВТ-21")),
    ("SUPERGROUP_NOT_FOUND", "recipients.0.supergroup", to(supergroup="1 курс")),
    ("UNKNOWN_FIELD", "recipients.0.email", to(id=1, email="a@b")),
    ("UNKNOWN_CHANNEL", "recipients.0.contacts.pigeon", to(id=1, contacts={"pigeon": "1"})),
    ("WRONG_TYPE", "recipients.0.contacts.sms", to(id=1, contacts={"sms": 7})),
    ("WRONG_TYPE", "recipients.0.contacts.sms.1", to(id=1, contacts={"sms": ["+7", 8]})),
    ("TOO_SHORT", "recipients.0.contacts.sms", to(id=1, contacts={"sms": ""})),
    ("NOT_PRINTABLE", "recipients.0.contacts.sms", to(id=1, contacts={"sms": "+7\r\nX: y"})),
    ("NOT_PRINTABLE", "recipients.0.id", to(id="a\x7f")),
    ("UNKNOWN_FIELD", "colour", delivery_body(colour="red")),
    ("UNKNOWN_FIELD", "sender.colour", delivery_body(sender={"id": 1, "colour": "red"})),
    ("UNKNOWN_FIELD", "idempotency_key", delivery_body(idempotency_key="a")),
    ("UNKNOWN_CHANNEL", "channels.1", delivery_body(channels=["sms", "pigeon"])),
    ("TOO_SHORT", "channels", delivery_body(channels=[])),
    ("WRONG_VALUE", "strategy", delivery_body(strategy="some")),
    ("WAIT_MALFORMED", "wait", delivery_body(strategy="first", wait="2 minutes")),
    ("WAIT_MALFORMED", "wait", delivery_body(strategy="first", wait="P1M")),
    ("WAIT_OUT_OF_RANGE", "wait", delivery_body(strategy="first", wait="PT0.5S")),
    ("WAIT_OUT_OF_RANGE", "wait", delivery_body(strategy="first", wait="P31D")),
    ("WAIT_WITHOUT_FIRST", "wait", delivery_body(wait="PT2M")),
    ("OUT_OF_RANGE", "priority", delivery_body(priority=10)),
    ("OUT_OF_RANGE", "priority", delivery_body(priority=-1)),
    ("WRONG_TYPE", "priority", delivery_body(priority="5")),
    ("TOO_LONG", "tags", delivery_body(tags=[str(n) for n in range(17)])),
    ("TOO_LONG", "tags.0", delivery_body(tags=["t" * 65])),
    ("NOT_PRINTABLE", "tags.1", delivery_body(tags=["a", "b\n"])),
    ("NOT_PRINTABLE", "lane", delivery_body(lane="a\tb")),
    ("TIME_MALFORMED", "deliver_at", delivery_body(deliver_at="tomorrow")),
    ("TIME_MALFORMED", "deliver_at", delivery_body(deliver_at="2026-02-30T00:00:00Z")),
    ("TIME_MALFORMED", "deliver_at", delivery_body(deliver_at="2026-11-21")),
    ("TIME_WITHOUT_ZONE", "deliver_at", delivery_body(deliver_at="2026-11-21T17:00:00")),
    ("TIME_OUT_OF_RANGE", "deliver_at", delivery_body(deliver_at="9999-12-31T23:59:59-12:00")),
    ("TIME_OUT_OF_RANGE", "deliver_at", delivery_body(deliver_at="0001-01-01T00:00:00+14:00")),
    ("WRONG_TYPE", "deliver_at", delivery_body(deliver_at=1763712000)),
    ("EXPIRES_BEFORE_DUE", "expires_at", delivery_body(expires_at=ahead(seconds=-1))),
    ("EXPIRES_BEFORE_DUE", "expires_at", delivery_body(deliver_at=ahead(hours=2), expires_at=ahead(hours=1))),
    ("HISTORY_KEY_MALFORMED", "history_key", delivery_body(history_key="42")),
    ("HISTORY_KEY_MALFORMED", "history_key", delivery_body(history_key="history:{99999}:42:1763712000000000000")),
    ("HISTORY_KEY_OF_ANOTHER_SENDER", "history_key", delivery_body(history_key="history:{0}:43:1763712000000000000")),
]


async def test_an_invalid_delivery_is_refused_with_code_and_path(api: Api) -> None:
    before = await api.keys()
    wrong = []
    for code, path, body in BODIES:
        response = await api.call("POST", "/v1/deliveries", body)
        if response.status != 400 or (response.code, response.json["errors"][0]["path"]) != (code, path):
            wrong.append((code, path, response))
        assert await api.keys() == before, (code, path)
    assert wrong == []


ADDRESSES = [
    ("recipients.0.contacts.sms", {"id": 1, "contacts": {"sms": "7,9991E+10"}}),
    ("recipients.0.contacts.sms.1", {"id": 1, "contacts": {"sms": ["+79991112233", "123"]}}),
    ("recipients.0.contacts.sms.0", "7=sms:79991112208.0"),
    ("recipients.0.contacts.sms.0", "7=sms:+79991112233 +79991112244"),
    ("recipients.0.contacts.telegram.0", "telegram:abc"),
    ("recipients.0.contacts.vk", {"id": 1, "contacts": {"vk": "@anna"}}),
]


@pytest.mark.parametrize(("path", "recipient"), ADDRESSES)
async def test_a_malformed_address_is_refused_with_its_path(api: Api, path: str, recipient: object) -> None:
    before = await api.keys()
    response = await api.call("POST", "/v1/deliveries", delivery_body(recipients=[recipient]))
    assert (response.status, response.code, response.json["errors"][0]["path"]) == (422, "ADDRESS_MALFORMED", path)
    assert await api.keys() == before


BROKEN = [
    ("JSON_MALFORMED", b""),
    ("JSON_MALFORMED", b"{"),
    ("JSON_MALFORMED", b'{"text": "a"} x'),
    ("JSON_MALFORMED", b'{"text": "a\tb"}'),
    ("JSON_MALFORMED", b"{'text': 1}"),
    ("JSON_MALFORMED", b'{"sender": {"id": ' + b"9" * 5000 + b"}}"),
    ("JSON_NOT_UTF8", b'{"text": "\xff"}'),
    ("JSON_NOT_UTF8", json.dumps(delivery_body(), ensure_ascii=False).encode("cp1251")),
    ("JSON_NOT_UTF8", json.dumps(delivery_body()).encode("utf-16")),
    ("JSON_BYTE_ORDER_MARK", b"\xef\xbb\xbf" + json.dumps(delivery_body()).encode()),
    ("JSON_DUPLICATE_KEY", b'{"text": "a", "text": "b", "sender": {"id": 1}, "recipients": [{"id": 1}]}'),
    ("JSON_DUPLICATE_KEY", b'{"text": "a", "sender": {"id": 1}, "recipients": [{"id": 1, "id": 2}]}'),
    (
        "JSON_DUPLICATE_KEY",
        b'{"text": "a", "sender": {"id": 1}, "recipients": [{"id": 1, "contacts": {"sms": "1", "sms": "2"}}]}',
    ),
    (
        "JSON_DUPLICATE_KEY",
        b'{"text": "\\u003a", "sender": {"id": 1, "id": 1}, "recipients": [{"id": 1}]}',
    ),
    ("JSON_NOT_A_NUMBER", b'{"sender": {"id": NaN}}'),
    ("JSON_NOT_A_NUMBER", b'{"sender": {"id": -Infinity}}'),
    ("JSON_TOO_DEEP", b"[" * 100_000),
    ("JSON_TOO_DEEP", b'{"text":' * 100_000),
    ("WRONG_TYPE", b"[]"),
    ("WRONG_TYPE", b"null"),
    ("LONE_SURROGATE", b'{"text": "\\ud800", "sender": {"id": 1}, "recipients": [{"id": 1}]}'),
    ("UNKNOWN_FIELD", b'{"\\ud800": 1, "text": "a", "sender": {"id": 1}, "recipients": [{"id": 1}]}'),
    ("NUL_CHARACTER", b'{"text": "a", "sender": {"id": "a\\u0000"}, "recipients": [{"id": 1}]}'),
]


async def test_a_body_that_is_not_strict_json_is_refused_with_its_code(api: Api) -> None:
    before = await api.keys()
    wrong = []
    for code, body in BROKEN:
        response = await api.call("POST", "/v1/deliveries", body)
        if response.status != 400 or response.code != code:
            wrong.append((code, body, response))
        assert await api.keys() == before, (code, body)
    assert wrong == []


async def test_an_escaped_colon_or_backslash_is_valid(api: Api) -> None:
    """The fast decoder passes such bodies on to the careful one, which must accept them."""
    body = json.dumps(delivery_body(text="TEXT")).replace("TEXT", "\\u003a \\\\u0000 \\u00e9 \\ud83d\\ude00").encode()
    response = await api.call("POST", "/v1/deliveries", body)
    assert response.status == 202
    history = await api.call("GET", f"/v1/deliveries/{response.json['id']}")
    assert history.json["text"] == ": \\u0000 é 😀"


async def test_all_errors_of_a_body_are_reported_at_once(api: Api) -> None:
    body = {"sender": {"id": []}, "text": "", "recipients": [{"id": 1, "x": 1}, {"name": 5}], "y": 1}
    response = await api.call("POST", "/v1/deliveries", body)
    result = {(one["path"], one["code"]) for one in response.json["errors"]}
    assert result == {
        ("y", "UNKNOWN_FIELD"),
        ("sender.id", "WRONG_TYPE"),
        ("text", "TEXT_EMPTY"),
        ("recipients.0.x", "UNKNOWN_FIELD"),
        ("recipients.1.name", "WRONG_TYPE"),
    }


async def test_the_number_of_reported_errors_is_limited(api: Api) -> None:
    for wrong in ({"id": None}, {"id": 1, "contacts": {"pigeon": "1"}}):
        response = await api.call("POST", "/v1/deliveries", delivery_body(recipients=[wrong] * 1000))
        assert len(response.json["errors"]) == 20


CALLS = [
    ("POST", "/v1/history-keys", {"sender": {"id": "a\nb"}}, "NOT_PRINTABLE"),
    ("POST", "/v1/history-keys", {"sender": {"id": "a\ue000b"}}, "NOT_PRINTABLE"),
    ("POST", "/v1/history-keys", {"sender": 42}, "WRONG_TYPE"),
    ("PATCH", "/v1/deliveries/0.42.1763712000000000000", {"deliver_at": "2026-11-21T17:00:00"}, "TIME_WITHOUT_ZONE"),
    ("PATCH", "/v1/deliveries/0.42.1763712000000000000", {"deliver_at": None}, "WRONG_TYPE"),
    ("PATCH", "/v1/deliveries/0.42.1763712000000000000", {"text": "a"}, "UNKNOWN_FIELD"),
    ("POST", "/v1/deliveries/0.42.1763712000000000000/retry", {"statuses": ["sent"]}, "WRONG_VALUE"),
    ("POST", "/v1/deliveries/0.42.1763712000000000000/retry", {"statuses": []}, "TOO_SHORT"),
    ("POST", "/v1/cancellations", {}, "ONE_FIELD_WANTED"),
    ("POST", "/v1/cancellations", {"tag": "a", "lane": "b"}, "ONE_FIELD_WANTED"),
    ("GET", "/v1/deliveries?state=lost", None, "WRONG_VALUE"),
    ("GET", "/v1/deliveries?since=yesterday", None, "TIME_MALFORMED"),
    ("GET", "/v1/deliveries?limit=0", None, "OUT_OF_RANGE"),
    ("GET", "/v1/deliveries?limit=1e1", None, "WRONG_TYPE"),
    ("GET", "/v1/deliveries?limit=1&limit=2", None, "PARAMETER_REPEATED"),
    ("GET", "/v1/deliveries?colour=red", None, "UNKNOWN_PARAMETER"),
    ("GET", "/v1/deliveries?cursor=nonsense", None, "CURSOR_MALFORMED"),
    ("GET", "/v1/deliveries?cursor=%00", None, "NUL_CHARACTER"),
    ("GET", "/v1/costs?from=2026-11%0A", None, "WRONG_FORMAT"),
    ("POST", "/v1/api-keys", {"name": "a", "scopes": ["send"], "tenant": "abc\n"}, "TENANT_MALFORMED"),
    ("GET", "/v1/queue/tasks?cursor=nonsense", None, "CURSOR_MALFORMED"),
    ("GET", "/v1/queue/tasks?limit=-1", None, "OUT_OF_RANGE"),
]


@pytest.mark.parametrize(("method", "path", "body", "code"), CALLS)
async def test_other_operations_refuse_invalid_requests(
    api: Api, method: str, path: str, body: object, code: str
) -> None:
    before = await api.keys()
    response = await api.call(method, path, body)
    assert (response.status, response.code) == (400, code)
    assert await api.keys() == before


NONSENSE = ["nonsense", "0", "0.42", "0.42.1", "99999.42.1763712000000000000", "%00", "%FF", "..%2F", "1" * 3000]


@pytest.mark.parametrize("name", NONSENSE)
async def test_anything_but_a_known_delivery_is_not_found(api: Api, name: str) -> None:
    for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/events"), ("POST", "/retry")):
        response = await api.call(method, f"/v1/deliveries/{name}{path}")
        assert (response.status, response.code) == (404, "HISTORY_NOT_FOUND"), (method, path)


async def test_a_malformed_cursor_of_a_history_is_refused(api: Api) -> None:
    made = await api.call("POST", "/v1/deliveries", delivery_body())
    for cursor in ("nonsense", "-1", "9" * 40, "%F0%9F%98%80", "1.5"):
        response = await api.call("GET", f"/v1/deliveries/{made.json['id']}?cursor={cursor}")
        assert response.code == "CURSOR_MALFORMED", cursor


async def test_a_history_key_is_used_by_one_delivery(api: Api) -> None:
    key = (await api.call("POST", "/v1/history-keys", {"sender": {"id": 42}})).json["history_key"]
    assert (await api.call("POST", "/v1/deliveries", delivery_body(history_key=key))).status == 202
    before = await api.keys()
    again = await api.call("POST", "/v1/deliveries", delivery_body(history_key=key))
    assert (again.status, again.code) == (409, "HISTORY_KEY_USED")
    assert await api.keys() == before


CODE_PATTERNS = [
    re.compile(r'(?:Invalid|NotFound|Conflict|Forbidden|Refused|problem)\(\s*"([A-Z0-9_]+)"'),
    re.compile(r'(?:invalid_field|FieldError|error)\(\s*(?:[^\n"]*"[^"\n]*",\s*)?"([A-Z0-9_]+)"'),
]


def codes_in_source() -> set[str]:
    """Every code that is passed to an error in core and delivery. Those of models are returned by actions only."""
    files = [file for part in ("core", "delivery") for file in (ROOT / part).rglob("*.py")]
    files = [file for file in files if ROOT / "core" / "ai" not in file.parents]
    texts = [file.read_text(encoding="utf-8") for file in files]
    return {code for text in texts for pattern in CODE_PATTERNS for code in pattern.findall(text)}


def test_every_error_code_has_a_status_and_a_title(server: Server) -> None:
    assert {"TEXT_EMPTY", "JSON_MALFORMED", "HISTORY_NOT_FOUND"} <= codes_in_source(), "the search finds codes"
    elsewhere = {
        "ATTEMPTS_OUT_OF_RANGE",
        "KEY_NAME_MALFORMED",
        "UNKNOWN_SCOPE",
        "TENANT_MALFORMED",
        "KEY_NOT_FOUND",
        "HEADER_MALFORMED",
        "LINE_BREAK",
        "MEDIA_TYPE_MALFORMED",
        "JOB_KIND_MALFORMED",
        "PERIOD_OUT_OF_RANGE",
        *("SENTINEL_NAME_UNKNOWN", "SENTINEL_REFUSES", "SENTINEL_UNREACHABLE"),
        *("CLUSTER_DISABLED", "CLUSTER_REFUSES", "CLUSTER_UNREACHABLE"),
        *("ADDRESS_INVALID", "ANSWER_INVALID", "KEY_REFUSED", "PROGRAM_FAILED", "REQUEST_REFUSED"),
        *("SOUND_INVALID", "SOUND_TOO_LONG", "SSML_UNSUPPORTED"),
        *("ANSWER_NOT_YOURS", "ANSWER_STRANGER", "ANSWER_TOKEN_WRONG"),
        *("PREFERENCES_TOKEN_WRONG", "PREFERENCES_UNKNOWN"),
    }  # not as problems: raised for pages, presses, commands, the code of jobs, own mails, models and topologies
    assert codes_in_source() - problem_types.CODES.keys() - elsewhere == set()


async def test_a_text_of_exactly_the_limit_is_accepted_however_it_is_written(api: Api) -> None:
    for escaped in (False, True):
        for length, status in ((4096, 202), (4097, 400)):
            body = json.dumps(delivery_body(text="é" * length), ensure_ascii=escaped).encode()
            assert (await api.call("POST", "/v1/deliveries", body)).status == status


@pytest.fixture
async def services(services: ApiServices) -> ApiServices:
    """With a bot, so that runs and forms are listed."""
    store = services.core.store
    return dataclasses.replace(services, runs=RunReader(store), bots=BotReader(store), forms=Forms(store))


CURSORS = (
    *("0", "1", "00", "9" * 9, "9" * 15, "9" * 20, "9" * 40, "18446744073709551615", "18446744073709551616"),
    *(
        "0-0",
        "00-0",
        "0-00",
        "1-0",
        "000000000000000-000000000000000",
        f"{'9' * 15}-{'9' * 15}",
        "1-1.a",
        f"{'9' * 15}-0.f",
    ),
    *(
        "n0",
        "r0",
        f"n{'9' * 9}",
        "65535-0",
        "99999-0",
        f"99999-{'9' * 20}",
        f"0-{'9' * 20}-x",
        "0-1-2-3",
        "-",
        "_",
        "A",
    ),
    *("AA", "AAAA", "AAAAAAAAAAAA", "_" * 64, "-1", "+1", "(1", "%2B", "%00", "%D9%A3", "1.5", "x" * 5000, ""),
)
"""Cursors that no page has returned. Many of them have the form of one."""


@pytest.mark.parametrize("path", [route.path for route in ROUTES if "cursor" in route.query.__struct_fields__])
async def test_no_cursor_of_any_list_is_an_internal_error(api: Api, path: str) -> None:
    """`GET /v1/actions?cursor=00-0` was one: the server refused the id that the cursor named. So were twenty digits for
    the steps and units of a job.
    """
    address, reason = await address_of_list(api, path), {"Ada-Reason": "a test"}
    assert (await api.call("GET", address, headers=reason)).status == 200, "the list is there"
    for cursor in CURSORS:
        response = await api.call("GET", f"{address}&cursor={cursor}", headers=reason)
        assert response.status in (200, 400, 404), (cursor, response.status, response.body)


async def address_of_list(api: Api, path: str) -> str:
    """Create what a list is about. Returns its address with a query."""
    asking = delivery_body(deliver_at=ahead(days=1), answer={"kind": "confirm"})
    made = await api.call("POST", "/v1/deliveries", asking)
    await api.call("POST", "/v1/users", {"id": 1, "name": "Anna"})
    await api.call("POST", "/v1/groups", {"id": "g"})
    jobs = api.services.core.jobs
    await jobs.kinds.publish({"hunt": Schedule(timedelta(hours=1))})
    await jobs.start(JobId("default", "hunt", "42"))
    thread = await written(api)
    await Forms(api.services.core.store).note("default", "g", "vk:7", {"name": FormAnswer(1, "A", 1)})
    named = {"deliveries": made.json["id"], "users": "1", "threads": thread.thread, "jobs": "hunt.42"}
    query = {"/v1/threads": "inbox=user:1", "/v1/runs": "person=vk:7"}.get(path, "limit=2")
    return re.sub(r"\{\w+\}", named.get(path.split("/")[2], "g"), path) + f"?{query}"


@pytest.mark.parametrize(
    ("path", "description"),
    [
        ("/v1/threads?inbox=mine", "the inbox of a person, such as user:7, or of a group, such as office:rectorate"),
        ("/v1/costs?from=2026", "a month of UTC, such as 2026-11"),
        ("/v1/runs?person=7", "channel:user_id"),
    ],
)
async def test_a_text_of_the_wrong_form_is_refused_with_a_description_of_the_form(
    api: Api, path: str, description: str
) -> None:
    refused = await api.call("GET", path)
    assert (refused.status, refused.json["detail"].endswith(f": {description}.")) == (400, True), refused.json
