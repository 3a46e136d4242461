"""The JSON Schema of a scenario file, for editors: names, types and help while typing."""

from collections.abc import Iterable

from core.model.json_form import JsonSchema
from scenarios.schema.attributes import Field
from scenarios.schema.declaration import COMMON_FIELDS, ActionType

_PLACEHOLDER = {"type": "string", "pattern": r"\{"}
"""A text with a placeholder is right everywhere."""


def scenario_schema(types: Iterable[ActionType]) -> JsonSchema:
    """Return the schema of a mapping from names to scenarios. What editors show as an error is at most a subset of what
    `./ada scenarios check` reports; fields of an author's own are allowed.
    """
    known = list(types)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Scenarios of an Ada bot",
        "type": ["object", "null"],
        "additionalProperties": {
            "type": ["object", "null"],
            "properties": {"actions": {"type": ["array", "null", "object"], "items": {"$ref": "#/$defs/action"}}},
        },
        "$defs": {"action": action_schema(known)},
    }


def action_schema(types: list[ActionType]) -> JsonSchema:
    descriptions = "\n".join(f"{one.name}: {one.help}" for one in types)
    kind = {"enum": [one.name for one in types], "description": descriptions}
    return {
        "type": "object",
        "required": ["type"],
        "properties": {field.name: field_schema(field) for field in COMMON_FIELDS} | {"type": kind},
        "allOf": [fields_of(one) for one in types],
    }


def fields_of(kind: ActionType) -> JsonSchema:
    """Return what holds for the actions of one type."""
    then: JsonSchema = {"properties": {field.name: field_schema(field) for field in kind.fields}}
    if kind.one_of:
        then["anyOf"] = [{"required": [name]} for name in kind.one_of]
    return {"if": {"properties": {"type": {"const": kind.name}}, "required": ["type"]}, "then": then}


def field_schema(field: Field) -> JsonSchema:
    schema: JsonSchema = {"description": field.help}
    if field.type.schema:
        schema["anyOf"] = [field.type.schema, _PLACEHOLDER, {"enum": [None, "", [], {}]}]
    if field.default is not None:
        schema["default"] = field.default
    return schema
