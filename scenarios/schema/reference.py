"""The reference page of the actions, from their declarations."""

from collections.abc import Iterable

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
