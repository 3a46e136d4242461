"""States in the OpenAPI document what the server refuses and the schemas that msgspec makes do not say.

Called by `delivery.openapi`.
"""

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct, inspect

from core.directory.exporting import EXPORTED
from core.model.field_types import PRINTABLE, UPLOAD_ID
from core.model.json_form import JsonSchema
from core.model.own_fields import FieldType
from core.model.people import SOURCE
from core.orders import Addressee
from delivery.api import queue_tasks
from delivery.api.deliveries import bulk, changes, content, sending
from delivery.api.directory.users import OwnFieldRequest
from delivery.api.jobs import JobFilter
from delivery.api.sessions import SessionRequest
from delivery.http.fields import DELIVERY_ID

# Every text of a request is refused with a NUL character.
_NO_NUL = {"pattern": r"^[^\u0000]*$"}
_LONG = 1000
"""From this `maxLength` on a pattern stands apart: generators of requests write the length into one beside it, and
their validators take up to a second for each such repetition."""
_OTHERWISE_LIMITED = frozenset({"pattern", "enum", "format", "contentMediaType"})

PATH_PATTERNS = {
    "/v1/deliveries/{id}": DELIVERY_ID,
    "/v1/files/{id}": UPLOAD_ID,
    "/v1/queue/tasks/{task_id}": r"^[0-9]{1,5}\..+$",
    "/v1/queue/tubes/{tube}": PRINTABLE.replace("*", "+"),
    "/v1/syncs/{source}": f"^{SOURCE}$",
    "/v1/ownerships/{user}/{kind}": "^(group|supergroup)$",
    "/v1/export/{kind}": f"^({'|'.join(EXPORTED)})$",
}
"""Patterns of path parameters, by the path up to and with the parameter."""

HEADER_PATTERNS = {"Idempotency-Key": "^[!-~]([ -~]{0,253}[!-~])?$", "Last-Event-ID": "^[0-9]{1,18}$"}


def _required(*names: str) -> list[dict[str, list[str]]]:
    return [{"required": [name]} for name in names]


_SHOWS_SOMETHING: JsonSchema = {
    "anyOf": [
        {"required": ["text"]},
        {
            "required": ["content"],
            "properties": {"content": {"required": ["attachments"], "properties": {"attachments": {"minItems": 1}}}},
            "not": {"required": ["texts"]},
        },
    ]
}

_COMBINATIONS: Mapping[type[Struct], JsonSchema] = {
    sending.DeliveryRequest: _SHOWS_SOMETHING,
    bulk.BulkLine: _SHOWS_SOMETHING,
    content.ButtonRequest: {"oneOf": _required("data", "url")},
    content.AttachmentRequest: {"oneOf": _required("url", "provider_id")},
    Addressee: {
        "oneOf": _required("id", "group", "supergroup"),
        "dependentRequired": {"name": ["id"], "contacts": ["id"]},
    },
    changes.CancellationRequest: {"oneOf": _required(*changes.CancellationRequest.__struct_fields__)},
    queue_tasks.TaskCancellationRequest: {"anyOf": _required("user", "tenant", "lane", "kind_prefix", "tag")},
    queue_tasks.TaskChangeRequest: {"anyOf": _required(*queue_tasks.TaskCountQuery.__struct_fields__)},
    JobFilter: {
        "anyOf": _required("state", "kind")
        + [{"required": [name], "properties": {name: {"minLength": 1}}} for name in ("q", "reason")]
    },
    SessionRequest: {
        "oneOf": [*_required("key", "link"), {"required": ["code_id", "code"]}],
        "dependentRequired": {"code_id": ["code"], "code": ["code_id"], "bind_account": ["code"]},
    },
    OwnFieldRequest: {
        "anyOf": [
            {"properties": {"type": {"enum": ["choice"]}, "choices": {"minItems": 1}}, "required": ["choices"]},
            {
                "properties": {
                    "type": {"enum": [one for one in FieldType if one is not FieldType.CHOICE]},
                    "choices": {"maxItems": 0},
                }
            },
        ]
    },
}
"""Which fields a request needs together, in JSON Schema. The handlers check them."""


def state_limits(
    paths: Mapping[str, JsonSchema], components: dict[str, JsonSchema], inputs: Iterable[type[Struct]]
) -> None:
    """State the limits of all texts and names. `inputs`: the types of all bodies."""
    for shape, combination in _COMBINATIONS.items():
        components.get(shape.__name__, {}).update(combination)
    for struct in _structs(inspect.multi_type_info(list(inputs))):
        _state_names(struct, components[struct.cls.__name__])
    operations = [operation for methods in paths.values() for operation in methods.values()]
    sent = [[operation["parameters"], operation.get("requestBody", {})] for operation in operations]
    _refuse_nul(sent, components, set())


def _refuse_nul(schema: object, components: Mapping[str, JsonSchema], seen: set[str]) -> None:
    """State that NUL is refused for every text of these schemas, and of the components that they refer to, that has no
    limit yet.
    """
    if isinstance(schema, dict):
        if schema.get("type") == "string" and not _OTHERWISE_LIMITED & schema.keys():
            schema.update({"allOf": [_NO_NUL]} if schema.get("maxLength", 0) > _LONG else _NO_NUL)
        name = str(schema.get("$ref", "")).rpartition("/")[2]
        if name in components and name not in seen:
            seen.add(name)
            _refuse_nul(components[name], components, seen)
    for part in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        _refuse_nul(part, components, seen)


def _structs(types: Iterable[inspect.Type]) -> Iterator[inspect.StructType]:
    """Emit the structs among these types and in them."""
    for one in types:
        if isinstance(one, inspect.StructType):
            yield one
            yield from _structs(field.type for field in one.fields)
        elif isinstance(one, inspect.Metadata):
            yield from _structs([one.type])
        elif isinstance(one, inspect.UnionType):
            yield from _structs(one.types)
        elif isinstance(one, inspect.ListType):
            yield from _structs([one.item_type])


def _state_names(struct: inspect.StructType, component: JsonSchema) -> None:
    """State the limits of the names of an object, which msgspec leaves out."""
    for field in struct.fields:
        for mapping in _mappings(field.type):
            place = _object_in(component["properties"][field.encode_name])
            if place is not None:
                place["propertyNames"] = _limits(mapping.key_type)


def _mappings(expected: inspect.Type) -> Iterator[inspect.DictType]:
    if isinstance(expected, inspect.DictType):
        yield expected
    elif isinstance(expected, inspect.Metadata):
        yield from _mappings(expected.type)
    elif isinstance(expected, inspect.UnionType):
        for member in expected.types:
            yield from _mappings(member)


def _object_in(schema: JsonSchema) -> JsonSchema | None:
    """Return the schema of an object, or the one among its alternatives."""
    found = [one for one in (schema, *schema.get("anyOf", ())) if one.get("type") == "object"]
    return found[0] if found else None


def _limits(key: inspect.Type) -> JsonSchema:
    while isinstance(key, inspect.Metadata):
        key = key.type
    if isinstance(key, inspect.LiteralType):
        return {"enum": list(key.values)}
    assert isinstance(key, inspect.StrType), "names of JSON objects are texts"
    limits = {"minLength": key.min_length, "maxLength": key.max_length, "pattern": key.pattern}
    return {"type": "string", **{name: limit for name, limit in limits.items() if limit is not None}}
