"""Reads a request to sendsms as Kannel does; refusals have Kannel's texts."""

import codecs
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

BASIC = frozenset(
    "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?"
    "¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
)
EXTENSION = frozenset("\f^{}\\[~]|€")  # each takes two septets: an escape and the character

GSM, UCS2 = 0, 2
_SINGLE = {GSM: 160, UCS2: 70}
_CONCATENATED = {GSM: 153, UCS2: 67}

MAX_MASK = 66  # as gw/smsbox.c has it
_NUMBER = re.compile(r"\+?[0-9]+")


def as_gsm(text: str) -> str:
    """Return the text as received in GSM 03.38: a character outside the alphabet becomes a question mark."""
    return "".join(character if character in BASIC or character in EXTENSION else "?" for character in text)


def parts(text: str, coding: int) -> int:
    """Return how many SMS the text takes. An escape sequence or surrogate pair is never cut in two."""
    sizes = [_size(character, coding) for character in text]
    return 1 if sum(sizes) <= _SINGLE[coding] else _part_count(sizes, _CONCATENATED[coding])


def _size(character: str, coding: int) -> int:
    if coding == GSM:
        return 2 if character in EXTENSION else 1
    return 2 if ord(character) > 0xFFFF else 1


def _part_count(sizes: Iterable[int], capacity: int) -> int:
    """Count the parts that these letters fill, one after the other."""
    full, used = 0, 0
    for size in sizes:
        if used + size > capacity:
            full, used = full + 1, 0
        used += size
    return full + 1


class Refused(Exception):
    """A response other than 202."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True, slots=True)
class Submission:
    """One accepted request. `text` is the text as the telephones receive it."""

    sender: str
    numbers: tuple[str, ...]  # as written in the request
    text: str
    coding: int
    dlr_mask: int
    dlr_url: str
    validity: int | None  # minutes
    username: str


def denied_numbers() -> Refused:
    return Refused(400, "Number(s) has/have been denied by white- and/or black-lists.")


def parse_query(query: str) -> dict[str, str]:
    """Return the parameters with one character per byte: the bytes of the text are decoded later, by `charset`."""
    return dict(parse_qsl(query, keep_blank_values=True, encoding="latin-1"))


def read_submission(parameters: Mapping[str, str]) -> Submission:
    """Read the parameters of an authorised request. Raises Refused."""
    numbers = _numbers(parameters)
    if not parameters.get("from"):
        raise Refused(400, "Sender missing and no global set, rejected")
    coding = _integer(parameters, "coding", "Coding") or GSM
    if coding not in (GSM, UCS2):  # Kannel also accepts 1 (8 bits); the sandbox has no telephone that could show it
        raise Refused(400, "Coding field misformed, rejected")
    return Submission(
        sender=_utf8(parameters["from"]),
        numbers=numbers,
        text=_text(parameters, coding),
        coding=coding,
        dlr_mask=_integer(parameters, "dlr-mask", "DLR-Mask", MAX_MASK) or 0,
        dlr_url=_utf8(parameters.get("dlr-url", "")),
        validity=_integer(parameters, "validity", "Validity"),
        username=parameters.get("username", ""),
    )


def _numbers(parameters: Mapping[str, str]) -> tuple[str, ...]:
    if "to" not in parameters:
        raise Refused(400, "Missing receiver number, rejected")
    if parameters["to"] == "":
        raise Refused(400, "Empty receiver number not allowed, rejected")
    numbers = tuple(number for number in parameters["to"].split(" ") if _NUMBER.fullmatch(number))
    if not numbers:  # among valid numbers, invalid ones are silently dropped, as by Kannel
        raise denied_numbers()
    return numbers


def _integer(parameters: Mapping[str, str], name: str, title: str, maximum: int | None = None) -> int | None:
    """Read a number like C's atoi: text is 0, and -1 means "not given" to Kannel."""
    if name not in parameters:
        return None
    digits = re.match(r"\s*([+-]?[0-9]{1,9})", parameters[name])
    number = int(digits[1]) if digits else 0
    if number < -1 or (maximum is not None and number > maximum):
        raise Refused(400, f"{title} field misformed, rejected")
    return None if number == -1 else number


def _text(parameters: Mapping[str, str], coding: int) -> str:
    raw = parameters.get("text", "").encode("latin-1")
    charset = parameters.get("charset") or ("utf-16-be" if coding == UCS2 else "utf-8")
    try:
        text = raw.decode(codecs.lookup(charset).name, "strict" if "charset" in parameters else "replace")
    except (LookupError, ValueError):
        raise Refused(400, "Charset or body misformed, rejected") from None
    return text if coding == UCS2 else as_gsm(text)


def _utf8(value: str) -> str:
    return value.encode("latin-1").decode("utf-8", "replace")
