"""Links that work once: to sign a person in, and to switch notifications on in a browser.

Guarantees of a link: 256 random bits, stored as a hash in the shard of its tenant, which the link names. The bot sends
the link that signs in, which is valid for 10 minutes.

A browser is subscribed at the page of a person, and that page opens for everybody to whom a message is forwarded. So a
new browser gets nothing before a link is used that goes to the person itself: over the contact by whose link the page
was opened. It adds one browser, within an hour. A person gets at most three at once, and one a minute then, for each
process of the API.
"""

from datetime import timedelta
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct

from core.admission.api_keys import hash_of
from core.deliveries.deliveries import Deliveries
from core.directory.preferences import LinkedPerson, Subscriptions
from core.errors import Forbidden
from core.model.contacts.subscription import Subscription
from core.model.delivery import NewDelivery, Recipient, Sender
from core.model.history_key import Id
from core.model.json_form import compact_json
from core.model.people import User, id_text
from core.redis.keys import KEYS, Key
from core.redis.store import Store
from core.sentence import language_of, say
from core.sessions.sessions import new_secret, shard_in

T = TypeVar("T", bound=Struct)

LINK_LIFETIME = timedelta(minutes=10)
DEVICE_LINK_LIFETIME = timedelta(hours=1)
_MS = timedelta(milliseconds=1)
_SENDER = Sender("ada", "Ada")
_KIND = "device"


class OneTimeLinks(Generic[T]):
    """The links of one kind, with what each is for. `advice`: what a refusal adds. Methods raise StoreError."""

    def __init__(self, store: Store, key: Key, stored: type[T], lifetime: timedelta, advice: str = "") -> None:
        self._store = store
        self._key = key
        self._decode = msgspec.json.Decoder(stored).decode
        self._lifetime = lifetime
        self._advice = advice

    async def create(self, tenant: str, value: T) -> str:
        """Return the secret of a new link."""
        secret = new_secret(self._store.shard_of_tenant(tenant), 32)
        await self._store.command("SET", self._key_of(secret), compact_json(value), "PX", self._lifetime // _MS)
        return secret

    async def read(self, secret: str) -> T:
        """Return what a link is for; nothing changes. Raises Forbidden LINK_USED."""
        return self._decoded(await self._store.command("GET", self._key_of(secret)))

    async def use(self, secret: str) -> T:
        """Use a link up; return what it was for. Raises Forbidden LINK_USED."""
        return self._decoded(await self._store.command("GETDEL", self._key_of(secret)))

    async def delete(self, secret: str) -> None:
        await self._store.write("DEL", self._key_of(secret))

    def _key_of(self, secret: str) -> str:
        return self._key.at(shard_in(secret, self._store.shards), hash_of(secret))

    def _decoded(self, stored: str | None) -> T:
        if stored is None:
            raise Forbidden("LINK_USED", f"The link was used or has expired.{self._advice}", "link")
        return self._decode(stored)


class Proven(Struct, frozen=True):
    """A person that has proved its identity."""

    tenant: str
    person: str


class SignInLinks:
    """The links of all tenants. A link needs no further proof."""

    def __init__(self, store: Store) -> None:
        self._links = OneTimeLinks(store, KEYS["signinlink"], Proven, LINK_LIFETIME, " Ask the bot for a new one.")

    async def create(self, tenant: str, person: Id) -> str:
        """Return the secret of a new link for a person."""
        return await self._links.create(tenant, Proven(tenant, id_text(person)))

    async def use(self, secret: str) -> Proven:
        """Use the link up; return whose it was. Raises Forbidden LINK_USED."""
        return await self._links.use(secret)


class NewDevice(Struct, frozen=True):
    """A browser that waits for its link. `channel`: of its contact."""

    tenant: str
    person: Id
    channel: str
    subscription: Subscription


class DeviceLinks:
    """The links of all tenants. Methods raise StoreError."""

    def __init__(self, store: Store, deliveries: Deliveries, subscriptions: Subscriptions) -> None:
        self._links = OneTimeLinks(store, KEYS["devicelink"], NewDevice, DEVICE_LINK_LIFETIME)
        self._deliveries = deliveries
        self._subscriptions = subscriptions

    async def send(self, linked: LinkedPerson, channel: str, subscription: Subscription, url: str) -> None:
        """Send a link to the contact of the person. `url`: what the link begins with."""
        user = linked.user
        secret = await self._links.create(linked.tenant, NewDevice(linked.tenant, user.id, channel, subscription))
        text = say("device_link", language_of(user.locale), device=subscription.device, url=url + secret)
        message = NewDelivery(
            tenant=linked.tenant,
            sender=_SENDER,
            text=text,
            recipients=[Recipient(user.id, user.name, {linked.channel: [linked.address]})],
            channels=[linked.channel],
            origin=_KIND,
            kind=_KIND,
        )
        await self._deliveries.enqueue(message)

    async def open(self, secret: str) -> NewDevice:
        """Return the browser that waits; nothing changes. Raises Forbidden LINK_USED."""
        return await self._links.read(secret)

    async def use(self, secret: str) -> tuple[NewDevice, User]:
        """Switch notifications on; return the browser and its person. Raises Forbidden LINK_USED, and as
        `Subscriptions.add` does: the link stays then. It is deleted last, so that a kill in between
        loses nothing: to add the same browser again changes nothing.
        """
        device = await self.open(secret)
        user = await self._subscriptions.add(device.tenant, device.person, device.channel, device.subscription)
        await self._links.delete(secret)
        return device, user
