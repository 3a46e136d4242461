"""Links that switch notifications on in a browser which somebody has subscribed at the page of a person.

That page opens for whoever a message was forwarded to. So a new browser gets nothing before a link is used that goes
to the person itself: over the contact by whose link the page was opened.

Guarantees of a link: 256 random bits, stored as a hash; it adds one browser, within an hour. A person gets at most
three at once, and one a minute then, for each process of the API.
"""

from datetime import timedelta

import msgspec
from msgspec import Struct

from core.admission.api_keys import hash_of
from core.deliveries.deliveries import Deliveries
from core.directory.preferences import LinkedPerson
from core.directory.subscriptions import Subscriptions
from core.errors import Forbidden
from core.model.contacts.subscription import Subscription
from core.model.delivery import NewDelivery, Recipient, Sender
from core.model.history_key import Id
from core.model.people import User
from core.redis.keys import KEYS
from core.redis.store import Store
from core.sentence import language_of, say
from core.sessions.sessions import new_secret, shard_in

DEVICE_LINK_LIFETIME = timedelta(hours=1)
_MS = timedelta(milliseconds=1)
_SENDER = Sender("ada", "Ada")
_KIND = "device"


class NewDevice(Struct, frozen=True):
    """A browser that waits for its link. `channel`: of its contact."""

    tenant: str
    person: Id
    channel: str
    subscription: Subscription


class DeviceLinks:
    """The links of all tenants. Methods raise StoreError."""

    def __init__(self, store: Store, deliveries: Deliveries, subscriptions: Subscriptions) -> None:
        self._store = store
        self._deliveries = deliveries
        self._subscriptions = subscriptions

    async def send(self, linked: LinkedPerson, channel: str, subscription: Subscription, url: str) -> None:
        """Send a link to the contact of the person. `url`: what the link begins with."""
        user = linked.user
        secret = new_secret(self._store.shard_of_tenant(linked.tenant), 32)
        device = msgspec.json.encode(NewDevice(linked.tenant, user.id, channel, subscription))
        await self._store.command("SET", self._key_of(secret), device, "PX", DEVICE_LINK_LIFETIME // _MS)
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
        return _decoded(await self._store.command("GET", self._key_of(secret)))

    async def use(self, secret: str) -> tuple[NewDevice, User]:
        """Switch notifications on; return the browser and its person. Raises Forbidden LINK_USED, and as
        `Subscriptions.add` does: the link stays then. It is deleted last, so that a kill in between
        loses nothing: to add the same browser again changes nothing.
        """
        device = await self.open(secret)
        user = await self._subscriptions.add(device.tenant, device.person, device.channel, device.subscription)
        await self._store.command("DEL", self._key_of(secret))
        return device, user

    def _key_of(self, secret: str) -> str:
        return KEYS["devicelink"].at(shard_in(secret, self._store.shards), hash_of(secret))


def _decoded(stored: str | None) -> NewDevice:
    if stored is None:
        raise Forbidden("LINK_USED", "The link was used or has expired.", "link")
    return msgspec.json.decode(stored, type=NewDevice)
