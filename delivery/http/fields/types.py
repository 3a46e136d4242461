"""The types of fields that many bodies and queries have. Decoding, validation and the OpenAPI document use them.

An optional field is `… | UnsetType`, so null differs from a field that was not sent. `extra` of a bound names the code
of its error, where the general code would say too little.
"""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from core.model.people import EMAIL
from core.model.text import unreserved

INT64 = 2**63

# Characters that are not printable; `str.isprintable` refuses some rare ones more. None above U+FFFF: generators of
# requests expand each range into its characters, and a million of them takes seconds for each name.
_NOT_PRINTED = (
    r"\u0000-\u001f\u007f-\u00a0\u00ad\u1680\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000"
    r"\ue000-\uf8ff\ufeff\ufff0-\ufffb"
)
PRINTABLE = rf"^[^{_NOT_PRINTED}]*$"
_NOT_PRINTABLE = {"pattern": "NOT_PRINTABLE"}
_DATE = (
    r"(?!1970-01-0[12])(19[7-9][0-9]|20[0-9]{2})-"
    r"((0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])|(0[469]|11)-(29|30)|(0[13578]|1[02])-(29|3[01])|02-29)"
)
"""From the second of January 1970, with which every zone is behind the epoch, to a year that is far enough."""
_TIME_OF_DAY = r"([01][0-9]|2[0-3]):[0-5][0-9](:([0-5][0-9]|60)(\.[0-9]+)?)?"
_ZONE = r"([Zz]|[+-]([01][0-9]|2[0-3]):?[0-5][0-9])"
DELIVERY_ID = r"^(history:\{[0-9]{1,5}\}:.+:[0-9]{19}|[0-9]{1,5}\..+\.[0-9]{19})$"
"""A history key, or the id of a delivery."""

Number = Annotated[int, Meta(ge=-INT64, le=INT64 - 1, description="64 bits, signed")]
Name = Annotated[
    str,
    Meta(min_length=1, max_length=128, pattern=PRINTABLE, description="printable characters", extra=_NOT_PRINTABLE),
]
IdField = Number | Name
Label = Annotated[str, Meta(max_length=256)]
ShortText = Annotated[str, Meta(min_length=1, max_length=64, pattern=PRINTABLE, extra=_NOT_PRINTABLE)]
Time = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=64,
        description="RFC 3339, with a zone",
        extra_json_schema={"pattern": rf"^{_DATE}[Tt ]{_TIME_OF_DAY}{_ZONE}$"},
    ),
]
Address = Annotated[
    str, Meta(min_length=1, max_length=256, description="printable characters; invisible marks round it are removed")
]
Email = Annotated[str, Meta(min_length=1, max_length=254, extra_json_schema={"pattern": f"^(?=[^@]{{1,64}}@){EMAIL}$"})]


def cursor_form(pattern: str) -> Meta:
    return Meta(min_length=1, max_length=4096, pattern=pattern, extra={"pattern": "CURSOR_MALFORMED"})


Cursor = Annotated[str, cursor_form("^([A-Za-z0-9_.-]|~([2-689A-F][0-9A-F]|7[0-9A-E]))+$")]
TaskCursor = Annotated[str, cursor_form(f"^[0-9]{{1,5}}-[0-9]{{1,16}}-{unreserved.ONE}*$")]

Contacts = Annotated[
    dict[ShortText, Address | Annotated[list[Address], Meta(max_length=16)]],
    Meta(max_length=32, description="channel → address or addresses"),
]


Encoding = Literal["utf-8", "utf-16", "windows-1251", "koi8-r", "mac-cyrillic", "cp866", "windows-1252"]
"""Of a CSV file, as `core.directory.importing.encodings` names them."""


class RequestModel(Struct, forbid_unknown_fields=True, frozen=True):
    """Base of bodies and queries: unknown fields are refused."""


Limit = Annotated[int, Meta(ge=1, le=1000, extra_json_schema={"default": 100})]


class PageQuery(RequestModel, frozen=True):
    """The page of a list."""

    cursor: Cursor | UnsetType = UNSET
    limit: Limit | UnsetType = UNSET
