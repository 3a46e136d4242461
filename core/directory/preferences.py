"""Preferences of a person, which it changes itself behind a link: in mails, and from the bot on /settings.

    the token of a link ─▶ Preferences.open ─▶ delivery/api/recipient_pages ─▶ Preferences.change

A token names a contact, not a person: it shows whoever has this contact now, and nothing once nobody has it. It is
encrypted with AES-SIV (RFC 5297), so an address stands in no link, and authenticated with 128 bits. It needs no account
and no cookie: anybody with the link changes the channels and the language of this person. Opening it changes nothing.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Collection
from typing import NamedTuple

from msgspec import UNSET

from core.directory.directory import Directory
from core.errors import Forbidden, NotFound
from core.model.people import LOCALES, User, UserChange
from core.redis.installation_secrets import Sealing
from core.redis.store import Store


class LinkedPerson(NamedTuple):
    """The person behind a link. `channel`, `address`: its contact."""

    tenant: str
    channel: str
    address: str
    user: User


class PreferenceTokens:
    """Encrypts and decrypts contacts with a secret of the installation. A contact has always the same token."""

    def __init__(self, store: Store) -> None:
        self._sealing = Sealing(store, "preferences")

    async def seal(self, tenant: str, channel: str, address: str) -> str:
        """Return the token of a contact. Raises StoreError."""
        sealed = await self._sealing.seal("\0".join((tenant, channel, address)).encode())
        return urlsafe_b64encode(sealed).decode().rstrip("=")

    async def open(self, token: str) -> tuple[str, str, str]:
        """Return tenant, channel and address. Raises Forbidden PREFERENCES_TOKEN_WRONG; StoreError."""
        try:
            plain = await self._sealing.open(urlsafe_b64decode(token.encode("ascii") + b"=" * (-len(token) % 4)))
        except ValueError:
            raise Forbidden("PREFERENCES_TOKEN_WRONG", "This link was not made here.") from None
        tenant, channel, address = plain.decode().split("\0")
        return tenant, channel, address


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
        return LinkedPerson(tenant, channel, address, user)

    async def change(
        self,
        token: str,
        wanted: Collection[str],
        offered: Collection[str],
        locale: str = "",
        hours: str | None = None,
    ) -> LinkedPerson:
        """Keep the channels in which the person wants messages: those `wanted` of those `offered`; others stay as they
        are. `locale`: "" or an unknown one changes nothing; `hours`: in which it wants messages, None changes nothing.
        Raises as `open` does, and Invalid HOURS_MALFORMED.
        """
        linked = await self.open(token)
        user = linked.user
        unwanted = [one for one in user.contacts if one in offered and one not in wanted]
        kept = [one for one in user.opt_out if one not in offered]
        language = locale if locale in LOCALES else user.locale
        change = UserChange(opt_out=(*kept, *unwanted), locale=language, hours=UNSET if hours is None else hours)
        return linked._replace(user=await self._users.update(linked.tenant, user.id, change))
