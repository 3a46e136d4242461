"""Phone numbers as people write them, and as E.164 has them."""

import re

_FILLING = re.compile(r"[\s().\u2010-\u2015-]+")
# What is written without a country is Russian: 8 is the trunk prefix there, 9 begins a mobile number.
_FORMS = (
    (re.compile(r"\+([1-9]\d{6,14})"), "+"),
    (re.compile(r"00([1-9]\d{6,14})"), "+"),
    (re.compile(r"[78](\d{10})"), "+7"),
    (re.compile(r"(9\d{9})"), "+7"),
)


def e164(address: str) -> str | None:
    """ "8 (999) 111-22-33" is "+79991112233"; None for what is no number."""
    digits = _FILLING.sub("", address)
    for form, prefix in _FORMS:
        if digits.isascii() and (found := form.fullmatch(digits)):
            return prefix + found[1]
    return None
