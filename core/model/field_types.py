"""The types of fields that callers write: their bounds and patterns, for decoding and for the OpenAPI document. Pure.

`extra` of a bound names the code of its error, where the general code would say too little.
"""

from typing import Annotated, Literal

from msgspec import Meta

INT64 = 2**63


END = r"(?!\n)$"
"""The end of a text. In Python `$` alone also matches before a last line break."""


def whole(form: str) -> str:
    """Return the pattern of texts that have a form as a whole."""
    return f"^{form}{END}"


# Characters that are not printable; `str.isprintable` refuses some rare ones more. None above U+FFFF: generators of
# requests expand each range into its characters, and a million of them takes seconds for each name.
_NOT_PRINTED = (
    r"\u0000-\u001f\u007f-\u00a0\u00ad\u1680\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000"
    r"\ue000-\uf8ff\ufeff\ufff0-\ufffb"
)
NOT_BLANK = r"[^\s\u001c-\u001f\u0085\ufeff]"
"""A character that is no white space; `\\S` means others in JavaScript than in Python."""
PRINTABLE = whole(f"[^{_NOT_PRINTED}]*")
_NOT_PRINTABLE = {"pattern": "NOT_PRINTABLE"}

Number = Annotated[int, Meta(ge=-INT64, le=INT64 - 1, description="64 bits, signed")]
Name = Annotated[
    str,
    Meta(min_length=1, max_length=128, pattern=PRINTABLE, description="printable characters", extra=_NOT_PRINTABLE),
]
IdField = Number | Name
Label = Annotated[str, Meta(max_length=256)]
Title = Annotated[
    str,
    Meta(
        max_length=256,
        description="printable characters, and spaces of any kind",
        extra_json_schema={"pattern": r"^[^\u0000-\u001f\u007f-\u009f]*$"},
    ),
]
ShortText = Annotated[str, Meta(min_length=1, max_length=64, pattern=PRINTABLE, extra=_NOT_PRINTABLE)]
Address = Annotated[
    str, Meta(min_length=1, max_length=256, description="printable characters; invisible marks round it are removed")
]

Contacts = Annotated[
    dict[ShortText, Address | Annotated[list[Address], Meta(max_length=16)]],
    Meta(max_length=32, description="channel → address or addresses"),
]
FieldValues = Annotated[
    dict[
        Annotated[str, Meta(min_length=1, max_length=64)],
        Annotated[str, Meta(max_length=4096)] | Number | float | None,
    ],
    Meta(max_length=256, description="field → value, for `{{field}}` in the text"),
]
UPLOAD_ID = whole("[0-9a-f]{32}")
UploadId = Annotated[str, Meta(pattern=UPLOAD_ID, description="the id of an uploaded file")]
DeliveryId = Annotated[str, Meta(min_length=1, max_length=512, description="the id of a delivery")]
SheetName = Annotated[str, Meta(min_length=1, max_length=64)]
Encoding = Literal["utf-8", "utf-16", "windows-1251", "koi8-r", "mac-cyrillic", "cp866", "windows-1252"]
