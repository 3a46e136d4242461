"""Parts that many handlers share: ids in addresses, checked values, conversions of bodies."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import quote

from msgspec import UNSET, Struct, UnsetType

from core.errors import Invalid
from core.model.history_key import Id
from delivery.http.context import ApiRequest
from delivery.http.input.validation import MAX_ERRORS
from delivery.http.responses.problems import FieldError, InvalidFields

T = TypeVar("T")

PAGE = 100
"""Items of a page whose `limit` is not given."""


def part(request: ApiRequest, name: str) -> str:
    """Return a part of the address. An id in it is text: 42 is the person whose id was given as 42 or as "42"."""
    return request.http.match_info[name]


def given(body: Struct) -> dict[str, Any]:
    """Return the fields of a body that were sent."""
    fields = {name: getattr(body, name) for name in body.__struct_fields__}
    return {name: value for name, value in fields.items() if value is not UNSET}


def optional(value: T | UnsetType) -> T | None:
    """Return a parameter; None if it was not sent."""
    return None if isinstance(value, UnsetType) else value


def check(faults: Iterable[Invalid]) -> None:
    """Check that there are no faults. Raises `InvalidFields` with all faults."""
    errors = [FieldError(fault.path, fault.code, fault.detail) for fault in faults]
    if errors:
        raise InvalidFields(errors[:MAX_ERRORS])


def lists_of(contacts: Mapping[str, str | Sequence[str]]) -> dict[str, Sequence[str]]:
    """Return contacts with a list for each channel; a body may have a single address instead."""
    return {channel: [some] if isinstance(some, str) else some for channel, some in contacts.items()}


def location(collection: str, created: Id) -> dict[str, str]:
    """Return the header with the address of a new object."""
    return {"Location": f"/v1/{collection}/{quote(str(created), safe='')}"}
