"""The OpenAPI 3.1 document, generated from the table of routes and the types it names."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import Struct, inspect

from core.model.json_form import JsonSchema
from delivery.api.deliveries.tracking import AnswerChanged, ClosingChanged, OutcomeChanged, StateChanged
from delivery.http.authentication import SESSION_COOKIE
from delivery.http.context import NO_CONTENT
from delivery.http.responses import ndjson, problem_types, problems, sse
from delivery.http.responses.problems import SCIM_BASE, SCIM_TYPE, ProblemDocument
from delivery.http.route import OpenRoute, Repeats, Route
from delivery.openapi_limits import HEADER_PATTERNS, PATH_PATTERNS, state_limits

AnyRoute = Route | OpenRoute

_PROBLEM = {"$ref": "#/components/responses/Refused"}
_TEXT = {"schema": {"type": "string"}}


def encode(routes: Sequence[AnyRoute], version: str) -> bytes:
    """Return the document as JSON."""
    return json.dumps(build(routes, version), ensure_ascii=False, indent=1).encode()


def build(routes: Sequence[AnyRoute], version: str) -> JsonSchema:
    """Return the document. `x-codes` lists every code of a problem document, with its status and title;
    `x-beyond-schema` those of requests that match the schema.
    """
    schemas, components = _schemas(routes)
    paths: dict[str, JsonSchema] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schemas)
    _link_new_objects(paths)
    state_limits(paths, components, _bodies(routes))
    return {
        "openapi": "3.1.0",
        "info": {"title": "Ada", "version": version, "description": _ABOUT},
        "servers": [{"url": "/"}],
        "security": [{"key": []}, {"session": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": SESSION_COOKIE},
            },
            "responses": {"Refused": _problem_response()},
        },
        "x-beyond-schema": sorted(problem_types.BEYOND_SCHEMA),
        "x-codes": {code: {"status": kind.status, "title": kind.title} for code, kind in problem_types.CODES.items()},
    }


_ABOUT = (
    "Sends one text to many recipients over all their channels and reports the outcome for each. "
    "Times are RFC 3339 with a zone. Every error is a problem document (RFC 9457) with a stable code."
)


# schemas


def _schemas(routes: Sequence[AnyRoute]) -> tuple[dict[type, JsonSchema], dict[str, JsonSchema]]:
    """Return the schema of each type (a reference) and the components that the schemas refer to."""
    types = list(dict.fromkeys(_types(routes)))
    references, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    return dict(zip(types, references, strict=True)), components


def _bodies(routes: Sequence[AnyRoute]) -> list[type[Struct]]:
    bodies = [(route.body, *(route.lines or ())[:1]) for route in routes if isinstance(route, Route)]
    return [one for some in bodies for one in some if one is not None]


def _types(routes: Sequence[AnyRoute]) -> Iterable[type]:
    yield ProblemDocument
    yield OutcomeChanged
    yield StateChanged
    yield AnswerChanged
    yield ClosingChanged
    for route in routes:
        inputs = (route.body, *(route.lines or ())) if isinstance(route, Route) else (route.body,)
        yield from (one for one in (route.response, *inputs) if isinstance(one, type) and one is not dict)


# operations


def _operation(route: AnyRoute, schemas: Mapping[type, JsonSchema]) -> JsonSchema:
    operation: JsonSchema = {
        "operationId": _operation_id(route),
        "summary": route.summary,
        "parameters": [*_path_parameters(route.path), *_query_parameters(route.query), *_headers(route)],
        "responses": {**{status: _response(route, schemas) for status in _statuses(route)}, "default": _refusal(route)},
    }
    if isinstance(route, OpenRoute):
        if route.upload:
            operation["requestBody"] = _upload(route.upload)
        elif route.body:
            operation["requestBody"] = _json_body(route.body, schemas)
        return {**operation, "security": []}
    if route.body or route.lines or route.upload:
        operation["requestBody"] = _request_body(route, schemas)
    return {**operation, "x-scope": route.scope}


def _refusal(route: AnyRoute) -> JsonSchema:
    """Return the response to what is refused: a problem document; a page refuses with a page, too."""
    if isinstance(route.response, str) and route.response.startswith("text/html"):
        content = {**_problem_response()["content"], "text/html": {"schema": {"type": "string"}}}
        return {**_problem_response(), "content": content}
    if route.path.startswith(SCIM_BASE):
        return {**_problem_response(), "content": {SCIM_TYPE: {"schema": {"type": "object"}}}}
    return _PROBLEM


def _operation_id(route: AnyRoute) -> str:
    words = re.findall(r"[a-z]+", route.path.replace("v1", "")) or ["page"]
    return "_".join([route.method.lower(), *words])


def _status(route: AnyRoute) -> int:
    return route.status


def _statuses(route: AnyRoute) -> list[str]:
    repeat = route.repeat_status if isinstance(route, Route) else 0
    return [str(status) for status in (_status(route), repeat) if status]


def _path_parameters(path: str) -> list[JsonSchema]:
    return [
        {"name": found[1], "in": "path", "required": True, "schema": _path_schema(path[: found.end()])}
        for found in re.finditer(r"\{(\w+)\}", path)
    ]


def _path_schema(path: str) -> JsonSchema:
    """Return the schema of a parameter. `path`: up to and with the parameter."""
    pattern = PATH_PATTERNS.get(path)
    return {"type": "string", **({"pattern": pattern} if pattern else {"minLength": 1})}


def _link_new_objects(paths: Mapping[str, JsonSchema]) -> None:
    """Link each POST to the GET that reads the new object; the response has its id."""
    for path, operations in paths.items():
        shown = paths.get(path + "/{id}", {}).get("get")
        if shown is None or "post" not in operations:
            continue
        for status, response in operations["post"]["responses"].items():
            if status != "default":
                parameters = {"id": "$response.body#/id"}
                response["links"] = {"read": {"operationId": shown["operationId"], "parameters": parameters}}


def _query_parameters(query: type[Struct]) -> list[JsonSchema]:
    """Return one per field. A list is given by repeating the parameter, which is OpenAPI's default."""
    return [
        {"name": field.encode_name, "in": "query", "required": field.required, "schema": _schema_of(query, field)}
        for field in _fields(query)
    ]


def _fields(shape: type[Struct]) -> Iterable[inspect.Field]:
    info = inspect.type_info(shape)
    return info.fields if isinstance(info, inspect.StructType) else ()


def _schema_of(query: type[Struct], field: inspect.Field) -> JsonSchema:
    definitions = msgspec.json.schema(query)["$defs"]
    schema = next(iter(definitions.values()))["properties"][field.encode_name]
    reference = schema.get("$ref", "").rpartition("/")[2]
    return dict(definitions[reference] if reference else schema)


def _headers(route: AnyRoute) -> list[JsonSchema]:
    if isinstance(route, OpenRoute):
        return []
    names = ["Idempotency-Key"] * (route.repeats is not Repeats.NONE)
    names += ["Last-Event-ID"] * route.path.endswith("/events")
    return [
        {
            "name": name,
            "in": "header",
            "required": False,
            "schema": {"type": "string", "pattern": HEADER_PATTERNS[name]},
        }
        for name in names
    ]


def _upload(media_type: str) -> JsonSchema:
    """Return a body that is not JSON: it has no type, and any characters. One of SCIM is an object, which the library
    of SCIM reads.
    """
    schema = {"type": "object"} if media_type == SCIM_TYPE else {"minLength": 1, "contentMediaType": media_type}
    return {"required": True, "content": {media_type: {"schema": schema}}}


def _request_body(route: Route, schemas: Mapping[type, JsonSchema]) -> JsonSchema:
    if route.upload:
        return _upload(route.upload)
    if route.lines:
        line, _ = route.lines
        return {"required": True, "content": {str(route.response): _lines(schemas[line])}}
    assert route.body, "called only for routes with a body"
    return {**_json_body(route.body, schemas), "required": not route.body_is_optional}


def _json_body(body: type[Struct], schemas: Mapping[type, JsonSchema]) -> JsonSchema:
    return {"required": True, "content": {"application/json": {"schema": schemas[body]}}}


def _response(route: AnyRoute, schemas: Mapping[type, JsonSchema]) -> JsonSchema:
    response: JsonSchema = {"description": route.summary}
    if _status(route) != NO_CONTENT:
        response["content"] = _content(route, schemas)
    if isinstance(route, Route) and route.headers:
        response["headers"] = {name: {"description": text, **_TEXT} for name, text in route.headers.items()}
    return response


def _content(route: AnyRoute, schemas: Mapping[type, JsonSchema]) -> JsonSchema:
    if isinstance(route, Route) and route.lines:
        alternatives = [schemas[route.lines[1]], schemas[ProblemDocument]]
        return {str(route.response): _lines({"anyOf": alternatives})}
    if route.response == sse.CONTENT_TYPE and route.path != "/v1/live":
        return {sse.CONTENT_TYPE: {"schema": _event(schemas)}}
    if route.response == SCIM_TYPE:
        return {SCIM_TYPE: {"schema": {"type": "object"}}}
    if isinstance(route.response, str):
        return {route.response: _TEXT}
    schema = {"type": "object"} if route.response is dict else schemas[route.response]
    return {"application/json": {"schema": schema}}


def _event(schemas: Mapping[type, JsonSchema]) -> JsonSchema:
    kinds = (OutcomeChanged, StateChanged, AnswerChanged, ClosingChanged)
    data = {"anyOf": [schemas[kind] for kind in kinds]}
    properties = {
        "id": {"type": "string", "pattern": "^[0-9]+$"},
        "event": {"enum": ["outcome", "state", "finished", "answer", "closed"]},
        "data": {"type": "string", "contentMediaType": "application/json", "contentSchema": data},
    }
    return {"type": "object", "properties": properties, "required": ["id", "event", "data"]}


def _lines(line: JsonSchema) -> JsonSchema:
    """Return the schema of NDJSON. Each line has a response of its own, so every body is accepted. `itemSchema` is of
    OpenAPI 3.2; here its name is that of an extension.
    """
    text = "one JSON document per line, each as x-itemSchema says"
    schema = {"contentMediaType": str(ndjson.CONTENT_TYPE), "description": text}
    return {"schema": schema, "x-itemSchema": line}


def _problem_response() -> JsonSchema:
    schema = {"$ref": f"#/components/schemas/{ProblemDocument.__name__}"}
    return {"description": "Refused: see the code", "content": {problems.CONTENT_TYPE: {"schema": schema}}}
