"""Shows the declarations of the actions to authors: the reference page, and the JSON Schema of a scenario file, by
which editors know names, types and help while typing.
"""

from collections.abc import Iterable

from core.model.json_form import JsonSchema
from scenarios.schema.attributes import Field
from scenarios.schema.declaration import COMMON_FIELDS, ActionType


def reference(types: Iterable[ActionType]) -> str:
    """Return Markdown: the fields that all actions have, then each action."""
    sections = [section(one) for one in types if not one.alias_of]
    return "\n".join([_INTRODUCTION, *table(COMMON_FIELDS), "", *sections]).rstrip() + "\n"


_INTRODUCTION = """# Actions of scenarios

How scenarios, chains and triggers work: [scenarios.md](scenarios.md). A field of any type may be a text
with placeholders. If these leave it empty, the action fails with `FIELD_EMPTY` and does not run with the
default, except where the field may be empty. Other names that bots of Coreness use:
[scenarios-coreness.md](scenarios-coreness.md#other-names).

## All actions
"""


def section(kind: ActionType) -> str:
    lines = [f"## {kind.name}", "", kind.help, ""]
    if kind.fields:
        lines += [*table(kind.fields), ""]
    aliases = [field.name for field in kind.fields if field.alias_of]
    if required := [f"`{name}`" for name in kind.one_of if name not in aliases]:
        lines += [
            f"One of these is required: {', '.join(required)}." if required[1:] else f"{required[0]} is required.",
            "",
        ]
    if kind.placeholder is False:
        lines += ["Placeholders are replaced only with `placeholder: true`.", ""]
    if kind.returns:
        lines += ["It adds to the chain:", ""]
        lines += [
            f"- {f'`{name}`' if name.isidentifier() else name}: {meaning}" for name, meaning in kind.returns.items()
        ]
        lines.append("")
    return "\n".join(lines)


def table(fields: Iterable[Field]) -> list[str]:
    rows = [(f"`{one.name}`", str(one.type.name), default(one), meaning(one)) for one in fields if not one.alias_of]
    lines = [("field", "type", "default", "meaning"), ("---",) * 4, *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]


def meaning(field: Field) -> str:
    return f"{field.help} May be empty." if field.may_be_empty else field.help


def default(field: Field) -> str:
    if field.default is None:
        return ""
    return f"`{str(field.default).lower() if isinstance(field.default, bool) else field.default}`"


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
        "allOf": [schema_fields_of(one) for one in types],
    }


def schema_fields_of(kind: ActionType) -> JsonSchema:
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
