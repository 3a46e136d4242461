"""The OpenAPI document: it has every operation, and real responses match it."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator

from core.directory.records import read_cursor, write_cursor
from core.errors import Invalid
from core.model.field_types import END, PRINTABLE
from delivery.app import build
from delivery.console import files as console_files
from delivery.http.context import ApiServices
from delivery.http.fields import Cursor, RequestModel
from delivery.http.responses import problem_types
from delivery.routes import OPEN_ROUTES, ROUTES
from tests.delivery.conftest import Api, ApiResponse, Couriers, delivery_body
from tests.support.waiting import until


@pytest.fixture
async def document(api: Api) -> dict[str, Any]:
    response = await api.call("GET", "/openapi.json", headers={"Authorization": ""})
    result: dict[str, Any] = response.json
    return result


async def test_exactly_the_registered_operations_are_described(services: ApiServices, document: dict[str, Any]) -> None:
    registered = {
        (route.method.lower(), route.resource.canonical)
        for route in build(services).router.routes()
        if route.resource is not None
        and route.method not in ("*", "HEAD")
        and route.resource.canonical != console_files.PATH
    }
    described = {(method, path) for path, methods in document["paths"].items() for method in methods}
    assert registered == described


def test_no_form_of_a_text_leaves_out_a_last_line_break() -> None:
    """`$` alone matches before it. What says `whole` does not."""
    forms = set(_forms(msgspec.inspect.multi_type_info(_subclasses(RequestModel))))
    assert len(forms) > 20
    assert [one for one in forms if one.endswith("$") and not one.endswith(END)] == []


def _subclasses(base: type[Any]) -> list[type[Any]]:
    below: list[type[Any]] = base.__subclasses__()
    return [one for sub in below for one in (sub, *_subclasses(sub))]


def _forms(value: Any) -> Iterator[str]:
    """Emit the patterns of texts in descriptions of types."""
    if isinstance(value, msgspec.inspect.StrType) and value.pattern:
        yield value.pattern
    if isinstance(value, msgspec.Struct):
        value = [getattr(value, name) for name in value.__struct_fields__]
    if isinstance(value, list | tuple):
        for one in value:
            yield from _forms(one)


async def test_the_document_is_valid(document: dict[str, Any]) -> None:
    assert document["openapi"] == "3.1.0"
    operations = [one for methods in document["paths"].values() for one in methods.values()]
    assert Counter(one["operationId"] for one in operations).most_common(1)[0][1] == 1
    for reference in references(document):
        place: Any = document
        for step in reference.removeprefix("#/").split("/"):
            place = place[step]
    for schema in document["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)


def references(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if "$ref" in value else set()
        return own.union(*(references(one) for one in value.values()))
    return set().union(*(references(one) for one in value)) if isinstance(value, list) else set()


async def test_every_operation_declares_its_scope_or_that_it_needs_no_key(document: dict[str, Any]) -> None:
    assert document["security"] == [{"key": []}, {"session": []}]
    for route in ROUTES:
        operation = document["paths"][route.path][route.method.lower()]
        assert "security" not in operation
        assert operation["x-scope"] == route.scope
    for open_route in OPEN_ROUTES:
        assert document["paths"][open_route.path][open_route.method.lower()]["security"] == []


async def test_every_response_but_204_has_a_content(document: dict[str, Any]) -> None:
    for path, operations in document["paths"].items():
        for method in operations.keys() - {"parameters"}:
            for status, response in operations[method]["responses"].items():
                has_content = "content" in response or "$ref" in response
                assert has_content == (status != "204"), (path, method, status)


async def test_every_code_is_listed_with_its_status(document: dict[str, Any]) -> None:
    listed = {code: one["status"] for code, one in document["x-codes"].items()}
    assert listed == {code: meaning.status for code, meaning in problem_types.CODES.items()}


async def test_other_methods_are_refused_with_the_documented_ones(api: Api, document: dict[str, Any]) -> None:
    """Also where another path matches too: `/v1/deliveries/bulk` is not the delivery named bulk."""
    for path, methods in document["paths"].items():
        address = re.sub(r"\{\w+\}", "1", path)
        for method in {"GET", "PUT", "POST", "PATCH", "DELETE", "OPTIONS"} - {name.upper() for name in methods}:
            refused = await api.call(method, address)
            assert (refused.status, refused.code) == (405, "METHOD_NOT_ALLOWED"), (method, path)
            allowed = set(refused.headers["Allow"].split(", ")) - {"HEAD"}  # HEAD is not documented: it is GET's
            assert allowed == {name.upper() for name in methods} - {"PARAMETERS"}, (method, path)


async def test_what_post_creates_is_linked_to_its_get(document: dict[str, Any]) -> None:
    accepted = document["paths"]["/v1/deliveries"]["post"]["responses"]["202"]
    assert accepted["links"]["read"] == {"operationId": "get_deliveries_id", "parameters": {"id": "$response.body#/id"}}
    for name, methods in document["paths"].items():
        if "post" in methods and "get" in document["paths"].get(f"{name}/{{id}}", {}):
            assert any("links" in response for response in methods["post"]["responses"].values()), name


VALID = {"sender": {"id": 1}, "text": "a", "recipients": [{"id": 1}]}
WITH_A_FILE = {
    "sender": {"id": 1},
    "recipients": [{"id": 1}],
    "content": {"attachments": [{"type": "photo", "url": "https://example.org/a.jpg"}]},
}

LIMITED = [
    (
        "DeliveryRequest",
        {**VALID, "deliver_at": "2030-01-01T00:00:00+03:00", "far": True},
        {**VALID, "deliver_at": "tomorrow"},
    ),
    ("DeliveryRequest", {**VALID, "history_key": "history:{0}:1:1763712000000000000"}, {**VALID, "history_key": "1"}),
    ("DeliveryRequest", VALID, {**VALID, "text": " "}),
    ("DeliveryRequest", VALID, {**VALID, "sender": {"id": 1, "name": "\0"}}),
    ("DeliveryRequest", VALID, {**VALID, "lane": "a\tb"}),
    ("DeliveryRequest", {**VALID, "priority": 5.0}, {**VALID, "priority": 5.5}),
    ("DeliveryRequest", VALID, {**VALID, "recipients": [{"name": "a"}]}),
    ("DeliveryRequest", VALID, {**VALID, "recipients": [{"id": 1, "group": "a"}]}),
    (
        "DeliveryRequest",
        {**VALID, "recipients": [{"group": "a"}]},
        {**VALID, "recipients": [{"group": "a", "name": None}]},
    ),
    ("DeliveryRequest", VALID, {**VALID, "recipients": [{"supergroup": "a", "contacts": {}}]}),
    ("DeliveryRequest", VALID, {**VALID, "recipients": [{"id": 1, "contacts": {"": "1"}}]}),
    ("DeliveryRequest", {**VALID, "wait": "P1DT2H30M0.5S"}, {**VALID, "wait": "PT"}),
    ("DeliveryRequest", {**VALID, "wait": ""}, {**VALID, "wait": "1 hour"}),
    (
        "DeliveryRequest",
        {**VALID, "expires_at": "2028-02-29T00:00:00Z"},
        {**VALID, "expires_at": "2030-02-29T00:00:00Z"},
    ),
    ("DeliveryRequest", VALID, {"sender": {"id": 1}, "recipients": [{"id": 1}], "content": {}}),
    ("DeliveryRequest", {**WITH_A_FILE, "text": "a", "texts": {"en": "b"}}, {**WITH_A_FILE, "texts": {"en": "b"}}),
    ("DeliveryRequest", {**VALID, "lane": "Ёлка 👍"}, {**VALID, "lane": "\ue000"}),
    ("SessionRequest", {"key": "a"}, {"link": "a", "code": "b"}),
    ("SessionRequest", {"code_id": "a", "code": "b", "bind_account": True}, {"link": "a", "bind_account": True}),
    ("OwnFieldRequest", {"type": "choice", "choices": ["a"]}, {"type": "number", "choices": ["a"]}),
    ("OwnFieldRequest", {"type": "number"}, {"type": "choice"}),
    ("GroupRequest", {"id": 1, "title": "Курс\u00a01"}, {"id": 1, "title": "a\tb"}),
    ("AccountChange", {"version": 1, "settings": {"token": "a"}}, {"version": 1, "settings": {"a\0": "a"}}),
    ("ProcessStart", {"kind": "scenarios", "name": ""}, {"kind": "scenarios", "name": "a\tb"}),
    ("CodeBody", {"email": "anna@example.org"}, {"email": "anna"}),
    ("CancellationRequest", {"tag": "a"}, {}),
    ("CancellationRequest", {"sender": 1}, {"sender": 1, "tag": "a"}),
    ("TaskCancellationRequest", {"lane": "a"}, {"state": "ready"}),
]


@pytest.mark.parametrize(("name", "valid", "invalid"), LIMITED)
async def test_the_schema_states_what_the_server_refuses(
    document: dict[str, Any], name: str, valid: dict[str, Any], invalid: dict[str, Any]
) -> None:
    schema = {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
    Draft202012Validator(schema).validate(valid)
    assert not Draft202012Validator(schema).is_valid(invalid)


def test_the_pattern_of_names_excludes_only_what_is_not_printable() -> None:
    excluded = [chr(one) for one in range(0x110000) if not re.search(PRINTABLE, chr(one))]
    assert excluded
    assert [one for one in excluded if one.isprintable()] == []


@pytest.mark.parametrize("last", ["группа 1", "a/b~", "漢", "👍", "\u0378"])
def test_the_pattern_of_cursors_accepts_the_cursor_behind_any_id(last: str) -> None:
    assert msgspec.convert(write_cursor(last), Cursor) == write_cursor(last)


@pytest.mark.parametrize("forged", ["i~88", "~CC~DF", "~61", "~ED~A0~80", "~C2", "~00", "a%20"])
def test_the_pattern_of_cursors_refuses_what_is_no_cursor(forged: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(forged, Cursor)
    with pytest.raises(Invalid):
        read_cursor(forged)


async def test_an_integer_may_have_a_fraction_of_zero(api: Api) -> None:
    """To JSON Schema 5.0 is an integer."""
    body = json.dumps(delivery_body(priority=5)).replace('"priority": 5', '"priority": 5.0').encode()
    assert (await api.call("POST", "/v1/deliveries", body)).status == 202
    refused = await api.call("POST", "/v1/deliveries", body.replace(b"5.0", b"5.5"))
    assert refused.code == "WRONG_TYPE"


async def test_real_responses_match_their_schemas(api: Api, courier: Couriers, document: dict[str, Any]) -> None:
    await courier("telegram")
    made = await api.call("POST", "/v1/deliveries", delivery_body(tags=["exam"], lane="a"))
    where = made.headers["Location"]
    later = await api.call("POST", "/v1/deliveries", delivery_body(deliver_at="2030-01-01T00:00:00Z", far=True))

    async def is_sent() -> bool:
        return bool((await api.call("GET", where)).json["counts"]["sent"])

    await until(is_sent)
    tasks = await api.call("GET", "/v1/queue/tasks")
    responses: dict[tuple[str, str], ApiResponse] = {
        ("post", "/v1/deliveries"): made,
        ("get", "/v1/deliveries/{id}"): await api.call("GET", where),
        ("get", "/v1/deliveries"): await api.call("GET", "/v1/deliveries"),
        ("patch", "/v1/deliveries/{id}"): await api.call(
            "PATCH", later.headers["Location"], {"deliver_at": "2031-01-01T00:00:00Z", "far": True}
        ),
        ("post", "/v1/track"): await api.call("POST", "/v1/track", {"history_key": made.json["id"], "timeout": 0}),
        ("post", "/v1/history-keys"): await api.call("POST", "/v1/history-keys", {"sender": {"id": 1}}),
        ("post", "/v1/deliveries/{id}/retry"): await api.call("POST", f"{where}/retry"),
        ("get", "/v1/queue"): await api.call("GET", "/v1/queue"),
        ("get", "/v1/queue/tasks"): tasks,
        ("get", "/v1/queue/tasks/{task_id}"): await api.call("GET", f"/v1/queue/tasks/{tasks.json['tasks'][0]['id']}"),
        ("delete", "/v1/deliveries/{id}"): await api.call("DELETE", where),
        ("post", "/v1/cancellations"): await api.call("POST", "/v1/cancellations", {"tag": "exam"}),
    }
    for (method, path), response in responses.items():
        described = document["paths"][path][method]["responses"][str(response.status)]["content"]["application/json"]
        schema = {**described["schema"], "components": document["components"]}
        Draft202012Validator(schema).validate(response.json)


class TestOperators:
    """The verbs of the queue, for operators."""

    async def test_a_task_is_buried_kicked_and_cancelled(self, api: Api) -> None:
        await api.call("POST", "/v1/deliveries", delivery_body(channels=["sms"]))
        task = (await api.call("GET", "/v1/queue/tasks?tube=sms")).json["tasks"][0]
        where = f"/v1/queue/tasks/{task['id']}"
        assert (await api.call("POST", f"{where}:bury")).json["state"] == "buried"
        buried = (await api.call("GET", "/v1/queue/tasks?state=buried")).json["tasks"]
        assert [one["id"] for one in buried] == [task["id"]]
        assert (await api.call("GET", "/v1/queue")).json["buried"] == 1
        assert (await api.call("POST", f"{where}:kick")).json["state"] == "ready"
        refused = await api.call("POST", f"{where}:kick")
        assert (refused.status, refused.code) == (409, "TASK_NOT_BURIED")
        assert (await api.call("POST", f"{where}:cancel")).status == 200
        assert (await api.call("GET", where)).code == "TASK_NOT_FOUND"
