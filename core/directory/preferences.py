"""What a person wants to receive, changed by itself behind a link: in mails, and from the bot on /settings.

    the token of a link ─▶ Preferences.open ─▶ delivery/api/recipient_pages ─▶ Preferences.change

A token names a contact, not a person: it shows whoever has this contact now, and nothing once nobody has it. It is
signed with 128 bits and sealed, so an address stands in no link. It needs no account and no cookie: whoever has it
changes the channels and the language of this person. Opening it changes nothing.
"""

import hashlib
import hmac
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Collection
from typing import NamedTuple

from core.directory.directory import Directory
from core.errors import Forbidden, NotFound
from core.model.people import LOCALES, User, UserChange
from core.redis.keys import KEYS
from core.redis.store import Store

SIGNATURE_CHARACTERS = 22
"""Of a token, at its beginning: 128 bits."""
_SIGNATURE_BYTES = 16


class LinkedPerson(NamedTuple):
    """The person behind a link. `channel`: that of its contact."""

    tenant: str
    channel: str
    user: User


class PreferenceTokens:
    """Seals and opens tokens with a secret of the installation. A contact has always the same token."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._secret = b""

    async def seal(self, tenant: str, channel: str, address: str) -> str:
        """Return the token of a contact. Raises StoreError."""
        secret, plain = await self._installation_secret(), "\0".join((tenant, channel, address)).encode()
        signature = _signature(secret, plain)
        return _letters(signature) + _letters(_masked(secret, signature, plain))

    async def open(self, token: str) -> tuple[str, str, str]:
        """Return tenant, channel and address. Raises Forbidden PREFERENCES_TOKEN_WRONG; StoreError."""
        secret = await self._installation_secret()
        signature, sealed = (_bytes(one) for one in (token[:SIGNATURE_CHARACTERS], token[SIGNATURE_CHARACTERS:]))
        plain = _masked(secret, signature, sealed)
        if not hmac.compare_digest(signature, _signature(secret, plain)):
            raise Forbidden("PREFERENCES_TOKEN_WRONG", "This link was not made here.")
        tenant, channel, address = plain.decode().split("\0")
        return tenant, channel, address

    async def _installation_secret(self) -> bytes:
        if not self._secret:
            name = KEYS["secret"].at(0, "preferences")
            await self._store.command("SET", name, secrets.token_hex(32), "NX")
            self._secret = str(await self._store.command("GET", name)).encode()
        return self._secret


class Preferences:
    """One per process. Methods raise StoreError."""

    def __init__(self, store: Store, directory: Directory) -> None:
        self._users = directory.users
        self._tokens = PreferenceTokens(store)

    async def token(self, tenant: str, channel: str, address: str) -> str:
        """Return the token of the link of a contact."""
        return await self._tokens.seal(tenant, channel, address)

    async def open(self, token: str) -> LinkedPerson:
        """Return the person behind a link; nothing changes. Raises Forbidden PREFERENCES_TOKEN_WRONG, NotFound
        PREFERENCES_UNKNOWN.
        """
        tenant, channel, address = await self._tokens.open(token)
        user = await self._users.by_contact(tenant, channel, address)
        if user is None:
            raise NotFound("PREFERENCES_UNKNOWN", "Nobody of the directory has the contact of this link.")
        return LinkedPerson(tenant, channel, user)

    async def change(
        self, token: str, wanted: Collection[str], offered: Collection[str], locale: str = ""
    ) -> LinkedPerson:
        """Keep the channels in which the person wants messages: those `wanted` of those `offered`; others stay as they
        are. `locale`: "" or an unknown one changes nothing. Raises as `open` does.
        """
        linked = await self.open(token)
        user = linked.user
        unwanted = [one for one in user.contacts if one in offered and one not in wanted]
        kept = [one for one in user.opt_out if one not in offered]
        change = UserChange(opt_out=(*kept, *unwanted), locale=locale if locale in LOCALES else user.locale)
        return linked._replace(user=await self._users.update(linked.tenant, user.id, change))


def _signature(secret: bytes, plain: bytes) -> bytes:
    return hmac.digest(secret, b"preferences\n" + plain, "sha256")[:_SIGNATURE_BYTES]


def _masked(secret: bytes, signature: bytes, text: bytes) -> bytes:
    """Return the text behind the stream that follows from its signature, or what such a text hides (RFC 5297 has the
    idea: the signature of the plain text is the initial value of the cipher).
    """
    key = hmac.digest(secret, b"stream\n" + signature, "sha256")
    stream = hashlib.shake_256(key).digest(len(text))
    return bytes(one ^ other for one, other in zip(text, stream, strict=True))


def _letters(packed: bytes) -> str:
    return urlsafe_b64encode(packed).decode().rstrip("=")


def _bytes(letters: str) -> bytes:
    """Return the bytes of a part of a token; none for a text that is no such part."""
    try:
        return urlsafe_b64decode(letters.encode("ascii") + b"=" * (-len(letters) % 4))
    except ValueError:
        return b""
