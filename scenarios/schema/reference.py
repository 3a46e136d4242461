"""The reference page of the actions, from their declarations."""

from collections.abc import Iterable

from scenarios.schema.attributes import Field
from scenarios.schema.declaration import COMMON_FIELDS, ActionType


def reference(types: Iterable[ActionType]) -> str:
    """Return Markdown: the fields that all actions have, then each action."""
    return "\n".join([_INTRODUCTION, *table(COMMON_FIELDS), "", *(section(one) for one in types)]).rstrip() + "\n"


_INTRODUCTION = """# Actions of scenarios

How scenarios, chains and triggers work: [scenarios.md](scenarios.md). A field of any type may be a text
with placeholders.

## All actions
"""


def section(kind: ActionType) -> str:
    lines = [f"## {kind.name}", "", kind.help, ""]
    if kind.fields:
        lines += [*table(kind.fields), ""]
    if kind.one_of:
        lines += [f"One of these is required: {', '.join(f'`{name}`' for name in kind.one_of)}.", ""]
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
    rows = [(f"`{field.name}`", str(field.type.name), default(field), field.help) for field in fields]
    lines = [("field", "type", "default", "meaning"), ("---",) * 4, *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]


def default(field: Field) -> str:
    if field.default is None:
        return ""
    return f"`{str(field.default).lower() if isinstance(field.default, bool) else field.default}`"
