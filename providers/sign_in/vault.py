"""Encrypts what is stored: Fernet of the library `cryptography` (AES-128-CBC with HMAC-SHA256). Pure.

The first key encrypts, all of them decrypt: a new key is put in front of the old one, and the old one is removed after
`Tokens.rotate` has encrypted everything again.
"""

from collections.abc import Sequence
from hashlib import blake2b

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from core.errors import AdaError, SetupError


class Undecryptable(AdaError):
    """None of the keys fits: what is stored is damaged, or its key was lost."""


class Vault:
    """`keys`: each 32 bytes as URL-safe base64, as `new_key` makes them. Raises SetupError for others.

    `fingerprints`: of the keys, in their order. A fingerprint identifies a key and does not disclose it.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        try:
            self._fernet = MultiFernet([Fernet(key) for key in keys])
        except ValueError:
            raise SetupError("ADA_SECRET_KEY is not a key: 32 bytes as URL-safe base64, 44 characters") from None
        self.fingerprints = [blake2b(key.encode(), digest_size=8, person=b"ada key").hexdigest() for key in keys]

    def encrypt(self, text: str) -> str:
        return self._fernet.encrypt(text.encode()).decode()

    def decrypt(self, stored: str) -> str:
        """Return the text of what `encrypt` has made. Raises Undecryptable."""
        try:
            return self._fernet.decrypt(stored.encode(errors="replace")).decode()
        except InvalidToken:
            raise Undecryptable("what is stored was encrypted with another key, or is damaged") from None


def new_key() -> str:
    return Fernet.generate_key().decode()
