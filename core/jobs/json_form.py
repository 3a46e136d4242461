"""The form in which data of a job are stored: JSON that is read back without loss of a value."""

import json
from typing import Any

import msgspec

FAULTS = (TypeError, ValueError, OverflowError, RecursionError)
"""What `encoded` raises."""


def encoded(data: Any) -> bytes:
    """Return data as JSON. Raises one of `FAULTS` for what JSON does not have, as NaN, which would become null, and for
    two keys of a dict that would become one.
    """
    text, builtins = msgspec.json.encode(data), msgspec.to_builtins(data, str_keys=True)
    json.dumps(builtins, allow_nan=False)
    if msgspec.json.encode(builtins) != text:
        raise ValueError("two keys of a dict are one text in JSON")
    return text
