"""Reads variables.yaml: the variables of people, chats and runs (C-93).

person:
  name: text
  age: {type: number}
  course: {type: choice, options: [first, second]}
  visits: {type: number, default: 0, expire: 30d}
"""

import re

from scenarios.bot.model import SCOPES, TYPES, Variable
from scenarios.bot.nodes import MapNode, Node, Scalar, plain
from scenarios.bot.times import read_duration
from scenarios.loader.reading import Reader
from scenarios.schema.variables import VariableFault, fitted
from scenarios.words import placed, sentence

FIELDS = ("type", "options", "default", "expire")
_NAME = re.compile(r"[^\W\d]\w{0,63}")


def read_variables(reader: Reader, root: Node | None) -> dict[str, Variable]:
    """Return the variables by their full names, such as `person.age`. What is wrong is reported and left out."""
    found = {}
    for scope, names in reader.pairs(root, "variables.yaml"):
        if scope.text not in SCOPES:
            reader.unknown(scope, SCOPES, "UNKNOWN_SECTION", sentence("part_variables_yaml", words=", ".join(SCOPES)))
            continue
        for name, node in reader.pairs(names, scope.text):
            if _NAME.fullmatch(name.text) is None:
                reader.wrong(name, sentence("variable_name"), sentence("letters_digits_underscore"))
            elif (variable := read_variable(reader, name, node)) is not None:
                found[f"{scope.text}.{name.text}"] = variable
    return found


def read_variable(reader: Reader, name: Scalar, node: Node) -> Variable | None:
    """Return a declaration: the name of its type, or a mapping."""
    fields: dict[str, Node] = (
        {key.text: value for key, value in node.pairs} if isinstance(node, MapNode) else {"type": node}
    )
    for key, _ in node.pairs if isinstance(node, MapNode) else ():
        if key.text not in FIELDS:
            reader.unknown(key, FIELDS, "UNKNOWN_FIELD", sentence("field_variable"))
    options = tuple(
        text for one in reader.one_or_many(fields.get("options")) if (text := reader.text(one, sentence("option")))
    )
    kind = reader.text(fields.get("type"), "type") or ("choice" if options else "text")
    if kind not in TYPES:
        reader.wrong(
            fields.get("type") or node, sentence("type_of", name=name.text), sentence("one_of", words=", ".join(TYPES))
        )
        return None
    if kind == "choice" and not options:
        reader.error(node, "MISSING_FIELD", sentence("choice_needs_options_such", name=name.text))
        return None
    return with_default(reader, Variable(kind, options, expire=lifetime(reader, fields.get("expire"))), fields)


def lifetime(reader: Reader, node: Node | None) -> int:
    """Return a lifetime in seconds, 0 for none."""
    text = reader.text(node, "expire")
    duration = read_duration(text) if text else None
    if text and duration is None and node is not None:
        reader.wrong(node, "expire", sentence("duration_example_d_2"))
    return int(duration.total_seconds()) if duration else 0


def with_default(reader: Reader, variable: Variable, fields: dict[str, Node]) -> Variable:
    node = fields.get("default")
    value = plain(node) if node is not None else None
    if node is None or value is None:
        return variable
    try:
        default = fitted(value, variable, None)
    except VariableFault as fault:
        reader.error(node, "WRONG_TYPE", placed("default", fault.said))
        return variable
    return Variable(variable.type, variable.options, default, variable.expire)
