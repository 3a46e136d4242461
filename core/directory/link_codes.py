"""Codes that are mailed to link a contact: made, read back as people type them, and hashed. Pure.

A code has 6 characters of 31, about 30 bits. It is safe only because guesses are limited (`core.directory.linking`).
Letters and digits that look alike (0 and O, 1, I and L) do not occur. Cyrillic letters that look like Latin ones are
read as those: many people copy a code from the screen with a Russian keyboard.
"""

import hmac
import secrets

ALPHABET = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"
LENGTH = 6

_LOOKALIKES = str.maketrans("АВЕЗКМНРСТУХ", "ABE3KMHPCTYX")


def new_code() -> str:
    """Return a random code."""
    return "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))


def as_typed(text: str) -> str:
    """Return the code that a person typed: without spaces and dashes, in capital letters. May be no code at all."""
    return "".join(text.replace("-", "").split()).upper().translate(_LOOKALIKES)


def code_hash(secret: bytes, link: str, code: str) -> str:
    """Return what is stored. The same code has another hash in every link, and in every installation."""
    return hmac.digest(secret, f"{link}\n{as_typed(code)}".encode(errors="surrogatepass"), "sha256").hex()
