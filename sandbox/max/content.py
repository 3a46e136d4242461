"""Reads what a bot sends: the text with its marks, the keyboard and the files, with the limits of MAX.

The unit of the 4,000 characters is not documented: UTF-16 code units are counted, the strictest.
"""

import re
from collections.abc import Mapping, Sequence
from html import unescape
from typing import Any

from sandbox.max.errors import malformed
from sandbox.max.uploads import Uploads

LONGEST_TEXT, MOST_ATTACHMENTS = 4000, 12
_MOST_ROWS, _MOST_IN_ROW, _MOST_WIDE = 30, 7, 3
_LONGEST_LABEL, _LONGEST_PAYLOAD, _LONGEST_LINK = 128, 1024, 2048
_WIDE = frozenset({"link", "open_app", "request_contact", "request_geo_location"})
_BUTTONS = _WIDE | {"callback", "message", "clipboard"}
_MARKS = re.compile(r"</?(b|strong|i|em|s|del|u|ins|code|pre|a|mark|blockquote|h1)(\s[^<>]*)?>", re.IGNORECASE)
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")

Json = dict[str, Any]


def read_content(given: Any, uploads: Uploads) -> Json:
    """Return the fields `text`, `attachments`, `markup` of a body, those that are given. Raises ApiError."""
    if not isinstance(given, dict):
        raise malformed("the body is not an object")
    content: Json = {}
    if given.get("text") is not None:
        content |= _text(given["text"], given.get("format"))
    if given.get("attachments") is not None:
        content["attachments"] = _attachments(given["attachments"], uploads)
    return content


def _text(text: Any, written: Any) -> Json:
    if not isinstance(text, str) or len(text.encode("utf-16-le", "surrogatepass")) // 2 > LONGEST_TEXT:
        raise malformed(f"text: size must be between 0 and {LONGEST_TEXT}")
    if written not in (None, "html", "markdown", "none"):
        raise malformed("format: unknown")
    if written != "html":
        return {"text": text, "markup": []}
    marks = [{"type": found[1].lower()} for found in _MARKS.finditer(text) if not found[0].startswith("</")]
    return {"text": unescape(_TAG.sub("", text)), "markup": marks}


def _attachments(given: Any, uploads: Uploads) -> Sequence[Json]:
    if not isinstance(given, list) or len(given) > MOST_ATTACHMENTS:
        raise malformed(f"attachments: at most {MOST_ATTACHMENTS}")
    return [_attachment(one, uploads) for one in given]


def _attachment(given: Any, uploads: Uploads) -> Json:
    kind, payload = (given.get("type"), given.get("payload")) if isinstance(given, dict) else (None, None)
    if not isinstance(payload, dict):
        raise malformed("attachments: an attachment has a type and a payload")
    if kind == "inline_keyboard":
        return {"type": kind, "payload": {"buttons": _rows(payload.get("buttons"))}}
    file = uploads.find(str(kind), payload)
    return {"type": kind, "payload": {"token": file.token, "url": f"https://i.oneme.ru/{file.token}"}, **file.about()}


def _rows(given: Any) -> list[list[Json]]:
    """Return the buttons of a keyboard. Raises ApiError."""
    if not isinstance(given, list) or not 1 <= len(given) <= _MOST_ROWS:
        raise malformed(f"buttons: 1 to {_MOST_ROWS} rows")
    return [_row(row) for row in given]


def _row(given: Any) -> list[Json]:
    row = [_button(one) for one in given] if isinstance(given, list) else []
    most = _MOST_WIDE if any(one["type"] in _WIDE for one in row) else _MOST_IN_ROW
    if not 1 <= len(row) <= most:
        raise malformed(f"buttons: 1 to {most} in a row")
    return row


def _button(given: Any) -> Json:
    kind, text = (given.get("type"), given.get("text")) if isinstance(given, dict) else (None, None)
    if kind not in _BUTTONS or not isinstance(text, str) or not 1 <= len(text) <= _LONGEST_LABEL:
        raise malformed("buttons: unknown type, or text is empty or too long")
    _check_length(given, "payload", _LONGEST_PAYLOAD, is_needed=kind in ("callback", "clipboard"))
    _check_length(given, "url", _LONGEST_LINK, is_needed=kind == "link")
    return dict(given)


def _check_length(given: Mapping[str, Any], name: str, longest: int, *, is_needed: bool) -> None:
    value = given.get(name)
    if (value is None and is_needed) or (value is not None and not (isinstance(value, str) and len(value) <= longest)):
        raise malformed(f"buttons: {name} is missing or too long")


def rows_of(message: Json) -> list[list[Json]]:
    """Return the buttons below a message."""
    keyboards = [one for one in message["body"].get("attachments") or () if one["type"] == "inline_keyboard"]
    rows: list[list[Json]] = keyboards[0]["payload"]["buttons"] if keyboards else []
    return rows
