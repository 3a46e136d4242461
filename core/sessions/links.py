"""Codes and links that work once: to sign a person in, and to switch notifications on in a browser.

Guarantees of a link: 256 random bits, stored as a hash in the shard of its tenant, which the link names. The bot sends
the link that signs in, which is valid for 10 minutes.

A browser is subscribed at the page of a person, and that page opens for everybody to whom a message is forwarded. So a
new browser gets nothing before a link is used that goes to the person itself: over the contact by whose link the page
was opened. It adds one browser, within an hour. A person gets at most three at once, and one a minute then, for each
process of the API.

Guarantees of a code, which is mailed: it is valid for 24 minutes and signs in once; only its hash is stored; after 5
wrong guesses it is void; in an hour at most 5 are mailed to one address. No response reveals whether an address has a
person: the responses, their time and the limits are the same, because the mail is sent after the answer
(docs/decisions/0102). The id of a code names the shard of its tenant, in which its record stands.
"""

import asyncio
import logging
import secrets
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct

from core.admission.api_keys import hash_of
from core.deliveries.deliveries import Deliveries
from core.directory import Directory
from core.directory.linking import (
    CODES,
    LIFETIME,
    MAIL_PERIOD,
    MOST_GUESSES,
    MOST_MAILS,
    CodeMailer,
    NotMailed,
    code_hash,
    new_code,
)
from core.directory.preferences import LinkedPerson, Subscriptions
from core.errors import Conflict, Forbidden, StoreError, TooMany, raise_first
from core.model.clock import from_ms
from core.model.contacts.subscription import Subscription
from core.model.delivery import NewDelivery, Recipient, Sender
from core.model.history_key import Id
from core.model.json_form import compact_json
from core.model.people import User, canonical_email, faults_of_email, id_text
from core.redis.installation_secrets import InstallationSecret
from core.redis.keys import KEYS, Key
from core.redis.store import Store
from core.sentence import say
from core.sessions.sessions import new_secret, shard_in

T = TypeVar("T", bound=Struct)

LINK_LIFETIME = timedelta(minutes=10)
DEVICE_LINK_LIFETIME = timedelta(hours=1)
_MS = timedelta(milliseconds=1)
_SENDER = Sender("ada", "Ada")
_KIND = "device"
log = logging.getLogger(__name__)


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
        text = say("device_link", user.locale, device=subscription.device, url=url + secret)
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


class CodeRequest(Struct, frozen=True):
    """A code is mailed if the address is known. `expires_at`: until when it is valid."""

    id: str
    expires_at: datetime


class SignInCodes:
    """Mails and confirms codes. `mailer`: None if no mail server is set up."""

    def __init__(self, store: Store, directory: Directory, mailer: CodeMailer | None) -> None:
        self._store = store
        self._secret = InstallationSecret(store, CODES)
        self._directory = directory
        self._mailer = mailer
        self._mails: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """Wait for the mails that are being sent."""
        await asyncio.gather(*self._mails)

    async def request(self, tenant: str, email: str) -> CodeRequest:
        """Mail a code to the person with this e-mail address, if there is one. Raises Invalid EMAIL_MALFORMED, Conflict
        MAIL_NOT_SET_UP, TooMany TOO_MANY_MAILS.
        """
        raise_first(faults_of_email(email))
        if self._mailer is None:
            raise Conflict("MAIL_NOT_SET_UP", "No code can be mailed: ADA_SMTP_URL is not set.")
        shard, code, email = self._store.shard_of_tenant(tenant), new_code(), canonical_email(email)
        code_id = new_secret(shard, 16)
        of = "sign-in:" + blake2b(email.encode(), digest_size=16).hexdigest()
        hashed = code_hash(await self._secret.key(), code_id, code)
        limits = (LIFETIME // _MS, MOST_MAILS, MAIL_PERIOD // _MS)
        reply = await self._store.run("request_sign_in", shard, code_id, tenant, email, of, hashed, *limits)
        if reply[0] == "mails":
            detail = f"At most {MOST_MAILS} codes an hour are mailed to one address."
            raise TooMany("TOO_MANY_MAILS", detail, int(reply[1]) * _MS)
        if reply[1]:
            self._mail_later(self._mailer, tenant, reply[1], code)
        return CodeRequest(code_id, from_ms(reply[2]))

    def _mail_later(self, mailer: CodeMailer, tenant: str, person: str, code: str) -> None:
        mail = asyncio.create_task(self._mail(mailer, tenant, person, code), name="mail a code")
        self._mails.add(mail)
        mail.add_done_callback(self._mails.discard)

    async def _mail(self, mailer: CodeMailer, tenant: str, person: str, code: str) -> None:
        """Mail the code. A failure is only logged: reporting it would reveal that the address has a person."""
        try:
            (user,) = await self._directory.users.lookup(tenant, [person])
            if user:
                await mailer.send_sign_in_code(user, code, LIFETIME)
        except (NotMailed, StoreError) as fault:
            log.error("a code to sign in could not be mailed: %s", fault.__cause__ or fault)

    async def confirm(self, code_id: str, code: str) -> Proven:
        """Use the code up; return whose it was. Raises Forbidden CODE_WRONG, whatever the reason."""
        hashed = code_hash(await self._secret.key(), code_id, code)
        arguments = (code_id, hashed, secrets.token_hex(8), MOST_GUESSES)
        reply = await self._store.run("confirm_sign_in", shard_in(code_id, self._store.shards), *arguments)
        if reply[0] != "confirmed":
            detail = f"The code is wrong or no longer valid. After {MOST_GUESSES} wrong codes request a new one."
            raise Forbidden("CODE_WRONG", detail, "code")
        return Proven(reply[1], reply[2])
