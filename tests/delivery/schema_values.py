"""Hypothesis strategies for values of a JSON schema: valid and almost valid."""

from typing import Any

from hypothesis import strategies as st

Schema = dict[str, Any]

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
_WORDS = st.sampled_from(["telegram", "sms", "vk", "2026-11-21T17:00:00+03:00", "history:{0}:42:1763712000000000000"])


def valid(schema: Schema, components: Schema) -> st.SearchStrategy[Any]:
    """Values that the schema allows."""
    if "$ref" in schema:
        return valid(components[schema["$ref"].rpartition("/")[2]], components)
    if "anyOf" in schema:
        return st.one_of([valid(one, components) for one in schema["anyOf"]])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    found: st.SearchStrategy[Any] = _OF_TYPE[schema["type"]](schema, components)
    return found


def _object(schema: Schema, components: Schema) -> st.SearchStrategy[Any]:
    if isinstance(schema.get("additionalProperties"), dict):
        values = valid(schema["additionalProperties"], components)
        return st.dictionaries(_WORDS | _string({"minLength": 1, "maxLength": 8}, components), values, max_size=3)
    fields = {name: valid(one, components) for name, one in schema["properties"].items()}
    required = set(schema["required"])
    return st.fixed_dictionaries(
        {name: one for name, one in fields.items() if name in required},
        optional={name: one for name, one in fields.items() if name not in required},
    )


def _array(schema: Schema, components: Schema) -> st.SearchStrategy[Any]:
    fewest = schema.get("minItems", 0)
    return st.lists(valid(schema["items"], components), min_size=fewest, max_size=max(fewest, 3))


def _string(schema: Schema, components: Schema) -> st.SearchStrategy[str]:
    longest = min(schema.get("maxLength", 30), 30)
    free = st.text(min_size=schema.get("minLength", 0), max_size=longest)
    return _WORDS.filter(lambda word: len(word) <= longest) | free if longest > 10 else free


def _integer(schema: Schema, components: Schema) -> st.SearchStrategy[int]:
    return st.integers(schema.get("minimum"), schema.get("maximum"))


def _number(schema: Schema, components: Schema) -> st.SearchStrategy[float]:
    return st.floats(schema.get("minimum"), schema.get("maximum"), allow_nan=False)


_OF_TYPE: dict[str, Any] = {
    "object": _object,
    "array": _array,
    "string": _string,
    "integer": _integer,
    "number": _number,
    "null": lambda schema, components: st.none(),
    "boolean": lambda schema, components: st.booleans(),
}


@st.composite
def almost_valid(draw: st.DrawFn, schema: Schema, components: Schema) -> Any:
    """A valid value with one part replaced by anything."""
    value = draw(valid(schema, components))
    place = value
    while isinstance(place, dict | list) and place:
        names = list(place) if isinstance(place, dict) else list(range(len(place)))
        name = draw(st.sampled_from(names))
        if not isinstance(place[name], dict | list) or draw(st.booleans()):
            place[name] = draw(ANYTHING)
            return value
        place = place[name]
    return value
