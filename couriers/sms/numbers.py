"""Converts phone numbers from the usual written forms to E.164."""

import re

_SEPARATORS = re.compile(r"[\s().\u2010-\u2015-]+")
# A number without a country code is Russian: 8 is the trunk prefix there, 9 begins a mobile number.
_FORMS = (
    (re.compile(r"\+([1-9]\d{6,14})"), "+"),
    (re.compile(r"00([1-9]\d{6,14})"), "+"),
    (re.compile(r"[78](\d{10})"), "+7"),
    (re.compile(r"(9\d{9})"), "+7"),
)


def e164(address: str) -> str | None:
    """Return "+79991112233" for "8 (999) 111-22-33", None for what is not a phone number."""
    digits = _SEPARATORS.sub("", address)
    for form, prefix in _FORMS:
        if digits.isascii() and (found := form.fullmatch(digits)):
            return prefix + found[1]
    return None
