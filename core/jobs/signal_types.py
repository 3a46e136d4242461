"""The types of signals as a kind of job declares them, in JSON Schema, so that a sender needs no code of the kind.

Checks what `msgspec.json.schema` writes of structure; a keyword that is not known here refuses nothing.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from core.errors import Invalid

Schema = Mapping[str, Any]

_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "null": lambda data: data is None,
    "boolean": lambda data: isinstance(data, bool),
    "integer": lambda data: isinstance(data, int) and not isinstance(data, bool),
    "number": lambda data: isinstance(data, int | float) and not isinstance(data, bool),
    "string": lambda data: isinstance(data, str),
    "array": lambda data: isinstance(data, list),
    "object": lambda data: isinstance(data, dict),
}


def schemas_of(types: Mapping[str, Any]) -> dict[str, Schema]:
    """Return the schema of each signal. Raises TypeError for a type that JSON does not have."""
    return {name: msgspec.json.schema(of) for name, of in types.items()}


def check_data(name: str, schema: Schema, data: Any) -> None:
    """Check the data of a signal. Raises Invalid SIGNAL_OF_OTHER_TYPE."""
    if fault := _fault("data", schema, data, schema.get("$defs", {})):
        raise Invalid(
            "SIGNAL_OF_OTHER_TYPE", f"The job does not take these data of the signal {name!r}: {fault}.", "data"
        )


def _fault(place: str, schema: Schema, data: Any, known: Mapping[str, Schema]) -> str:
    """Return what is wrong at a place, "" if nothing is."""
    if "$ref" in schema:
        return _fault(place, known[schema["$ref"].rpartition("/")[2]], data, known)
    if "anyOf" in schema:
        faults = [_fault(place, one, data, known) for one in schema["anyOf"]]
        return "" if "" in faults else " or ".join(dict.fromkeys(faults))
    if "enum" in schema and data not in schema["enum"]:
        return f"{place} is one of {', '.join(map(repr, schema['enum']))}"
    wanted = schema.get("type", "")
    if wanted in _TYPES and not _TYPES[wanted](data):
        return f"{place} is of the type {wanted}"
    if isinstance(data, dict):
        return _fault_of_object(place, schema, data, known)
    items = schema.get("items")
    if isinstance(data, list) and items:
        return next(filter(None, (_fault(f"{place}[{n}]", items, one, known) for n, one in enumerate(data))), "")
    return ""


def _fault_of_object(place: str, schema: Schema, data: Mapping[str, Any], known: Mapping[str, Schema]) -> str:
    if missing := [name for name in schema.get("required", ()) if name not in data]:
        return f"{place}.{missing[0]} is missing"
    properties, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    for name, value in data.items():
        if name not in properties and others is False:
            return f"{place}.{name} is not known"
        of = properties.get(name, others)
        if isinstance(of, Mapping) and (fault := _fault(f"{place}.{name}", of, value, known)):
            return fault
    return ""
