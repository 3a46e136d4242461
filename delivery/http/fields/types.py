"""The types of fields that many bodies and queries have. Decoding, validation and the OpenAPI document use them.

An optional field is `… | UnsetType`, so null differs from a field that was not sent. `extra` of a bound names the code
of its error, where the general code would say too little.
"""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from core.model.people import EMAIL
from core.model.text import characters

_DATE = (
    r"(?!1970-01-0[12])(19[7-9][0-9]|20[0-9]{2})-"
    r"((0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])|(0[469]|11)-(29|30)|(0[13578]|1[02])-(29|3[01])|02-29)"
)
"""From the second of January 1970, with which every zone is behind the epoch, to a year that is far enough."""
_TIME_OF_DAY = r"([01][0-9]|2[0-3]):[0-5][0-9](:([0-5][0-9]|60)(\.[0-9]+)?)?"
_ZONE = r"([Zz]|[+-]([01][0-9]|2[0-3]):?[0-5][0-9])"
DELIVERY_ID = r"^(history:\{[0-9]{1,5}\}:.+:[0-9]{19}|[0-9]{1,5}\..+\.[0-9]{19})$"
"""A history key, or the id of a delivery."""

Time = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=64,
        description="RFC 3339, with a zone",
        extra_json_schema={"pattern": rf"^{_DATE}[Tt ]{_TIME_OF_DAY}{_ZONE}$"},
    ),
]
Email = Annotated[str, Meta(min_length=1, max_length=254, extra_json_schema={"pattern": f"^(?=[^@]{{1,64}}@){EMAIL}$"})]


def cursor_form(pattern: str) -> Meta:
    return Meta(min_length=1, max_length=4096, pattern=pattern, extra={"pattern": "CURSOR_MALFORMED"})


Cursor = Annotated[str, cursor_form("^([A-Za-z0-9_.-]|~([2-689A-F][0-9A-F]|7[0-9A-E]))+$")]
TaskCursor = Annotated[str, cursor_form(f"^[0-9]{{1,5}}-[0-9]{{1,16}}-{characters.ONE}*$")]
"""Of a CSV file, as `core.directory.importing.encodings` names them."""


class RequestModel(Struct, forbid_unknown_fields=True, frozen=True):
    """Base of bodies and queries: unknown fields are refused."""


Limit = Annotated[int, Meta(ge=1, le=1000, extra_json_schema={"default": 100})]


class PageQuery(RequestModel, frozen=True):
    """The page of a list."""

    cursor: Cursor | UnsetType = UNSET
    limit: Limit | UnsetType = UNSET
