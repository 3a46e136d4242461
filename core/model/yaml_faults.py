"""Describes a fault of a YAML file without any of its text, which may contain secrets. Pure."""

import re
from typing import Any

_QUOTED = re.compile(r"'[^']{2,}'")
"""A name of the file; a single character may be shown."""


def fault_of(error: Exception) -> str:
    """Return the problem and its place, of an error of PyYAML. Its own text also quotes the lines."""
    mark: Any = getattr(error, "problem_mark", None)
    if mark is None:
        return "it has characters that YAML does not allow"
    problem = _QUOTED.sub("'…'", getattr(error, "problem", None) or "it cannot be read")
    return f"{problem} in line {mark.line + 1}, column {mark.column + 1}"
