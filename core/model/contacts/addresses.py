"""Addresses of a person in a channel: their forms, and what is none. The rule is the same wherever one enters.

The record of a channel names the form of its addresses. A channel without a form has only one form of each address, and
every printable text is one. Core lies below the couriers, so the registry of channels is found by its name, when it is
first asked; it does not depend on which module of a process was imported first.

Two written forms of one phone number are one contact, and the couriers send to the number in E.164; libphonenumber
knows the forms of each country.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import NamedTuple, Protocol

import idna
import phonenumbers

from core.model.text.characters import nfc, without_marks

_REGISTRY = "couriers.channel"


class AddressForm(NamedTuple):
    """`example` stands behind "An address of this channel is". `canonical`: returns the one form of all written forms
    of an address; what is no address stays as it is. `is_group`: returns whether several people read an address.
    """

    accepts: Callable[[str], object]
    example: str
    canonical: Callable[[str], str] = str
    is_group: Callable[[str], bool] = lambda address: address.startswith("-")


class RegisteredChannel(Protocol):
    """The fields of `couriers.channel.Channel` that core reads."""

    @property
    def address(self) -> AddressForm | None: ...
    @property
    def column_names(self) -> Sequence[str]: ...
    @property
    def titles(self) -> Mapping[str, str]: ...
    @property
    def is_known_at_start(self) -> bool: ...


@cache
def channel_records() -> Mapping[str, RegisteredChannel]:
    """Return the record of each channel by its name, in the order of lists."""
    records: Mapping[str, RegisteredChannel] = import_module(_REGISTRY).channels()
    return records


def channel_title(channel: str, language: str) -> str:
    """Return the name of a channel as people of a language (`en`, `ru`) know it."""
    record = channel_records().get(channel)
    titles = record.titles if record else {}
    return titles.get(language) or titles.get("en") or channel


def channel_titles(language: str) -> Mapping[str, str]:
    """Return the name of each channel as people of a language know it."""
    return {channel: channel_title(channel, language) for channel in channel_records()}


def address_form(channel: str) -> AddressForm | None:
    """Return the form of the addresses of a channel; None if every printable text is one."""
    record = channel_records().get(channel)
    return record.address if record else None


@cache
def channel_of_form(form: AddressForm) -> str:
    """Return the first channel whose addresses have a form; "" if there is none."""
    return next((channel for channel, record in channel_records().items() if record.address is form), "")


_SEPARATORS = re.compile(r"[\s().\u2010-\u2015\u2212-]+")
# A number without a country code is Russian: 8 is the trunk prefix there, 9 begins a mobile number. These forms need no
# library, which takes a hundred times as long. No area begins with 0, 1 or 2: in Belarus 8 029 … is +375 29 ….
# +7 000 …, which no operator has, is how the sandbox names its faults (docs/sandbox.md).
_RUSSIAN = re.compile(r"(?:\+7|[78])([3-9]\d{9})|(9\d{9})|\+7(000\d{7})", re.ASCII)
_INTERNATIONAL = re.compile(r"(?:\+|00)(?!7[0-2])([1-9]\d{6,14})", re.ASCII)

_CHAT_ID = re.compile(r"-?[1-9][0-9]{0,15}")
_USERNAME = re.compile(r"@[A-Za-z][A-Za-z0-9_]{3,31}")
_PEER = re.compile(r"-?[1-9][0-9]{0,17}")
_INT64 = re.compile(r"-?[1-9][0-9]{0,18}")
_LOCAL_PART = re.compile(r'[^\s()<>\[\]:;@\\,"]{1,64}')
_DOMAIN = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)(?:\.(?!-)[a-z0-9-]{1,63}(?<!-))*", re.IGNORECASE)
_MOST_OCTETS = 254  # RFC 5321, 4.5.3.1.3


def e164(written: str) -> str | None:
    """Return "+79991112233" for "8 (999) 111-22-33", None for what is not a phone number.

    A number that is possible counts, also if it is not assigned: lists of assigned numbers are never complete.
    """
    digits = _SEPARATORS.sub("", without_marks(written))
    if russian := _RUSSIAN.fullmatch(digits):
        return f"+7{russian[1] or russian[2] or russian[3]}"
    international = _INTERNATIONAL.fullmatch(digits)
    return _of_any_country(f"+{international[1]}") if international else None


def is_phone_number(written: str) -> bool:
    """Return whether `e164` returns a number. Ten times as fast for a foreign one, because it does not write it."""
    digits = _SEPARATORS.sub("", without_marks(written))
    if _RUSSIAN.fullmatch(digits):
        return True
    international = _INTERNATIONAL.fullmatch(digits)
    return international is not None and (_is_possible(international[1]) or e164(digits) is not None)


def _is_possible(digits: str) -> bool:
    """Return whether the digits are a country code and a number of a length that is possible there."""
    for length in (1, 2, 3):
        if (code := int(digits[:length])) in phonenumbers.COUNTRY_CODE_TO_REGION_CODE:
            number = phonenumbers.PhoneNumber(country_code=code, national_number=int(digits[length:]))
            return digits[length] != "0" and phonenumbers.is_possible_number(number)
    return False


def _of_any_country(digits: str) -> str | None:
    try:
        number = phonenumbers.parse(digits)
    except phonenumbers.NumberParseException:
        return None
    if not phonenumbers.is_possible_number(number):
        return None
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)


def without_duplicates(channel: str, addresses: Iterable[str]) -> list[str]:
    """Return each address once, as it was written first: two written forms of one address would be two messages."""
    found: dict[str, str] = {}
    for address in addresses:
        found.setdefault(canonical(channel, address), address)
    return list(found.values())


def canonical(channel: str, address: str) -> str:
    """Return the one form of all written forms of an address; what is no address stays as it is."""
    form, address = address_form(channel), without_marks(nfc(address))
    return form.canonical(address) if form else address


def _number(address: str) -> str:
    return e164(address) or address


def _number_or_username(address: str) -> str:
    return _number(address) if address.startswith("+") else _username(address)


def _canonical_email(address: str) -> str:
    """Return an address in lower case, with the domain that `xn--` encodes: a reply from `a@пример.рф` comes from
    `a@xn--e1afmkfd.xn--p1ai`.
    """
    address = address.strip().lower()  # servers that distinguish capitals exist only in theory
    ascii_form = ascii_email(address)
    if ascii_form is None or "xn--" not in ascii_form:
        return address
    local, _, domain = ascii_form.rpartition("@")
    try:
        return f"{local}@{idna.decode(domain)}"
    except UnicodeError:  # also IDNAError
        return address


def _username(address: str) -> str:
    return address.lower() if address.startswith("@") else address


def is_group(channel: str, address: str) -> bool:
    """Return whether an address is one of several people: what is sent there is read by all of them."""
    form = address_form(channel)
    return bool(form and form.is_group(address))


def malformed(channel: str, address: str) -> str:
    """Return why a printable text is no address of the channel; "" if it is one."""
    form, address = address_form(channel), without_marks(nfc(address))
    return f"An address of {channel} is {form.example}." if form and not form.accepts(address) else ""


def ascii_email(written: str) -> str | None:
    """Return the e-mail address with its domain in ASCII (IDNA 2008); None for what is no address."""
    local, _, domain = written.strip().rpartition("@")
    try:
        domain = idna.encode(domain, uts46=True).decode() if not domain.isascii() else domain
    except idna.IDNAError:
        return None
    address = f"{local}@{domain}"
    is_local_part = _LOCAL_PART.fullmatch(local) and local.isprintable()
    if not is_local_part or not _DOMAIN.fullmatch(domain) or len(address.encode()) > _MOST_OCTETS:
        return None
    return address


def _is_bot_chat(address: str) -> bool:
    return bool(_CHAT_ID.fullmatch(address) or _USERNAME.fullmatch(address))


def _is_chat_or_number(address: str) -> bool:
    return is_phone_number(address) if address.startswith("+") else _is_bot_chat(address)


PHONE_NUMBER = AddressForm(
    is_phone_number,
    "one phone number, such as +79991112233. A spreadsheet writes 7,9991E+10 or 79991112233.0 in its place unless"
    " the column is text",
    _number,
)
ACCOUNT = AddressForm(
    _is_chat_or_number,
    "an id such as 100001, a name such as @anna, or a phone number with its plus",
    _number_or_username,
)
BOT_CHAT = AddressForm(
    _is_bot_chat,
    "the id of a chat, such as 100001, or the @name of a group",
    _number_or_username,
    lambda address: address.startswith(("-", "@")),
)
FIRST_CHAT = 2_000_000_000
"""The peer ids of VK from here on are chats."""
PEER = AddressForm(
    _PEER.fullmatch,
    "a peer id, such as 200001",
    is_group=lambda address: address.startswith("-") or (address.isdecimal() and int(address) >= FIRST_CHAT),
)
PERSON_OR_GROUP = AddressForm(_INT64.fullmatch, "the id of a person, such as 300001, or of a group, such as -70001")
EMAIL_ADDRESS = AddressForm(ascii_email, "name@domain, such as anna@example.org", _canonical_email)
