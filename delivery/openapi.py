"""The OpenAPI 3.1 document, drawn from the table of routes and the types they name."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct, inspect

from delivery.http import problems
from delivery.http.route import OpenRoute, Repeats, Route
from delivery.schemas import responses as answers

Schema = dict[str, Any]
AnyRoute = Route | OpenRoute

_REFUSED = {"$ref": "#/components/responses/Refused"}
_TEXT = {"schema": {"type": "string"}}


def written(routes: Sequence[AnyRoute], version: str) -> bytes:
    """The document as JSON."""
    return json.dumps(document(routes, version), ensure_ascii=False, indent=1).encode()


def document(routes: Sequence[AnyRoute], version: str) -> Schema:
    """The document. `x-codes` lists every code of a refusal, with its status and title."""
    told, components = _schemas(routes)
    paths: dict[str, Schema] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, told)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Ada", "version": version, "description": _ABOUT},
        "servers": [{"url": "/"}],
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "responses": {"Refused": _refused()},
        },
        "x-codes": {code: {"status": one.status, "title": one.title} for code, one in problems.CODES.items()},
    }


_ABOUT = (
    "One text to many people over every channel they have, and who got it and how. "
    "Times are RFC 3339 with a zone. Every refusal is a problem document (RFC 9457) with a stable code."
)


# schemas


def _schemas(routes: Sequence[AnyRoute]) -> tuple[dict[type, Schema], dict[str, Schema]]:
    """Each type's schema (a reference) and the components that they refer to."""
    types = list(dict.fromkeys(_types(routes)))
    references, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    return dict(zip(types, references, strict=True)), components


def _types(routes: Sequence[AnyRoute]) -> Iterable[type]:
    yield answers.Refusal
    yield answers.OutcomeChanged
    yield answers.StateChanged
    for route in routes:
        asked = (route.body, *(route.lines or ())) if isinstance(route, Route) else ()
        yield from (one for one in (route.answers, *asked) if isinstance(one, type) and one is not dict)


# operations


def _operation(route: AnyRoute, told: Mapping[type, Schema]) -> Schema:
    operation: Schema = {
        "operationId": _operation_id(route),
        "summary": route.does,
        "parameters": [*_path_parameters(route.path), *_query_parameters(route.query), *_headers(route)],
        "responses": {str(_status(route)): _answer(route, told), "default": _REFUSED},
    }
    if isinstance(route, OpenRoute):
        return {**operation, "security": []}
    if route.body or route.lines:
        operation["requestBody"] = _request(route, told)
    return {**operation, "x-scope": route.scope}


def _operation_id(route: AnyRoute) -> str:
    words = re.findall(r"[a-z]+", route.path.replace("v1", "")) or ["page"]
    return "_".join([route.method.lower(), *words])


def _status(route: AnyRoute) -> int:
    return route.status if isinstance(route, Route) else 200


def _path_parameters(path: str) -> list[Schema]:
    return [
        {"name": name, "in": "path", "required": True, **_TEXT}
        for name in re.findall(r"\{(\w+)\}", path)
    ]  # fmt: skip


def _query_parameters(query: type[Struct]) -> list[Schema]:
    """One for each field. Lists are given by repeating the parameter, which is OpenAPI's default."""
    return [
        {"name": field.encode_name, "in": "query", "required": field.required, "schema": _schema_of(query, field)}
        for field in _fields(query)
    ]


def _fields(shape: type[Struct]) -> Iterable[inspect.Field]:
    told = inspect.type_info(shape)
    return told.fields if isinstance(told, inspect.StructType) else ()


def _schema_of(query: type[Struct], field: inspect.Field) -> Schema:
    whole = msgspec.json.schema(query)
    schema = next(iter(whole["$defs"].values()))["properties"][field.encode_name]
    reference = schema.get("$ref", "").rpartition("/")[2]
    return dict(whole["$defs"][reference] if reference else schema)


def _headers(route: AnyRoute) -> list[Schema]:
    if isinstance(route, OpenRoute):
        return []
    names = ["Idempotency-Key"] * (route.repeats is not Repeats.NONE)
    names += ["Last-Event-ID"] * route.path.endswith("/events")
    return [{"name": name, "in": "header", "required": False, **_TEXT} for name in names]


def _request(route: Route, told: Mapping[type, Schema]) -> Schema:
    if route.lines:
        line, _ = route.lines
        return {"required": True, "content": {str(route.answers): {"schema": told[line]}}}
    assert route.body, "asked only for routes with a body"
    return {"required": not route.optional, "content": {"application/json": {"schema": told[route.body]}}}


def _answer(route: AnyRoute, told: Mapping[type, Schema]) -> Schema:
    answer: Schema = {"description": route.does, "content": _content(route, told)}
    if isinstance(route, Route) and route.headers:
        answer["headers"] = {name: {"description": text, **_TEXT} for name, text in route.headers.items()}
    return answer


def _content(route: AnyRoute, told: Mapping[type, Schema]) -> Schema:
    if isinstance(route, Route) and route.lines:
        either = [told[route.lines[1]], told[answers.Refusal]]
        return {str(route.answers): {"schema": {"anyOf": either}}}
    if isinstance(route.answers, str):
        return {route.answers: _TEXT}
    schema = {"type": "object"} if route.answers is dict else told[route.answers]
    return {"application/json": {"schema": schema}}


def _refused() -> Schema:
    schema = {"$ref": f"#/components/schemas/{answers.Refusal.__name__}"}
    return {"description": "Refused: see its code", "content": {problems.CONTENT_TYPE: {"schema": schema}}}
