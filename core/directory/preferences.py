"""What a person changes itself: the channels, language and hours it wants, and subscriptions of browsers.

    the token of a link ─▶ Preferences.open ─▶ delivery/api/recipient_pages ─▶ Preferences.change
    STOP or START as a message, or a bot that is stopped or started ─▶ OptOuts, Reachability
    the recipient's page ─▶ Subscriptions.add ─▶ a contact, whose address the courier's messages bring back
    a courier whose provider says that it is gone ─▶ Subscriptions.remove

A token names a contact, not a person: it shows whoever has this contact now, and nothing once nobody has it. It is
encrypted with AES-SIV (RFC 5297), so an address stands in no link, and authenticated with 128 bits. It needs no account
and no cookie: anybody with the link changes the channels and the language of this person. Opening it changes nothing.
Links are in mails, and from the bot on /settings.

Who stops the bot of a channel, or writes STOP, has opted out of it (`User.opt_out`), and who starts it or writes START
is in again. So a sender learns before sending that the person cannot be reached there. A person with several addresses
in the channel is not changed: another one may work.

A subscription is behind a contact of its owner. Nobody but the courier gets an endpoint or a key. When the contact is
removed, by whomever, or its person is deleted, its subscription is deleted in the same step
(`lua/directory/modules/people.lua`).
"""

import logging
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from msgspec import UNSET

from core.directory.directory import Directory
from core.errors import Forbidden, Invalid, NotFound, Refused
from core.model.contacts.subscription import Subscription, is_endpoint
from core.model.history_key import Id
from core.model.people import LOCALES, User, UserChange, id_text
from core.redis.installation_secrets import Sealing
from core.redis.store import Store

_AUTH_BYTES = 16
_decode = msgspec.json.Decoder(Subscription).decode
log = logging.getLogger(__name__)
_STOP, _START = frozenset({"stop", "стоп"}), frozenset({"start", "старт", "/start"})


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


class Subscriptions:
    """One per process. Methods raise StoreError."""

    def __init__(self, store: Store, directory: Directory) -> None:
        self._store = store
        self._users = directory.users

    async def add(self, tenant: str, user: Id, channel: str, subscription: Subscription) -> User:
        """Add a subscription to a person; return the person. A repeat changes only what is known of the device. A
        browser belongs to one person: it is taken from another one, because only the browser knows its keys.

        Raises NotFound USER_NOT_FOUND, Conflict LIMIT_REACHED, ImportRunning.
        """
        address = subscription.address
        owner = await self._users.by_contact(tenant, channel, address)
        if owner is not None and id_text(owner.id) != id_text(user):
            await self._users.remove_contact(tenant, owner.id, channel, address)
        await self._store.write("HSET", *self._place(tenant, channel, address), msgspec.json.encode(subscription))
        try:
            return await self._users.add_contact(tenant, user, channel, address)
        except Refused:
            await self._store.write("HDEL", *self._place(tenant, channel, address))
            raise

    async def find(self, tenant: str, channel: str, addresses: Sequence[str]) -> list[Subscription | None]:
        """Return the subscriptions behind addresses, in their order; None for one that is gone."""
        if not addresses:
            return []
        key = self._store.tenant_key("subscriptions", tenant)
        found = await self._store.command("HMGET", key, *(f"{channel}:{one}" for one in addresses))
        return [_decode(one) if one else None for one in found]

    async def remove(self, tenant: str, channel: str, address: str) -> None:
        """Remove a subscription and its contact. What is gone already stays so. Raises ImportRunning."""
        owner = await self._users.by_contact(tenant, channel, address)
        try:
            if owner is not None:
                await self._users.remove_contact(tenant, owner.id, channel, address)
        except NotFound:
            pass  # removed meanwhile
        await self._store.write("HDEL", *self._place(tenant, channel, address))

    def _place(self, tenant: str, channel: str, address: str) -> tuple[str, str]:
        return self._store.tenant_key("subscriptions", tenant), f"{channel}:{address}"


def check_subscription(subscription: Subscription, push_service: str = "") -> None:
    """Raise Invalid SUBSCRIPTION_MALFORMED for what no browser has made, or not for the only `push_service`."""
    if not is_endpoint(subscription.endpoint, push_service):
        wanted = push_service or "https"
        raise Invalid("SUBSCRIPTION_MALFORMED", f"An endpoint is an address of {wanted}.", "endpoint")
    try:
        auth = _decoded(subscription.auth)
        EllipticCurvePublicKey.from_encoded_point(SECP256R1(), _decoded(subscription.p256dh))
    except ValueError:
        raise Invalid("SUBSCRIPTION_MALFORMED", "p256dh is no public key, or auth no secret.", "keys") from None
    if len(auth) != _AUTH_BYTES:
        raise Invalid("SUBSCRIPTION_MALFORMED", f"auth has {_AUTH_BYTES} bytes.", "keys")


def _decoded(text: str) -> bytes:
    """Return the bytes of a text in base64url. Raises ValueError."""
    plain = text.rstrip("=")
    return urlsafe_b64decode(plain.encode("ascii") + b"=" * (-len(plain) % 4))


class Reach(NamedTuple):
    """A change of whether an address can be written to, as an update reports it."""

    address: str
    can_be_reached: bool


ReadReach = Callable[[Mapping[str, Any]], Reach | None]
"""Reads an update; returns None if it does not report it. Never raises."""


class Reachability:
    """In one channel of one tenant."""

    def __init__(self, directory: Directory, tenant: str, channel: str, read: ReadReach) -> None:
        self._directory = directory
        self._tenant = tenant
        self._channel = channel
        self._read = read

    async def note(self, raw: Mapping[str, Any]) -> None:
        """Change the person whose address it is, if the directory has one. A repeat changes nothing. Raises
        StoreError.
        """
        reach = self._read(raw)
        if reach is None:
            return
        user = await self._directory.users.by_contact(self._tenant, self._channel, reach.address)
        if user is None or len(user.contacts.get(self._channel, ())) > 1:
            return
        others = [one for one in user.opt_out if one != self._channel]
        wanted = others if reach.can_be_reached else [*others, self._channel]
        if set(wanted) == set(user.opt_out):
            return
        try:
            await self._directory.users.update(self._tenant, user.id, UserChange(opt_out=wanted))
        except Refused as refusal:
            log.warning("%s: that %s can be reached is not noted: %s", self._channel, reach.address, refusal)


class OptOuts:
    """Words by which a person ends the messages of a channel (STOP) and gets them again (START). One per tenant."""

    def __init__(self, directory: Directory, tenant: str) -> None:
        self._directory = directory
        self._tenant = tenant

    async def is_asked(self, channel: str, address: str, text: str) -> bool:
        """Return whether a text as a whole is STOP, or START of somebody who gets no messages in the channel. From a
        person who is not in the directory it is a text like any other. Raises StoreError.
        """
        wanted = _wanted(text)
        user = None if wanted is None else await self._directory.users.by_contact(self._tenant, channel, address)
        return user is not None and not (wanted and channel not in user.opt_out)

    async def asked(self, channel: str, address: str, text: str) -> tuple[User, bool] | None:
        """Return who asks for a change, and whether for messages; None if nothing would change. Raises StoreError."""
        if (wanted := _wanted(text)) is None:
            return None
        user = await self._directory.users.by_contact(self._tenant, channel, address)
        return (user, wanted) if user and wanted == (channel in user.opt_out) else None

    async def change(self, user: User, channel: str, gets_messages: bool) -> None:
        """Let a person get messages of a channel, or none. Raises StoreError, Refused."""
        others = [one for one in user.opt_out if one != channel]
        change = UserChange(opt_out=others if gets_messages else [*others, channel])
        await self._directory.users.update(self._tenant, user.id, change)


def _wanted(text: str) -> bool | None:
    """Return whether a text asks for messages, None if it is about something else."""
    word = text.strip().rstrip(".!").casefold()
    return word in _START if word in _STOP | _START else None
