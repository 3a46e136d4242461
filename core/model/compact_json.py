"""JSON as the scripts and histories keep it."""

from typing import Any

import msgspec

_encode = msgspec.json.Encoder().encode


def compact_json(value: Any) -> str:
    """JSON without spaces, non-ASCII letters as they are."""
    return _encode(value).decode()
