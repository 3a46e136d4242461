"""Phone numbers in E.164, whatever form they are written in. Pure; libphonenumber knows the forms of each country.

Two written forms of one number are one contact (`core.model.addresses`), and the couriers send to the number in E.164.
"""

import re

import phonenumbers

_SEPARATORS = re.compile(r"[\s().\u2010-\u2015-]+")
# A number without a country code is Russian: 8 is the trunk prefix there, 9 begins a mobile number. These forms need no
# library, which takes a hundred times as long.
_RUSSIAN = re.compile(r"(?:\+7|[78])(\d{10})|(9\d{9})", re.ASCII)
_INTERNATIONAL = re.compile(r"(?:\+|00)([1-9]\d{6,14})", re.ASCII)


def e164(written: str) -> str | None:
    """Return "+79991112233" for "8 (999) 111-22-33", None for what is not a phone number.

    A number that is possible counts, also if it is not assigned: lists of assigned numbers are never complete.
    """
    digits = _SEPARATORS.sub("", written)
    if russian := _RUSSIAN.fullmatch(digits):
        return f"+7{russian[1] or russian[2]}"
    international = _INTERNATIONAL.fullmatch(digits)
    return _of_any_country(f"+{international[1]}") if international else None


def _of_any_country(digits: str) -> str | None:
    try:
        number = phonenumbers.parse(digits)
    except phonenumbers.NumberParseException:
        return None
    if not phonenumbers.is_possible_number(number):
        return None
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)
