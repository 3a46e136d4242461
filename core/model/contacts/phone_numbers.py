"""Phone numbers in E.164, whatever form they are written in. Pure; libphonenumber knows the forms of each country.

Two written forms of one number are one contact (`core.model.contacts.addresses`), and the couriers send to the number
in E.164.
"""

import re

import phonenumbers

from core.model.text.characters import without_marks

_SEPARATORS = re.compile(r"[\s().\u2010-\u2015\u2212-]+")
# A number without a country code is Russian: 8 is the trunk prefix there, 9 begins a mobile number. These forms need no
# library, which takes a hundred times as long. No area begins with 0, 1 or 2: in Belarus 8 029 … is +375 29 ….
# +7 000 …, which no operator has, is how the sandbox names its faults (docs/sandbox.md).
_RUSSIAN = re.compile(r"(?:\+7|[78])([3-9]\d{9})|(9\d{9})|\+7(000\d{7})", re.ASCII)
_INTERNATIONAL = re.compile(r"(?:\+|00)(?!7[0-2])([1-9]\d{6,14})", re.ASCII)


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
