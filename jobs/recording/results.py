"""Results as they are stored: JSON. What a job gets has passed through it also at the first run, so that a repeated
iteration gets the same.
"""

from typing import Any

import msgspec

from core.errors import Invalid
from core.jobs.json_form import FAULTS, encoded

LARGEST_RESULT = 1024 * 1024
"""Bytes of JSON of one stored result."""


def stored_form(name: str, result: Any, most: int = LARGEST_RESULT) -> msgspec.Raw:
    """Return a result as it is stored. Raises Invalid RESULT_TOO_LARGE, RESULT_NOT_JSON."""
    try:
        text = encoded(result)
    except FAULTS as fault:
        raise Invalid("RESULT_NOT_JSON", f"The result of {name} cannot be stored: {fault}.") from None
    if len(text) > most:
        raise Invalid("RESULT_TOO_LARGE", f"The result of {name} has {len(text)} bytes, at most {most}.")
    return msgspec.Raw(text)


def returned_form(name: str, stored: msgspec.Raw, returns: Any) -> Any:
    """Return the result as the type that the job declares. Raises Invalid RESULT_OF_OTHER_TYPE."""
    try:
        return msgspec.json.decode(stored, type=returns)
    except msgspec.ValidationError as fault:
        raise Invalid("RESULT_OF_OTHER_TYPE", f"The result of {name} is not what `returns` says: {fault}.") from None
