"""Checks the values of callers and handlers before they join a batch: a wrong value harms its own caller alone. Pure.

Used by `core.queue` where a value comes in, and by `couriers.sending` for the outcomes of couriers.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from numbers import Real

from core.errors import Invalid

LARGEST = 4 * 1024 * 1024
"""Bytes of the texts of one task or settlement. A full batch stays below the server's limit for a command, 1 GB."""

_TYPES: Mapping[type, str] = {
    str: "a text (str)",
    int: "a whole number (int)",
    timedelta: "a timedelta, for example timedelta(seconds=5)",
    Real: "a number",
    tuple: "a tuple",
}


def check_texts(owner: str, **texts: object) -> None:
    """Raise TypeError for what is no text; Invalid LONE_SURROGATE, TEXT_TOO_LONG."""
    size = 0
    for name, text in texts.items():
        if not isinstance(text, str):
            raise _wrong_type(owner, name, text, _TYPES[str])
        size += len(text) if text.isascii() else _size_of(owner, name, text)
    if size > LARGEST:
        raise Invalid("TEXT_TOO_LONG", f"The texts of a {owner} have {size} bytes, and {LARGEST} at most.")


def check_type(owner: str, name: str, value: object, wanted: type) -> None:
    """Raise TypeError for what is not of the type."""
    if not isinstance(value, wanted) or isinstance(value, bool):
        raise _wrong_type(owner, name, value, _TYPES.get(wanted, f"a {wanted.__name__}"))


def check_spans(owner: str, **spans: object) -> None:
    """Raise TypeError for what is neither a timedelta nor None."""
    for name, span in spans.items():
        if span is not None:
            check_type(owner, name, span, timedelta)


def check_time(owner: str, name: str, time: object) -> None:
    """Raise TypeError for what is no moment: a datetime without a time zone is none."""
    if not isinstance(time, datetime):
        raise _wrong_type(owner, name, time, "a datetime with a time zone")
    if time.utcoffset() is None:
        raise TypeError(f"The {name} of a {owner} has no time zone: {time}; write datetime.now(UTC), for example.")


def check_tags(owner: str, tags: object) -> Sequence[str]:
    """Return the tags of a task. Raises TypeError; Invalid TAG_MALFORMED."""
    if isinstance(tags, str | bytes) or not hasattr(tags, "__iter__"):
        raise _wrong_type(owner, "tags", tags, "a list of texts")
    found = tuple(tags)
    for tag in found:
        check_texts(owner, tag=tag)
        if not tag or "\n" in tag:
            raise Invalid("TAG_MALFORMED", "A tag is one line of text.", "tags")
    return found


def storable(text: str) -> str:
    """Return a text with an escape for each half of a surrogate pair, which cannot be stored."""
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()


def error_text(fault: BaseException) -> str:
    """Return the name of an error, and its text if that can be read: it is foreign code."""
    try:
        return storable(f"{type(fault).__name__}: {fault}")
    except BaseException:  # noqa: BLE001
        return type(fault).__name__


def _size_of(owner: str, name: str, text: str) -> int:
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        detail = f"The {name} of a {owner} has half of a surrogate pair, which is no character."
        raise Invalid("LONE_SURROGATE", detail, name) from None


def _wrong_type(owner: str, name: str, value: object, wanted: str) -> TypeError:
    return TypeError(f"The {name} of a {owner} must be {wanted}, and not {type(value).__name__}.")
