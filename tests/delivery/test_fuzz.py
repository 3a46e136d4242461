"""Every operation with valid, almost valid and random input: never an internal error.

A refusal is a problem document with a known code; every other response matches its schema.
"""

import json
import re
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from delivery import openapi
from delivery.http import problems
from delivery.http.route import OpenRoute, Route
from delivery.routes import OPEN_ROUTES, ROUTES
from tests.delivery.conftest import Api, ApiResponse, delivery_body
from tests.delivery.schema_values import ANYTHING, almost_valid, valid

pytestmark = pytest.mark.timeout(300)

DOCUMENT = openapi.build((*ROUTES, *OPEN_ROUTES), "test")
COMPONENTS = DOCUMENT["components"]["schemas"]
ALL = (*ROUTES, *OPEN_ROUTES)
patient = settings(
    max_examples=settings().max_examples // 4,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def operation(route: Route | OpenRoute) -> dict[str, Any]:
    found: dict[str, Any] = DOCUMENT["paths"][route.path][route.method.lower()]
    return found


def check(route: Route | OpenRoute, response: ApiResponse) -> None:
    """The invariant of every response."""
    assert response.status < 500, response
    if response.status >= 400:
        assert response.code in problems.CODES, response
        validate(response.json, {"$ref": "#/components/schemas/ProblemDocument"})
        return
    described = operation(route)["responses"][str(response.status)]
    if response.status == 204:
        assert (response.body, "content" in described, response.headers.get("Content-Type")) == (b"", False, None)
        return
    content = described["content"]
    kind = response.headers["Content-Type"]
    assert kind in content
    if kind == "application/json":
        validate(response.json, content[kind]["schema"])


def validate(value: Any, schema: dict[str, Any]) -> None:
    Draft202012Validator({**schema, "components": DOCUMENT["components"]}).validate(value)


def bodies(route: Route | OpenRoute) -> st.SearchStrategy[bytes]:
    """Valid JSON, almost valid JSON, and random bytes."""
    noise = st.binary(max_size=60) | ANYTHING.map(dumped)
    content = operation(route).get("requestBody", {}).get("content")
    if not content:
        return noise | st.just(b"")
    schema = next(iter(content.values()))["schema"]
    return valid(schema, COMPONENTS).map(dumped) | almost_valid(schema, COMPONENTS).map(dumped) | noise


def dumped(value: Any) -> bytes:
    """NaN and lone surrogates included: a client may send them."""
    return json.dumps(value).encode()


def queries(route: Route | OpenRoute) -> st.SearchStrategy[list[tuple[str, str]]]:
    named = [one for one in operation(route)["parameters"] if one["in"] == "query"]
    plain = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
    pairs = [st.tuples(st.just(one["name"]), valid(one["schema"], COMPONENTS).map(str) | plain) for one in named]
    return st.lists(st.one_of(*pairs, st.tuples(plain, plain)), max_size=3) | st.just([])


HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "Idempotency-Key": st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=300),
        "Last-Event-ID": st.sampled_from(["", "0", "3", "-1", "x", "9" * 30, "²"]),
        "Content-Type": st.sampled_from(["application/json", "text/plain", "application/json; charset=cp1251", "/"]),
        "Content-Encoding": st.sampled_from(["gzip", "deflate", "identity", "x"]),
        "Authorization": st.sampled_from(["Bearer ada_admin", "bearer x", "Basic YTpi", "Bearer", "Bearer \xe9"]),
    },
)


@pytest.fixture
async def over(api: Api) -> str:
    """A finished delivery: waiting for it ends at once."""
    made = await api.call("POST", "/v1/deliveries", delivery_body(deliver_at="2030-01-01T00:00:00Z"))
    await api.call("DELETE", f"/v1/deliveries/{made.json['id']}")
    return str(made.json["id"])


@pytest.mark.row("D-27")
@pytest.mark.parametrize("route", ALL, ids=lambda route: f"{route.method} {route.path}")
@given(data=st.data())
@patient
async def test_no_request_causes_an_internal_error(
    api: Api, over: str, route: Route | OpenRoute, data: st.DataObject
) -> None:
    name = data.draw(st.just(over) | st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20), "id")
    path = re.sub(r"\{\w+\}", lambda part: quoted(name), route.path)
    response = await api.call(
        route.method,
        path,
        data.draw(bodies(route), "body"),
        params=data.draw(queries(route), "query"),
        headers=data.draw(HEADERS, "headers"),
    )
    if elsewhere(path, route):
        assert response.status < 500
    else:
        check(route, response)


def quoted(text: str) -> str:
    return quote(text, safe="")


def elsewhere(path: str, route: Route | OpenRoute) -> bool:
    """An id may make another route's address (every client removes "." and "..")."""
    return (
        path.count("/") != route.path.count("/") or "/." in path or path.endswith(("bulk", ":bury", ":kick", ":cancel"))
    )


@given(text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=200))
@example(text='[]{}"\\/:,<script>&quot;\u2028\u2029\r\n\t\x1b')
@example(text='{"recipients": []}')
@patient
@pytest.mark.row("D-14", "D-26")
async def test_every_text_that_is_not_white_space_is_kept_unchanged(api: Api, text: str) -> None:
    response = await api.call("POST", "/v1/deliveries", delivery_body(text=text))
    if text.isspace():
        assert response.code == "TEXT_EMPTY"
        return
    history = await api.call("GET", f"/v1/deliveries/{response.json['id']}")
    assert history.json["text"] == text
    assert (history.json["tags"], history.json["recipients"][0]["origin"]) == ([], [])


IDS = st.integers(-(2**63), 2**63 - 1) | st.text(min_size=1, max_size=128).filter(str.isprintable)


@given(sender=IDS, recipients=st.lists(IDS, min_size=1, max_size=5, unique_by=str))
@patient
@pytest.mark.row("D-03")
async def test_ids_are_returned_unchanged(api: Api, sender: int | str, recipients: list[int | str]) -> None:
    body = delivery_body(sender={"id": sender}, recipients=[{"id": one, "contacts": {}} for one in recipients])
    made = await api.call("POST", "/v1/deliveries", body)
    history = await api.call("GET", made.headers["Location"])
    assert history.status == 200, (made, history)
    assert history.json["sender"]["id"] == sender
    assert [one["id"] for one in history.json["recipients"]] == recipients
    tracked = await api.call("POST", "/v1/track", {"history_key": made.json["history_key"], "timeout": 0})
    assert tracked.json["history"]["id"] == made.json["id"]
