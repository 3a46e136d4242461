"""Formats what an import has done, or what a dry run shows that it would do, as text for people. Pure."""

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

MOST_ROWS = 20
"""Rows whose changes are shown; `--json` has the others that the API reports."""

_WIDTH = 80
_INDENT = " " * 4
_NOTHING = "(none)"

Item = Mapping[str, Any]


def summary(result: Item) -> str:
    """Return how many rows were new, changed something, or changed nothing."""
    counts = [f"{result[name]} {name}" for name in ("created", "updated", "unchanged")]
    note = " (only checked: nothing was written)" if result["dry_run"] else ""
    return f"{', '.join(counts)}{note}"


def format_import(result: Item) -> str:
    """Return the changes, if it is a dry run, and the summary."""
    return "\n".join([*_change_lines(result), summary(result)])


def _change_lines(result: Item) -> Iterator[str]:
    shown = result["changes"][:MOST_ROWS]
    for change in shown:
        yield f"row {change['row']}: {change['id']}{' is new' if change['created'] else ''}"
        yield from _field_lines(change)
    more = result["more_changes"] + len(result["changes"]) - len(shown)
    if more:
        yield f"and {more} more"


def _field_lines(change: Item) -> Iterator[str]:
    if change["created"]:
        values = ", ".join(f"{one['field']} {one['new']}" for one in change["fields"])
        yield from textwrap.wrap(values, _WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT)
        return
    for one in change["fields"]:
        yield f"{_INDENT}{one['field']}: {one['old'] or _NOTHING} → {one['new'] or _NOTHING}"
