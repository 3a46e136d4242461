"""JSON as functions and histories store it."""

from typing import Any

import msgspec

_encode = msgspec.json.Encoder().encode


def compact_json(value: Any) -> str:
    """Return JSON without spaces; non-ASCII letters are not escaped."""
    return _encode(value).decode()
