"""Subscriptions of browsers: each is behind a contact of its owner, and goes with it.

    the recipient's page ─▶ Subscriptions.add ─▶ a contact, whose address the courier's messages bring back
    a courier whose provider says that it is gone ─▶ Subscriptions.remove

Nobody but the courier gets an endpoint or a key. When a contact is removed, by whomever, or its person is deleted, its
subscription is deleted in the same step (`lua/directory/modules/people.lua`).
"""

from base64 import urlsafe_b64decode
from collections.abc import Sequence

import msgspec
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey

from core.directory.directory import Directory
from core.errors import Invalid, NotFound, Refused
from core.model.contacts.subscription import Subscription, is_endpoint
from core.model.history_key import Id
from core.model.people import User, id_text
from core.redis.store import Store

_AUTH_BYTES = 16
_decode = msgspec.json.Decoder(Subscription).decode


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
