"""Links a contact to a person by a code that is mailed to the person's e-mail address (D-28), and unlinks it (D-29).

    request(contact, e-mail) ─▶ a code by mail ─▶ the person types it where the contact is ─▶ confirm(contact, code)

Guarantees: a code is valid for a set time and links once; only its hash is stored, and it is never logged. After 5
wrong codes it is void. In an hour at most 5 mails are sent for one contact, and at most 25 to one person: strangers who
know its e-mail address do not use up its codes from a few chats of their own. A new code replaces the one before. What
was not mailed does not count. Linking goes on while a file is imported, except its last step.
"""

import hmac
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from core.directory.directory import Directory
from core.directory.records import (
    ImportRunning,
    decode_record,
    encode_record,
    version_of,
)
from core.errors import Conflict, Forbidden, NotFound, Refused, TooMany, raise_first
from core.model.clock import from_ms
from core.model.contacts.addresses import canonical
from core.model.history_key import Id
from core.model.people import User, canonical_email, faults_of_contacts
from core.model.text.characters import counted
from core.redis.installation_secrets import InstallationSecret
from core.redis.store import Store

CODES = "links"
"""The secret with which this installation hashes codes."""
LIFETIME = timedelta(minutes=24)
MOST_GUESSES = 5
MOST_MAILS = 5
"""For one contact, in `MAIL_PERIOD`."""
MOST_MAILS_TO_PERSON = 25
"""To one person, for whatever contacts, in `MAIL_PERIOD`."""
MAIL_PERIOD = timedelta(hours=1)

_HOUR_MS = MAIL_PERIOD // timedelta(milliseconds=1)

# A code has 6 characters of 31, about 30 bits. It is safe only because guesses are limited. Letters and digits that
# look alike (0 and O, 1, I and L) do not occur. Cyrillic letters that look like Latin ones are read as those: many
# people copy a code from the screen with a Russian keyboard.
ALPHABET = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"

LENGTH = 6
_LOOKALIKES = str.maketrans("АВЕЗКМНРСТУХ", "ABE3KMHPCTYX")


class NotMailed(Refused):
    """The code could not be mailed."""

    retry_after = timedelta(seconds=30)


class CodeMailer(Protocol):
    """Mails codes. `couriers.email.LinkCodeMailer` is one."""

    async def send_code(self, to: User, channel: str, code: str, lifetime: timedelta) -> None:
        """Mail the code for a contact of `channel`. A mail that may have arrived counts as sent.

        Raises NotMailed MAIL_REFUSED or MAIL_UNAVAILABLE.
        """

    async def send_sign_in_code(self, to: User, code: str, lifetime: timedelta) -> None:
        """Mail the code that signs the person in. Raises as `send_code`."""


class LinkRequest(Struct, frozen=True):
    """A code was mailed. `id`: of the link to confirm; `expires_at`: until when the code is valid."""

    id: str
    expires_at: datetime


class Link(Struct, frozen=True):
    """A linked contact, with its address in canonical form."""

    user: Id
    channel: str
    address: str


class Linking:
    """Linking in all tenants; one per process. `mailer`: None if no mail server is set up."""

    def __init__(
        self,
        store: Store,
        directory: Directory,
        mailer: CodeMailer | None,
        lifetime: timedelta = LIFETIME,
    ) -> None:
        self._store = store
        self._directory = directory
        self._mailer = mailer
        self._lifetime = lifetime
        self._secret = InstallationSecret(store, CODES)

    async def request(self, tenant: str, channel: str, address: str, email: str, language: str = "") -> LinkRequest:
        """Mail a code to the person with this e-mail address. `language`: of a person that has stated none.

        Raises NotFound EMAIL_UNKNOWN, Conflict CONTACT_LINKED, TooMany TOO_MANY_MAILS, Invalid, Conflict
        MAIL_NOT_SET_UP, NotMailed MAIL_REFUSED or MAIL_UNAVAILABLE.
        """
        raise_first(faults_of_contacts({channel: [address]}, None))
        mailer = self._require_mailer()
        address, code, call = canonical(channel, address), new_code(), secrets.token_hex(8)
        link = link_id(channel, address)
        hashed = code_hash(await self._secret.key(), f"{tenant}:{link}", code)
        arguments = (link, canonical_email(email), channel, address, hashed, call, *self._limits())
        reply = await self._store.run_for_tenant("request_link", tenant, *arguments)
        if reply[0] != "requested":
            raise _refusal(reply)
        try:
            user = await self._directory.users.find(tenant, reply[1])
            await mailer.send_code(replace(user, locale=user.locale or language or None), channel, code, self._lifetime)
        except BaseException:  # whatever it is, also a cancellation: a code that was not mailed does not count
            await self._store.run_for_tenant("withdraw_link", tenant, link, call)
            raise
        return LinkRequest(link, from_ms(reply[2]))

    def _require_mailer(self) -> CodeMailer:
        if self._mailer is None:
            raise Conflict("MAIL_NOT_SET_UP", "No code can be mailed: ADA_SMTP_URL is not set.")
        return self._mailer

    def _limits(self) -> tuple[int, int, int, int]:
        return self._lifetime // timedelta(milliseconds=1), MOST_MAILS, MOST_MAILS_TO_PERSON, _HOUR_MS

    async def confirm(self, tenant: str, channel: str, address: str, code: str) -> Link:
        """Link the contact to the person that got the code.

        Raises NotFound CODE_MISSING (none was requested, or it is used), Forbidden CODE_WRONG, Conflict CODE_EXPIRED or
        CONTACT_LINKED, TooMany TOO_MANY_GUESSES (the code is void), ImportRunning.
        """
        return await self.confirm_id(tenant, link_id(channel, canonical(channel, address)), code)

    async def confirm_id(self, tenant: str, link: str, code: str) -> Link:
        """Confirm by the id of the link."""
        call = secrets.token_hex(8)
        hashed = code_hash(await self._secret.key(), f"{tenant}:{link}", code)
        while True:
            found = await self._find(tenant, link)
            if found is None:
                raise _refusal(["missing"])
            linked, version, record = found
            arguments = (link, hashed, call, version, record, MOST_GUESSES)
            reply = await self._store.run_for_tenant("confirm_link", tenant, *arguments)
            if reply[0] == "linked":
                return linked
            if reply[0] != "changed":
                raise _refusal(reply)

    async def _find(self, tenant: str, link: str) -> tuple[Link, str, str] | None:
        """Return what a link would make, the version of the person's record, and its record with the contact."""
        user_id, channel, address = await self._store.read_hash(
            self._store.tenant_key("link", tenant, link), "user", "channel", "address"
        )
        record = await self._directory.records.find(tenant, User, user_id) if user_id else None
        if record is None or channel is None or address is None:
            return None
        user = _with_contact(decode_record(record, User), channel, address)
        return Link(user.id, channel, address), version_of(record), encode_record(user)

    async def unlink(self, tenant: str, channel: str, address: str) -> User:
        """Remove this one contact from the person who has it; return the person. Raises NotFound CONTACT_NOT_LINKED."""
        user = await self._directory.users.by_contact(tenant, channel, address)
        if user is None:
            raise NotFound("CONTACT_NOT_LINKED", "This contact belongs to no person.")
        return await self._directory.users.remove_contact(tenant, user.id, channel, address)


def is_code(written: str) -> bool:
    code = as_typed(written)
    return len(code) == LENGTH and all(letter in ALPHABET for letter in code)


def link_id(channel: str, address: str) -> str:
    """Return the id of the link of a contact. It is the same for every request, so a contact has one code at a time."""
    return blake2b(f"{channel}\n{address}".encode(), digest_size=16).hexdigest()


def _with_contact(user: User, channel: str, address: str) -> User:
    addresses = [*user.contacts.get(channel, ()), address]
    return replace(user, contacts={**user.contacts, channel: list(dict.fromkeys(addresses))})


def _refusal(reply: Sequence[str]) -> Refused:
    """Return the error for a reply of a function."""
    match reply[0]:
        case "linked" | "taken":
            return Conflict("CONTACT_LINKED", "This contact is linked already. Unlink it first.")
        case "unknown":
            return NotFound("EMAIL_UNKNOWN", "No person has this e-mail address.", "email")
        case "mails":
            detail = (
                f"At most {MOST_MAILS} codes an hour are mailed for one contact, {MOST_MAILS_TO_PERSON} to one person."
            )
            return TooMany("TOO_MANY_MAILS", detail, timedelta(milliseconds=int(reply[1])))
        case "expired":
            return Conflict("CODE_EXPIRED", "The code has expired. Request a new one.", "code")
        case "wrong":
            return Forbidden(
                "CODE_WRONG", f"The code is wrong. Left: {counted(max(int(reply[1]), 0), 'guess', 'guesses')}.", "code"
            )
        case "guesses":
            detail = f"After {MOST_GUESSES} wrong codes a new one must be requested."
            return TooMany("TOO_MANY_GUESSES", detail, timedelta(0))
        case "importing":
            return ImportRunning()
        case _:
            return NotFound("CODE_MISSING", "No code was requested for this contact.")


def new_code() -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))


def as_typed(text: str) -> str:
    """Return the code that a person typed: without spaces and dashes, in capital letters. May be no code at all."""
    return "".join(text.replace("-", "").split()).upper().translate(_LOOKALIKES)


def code_hash(secret: bytes, link: str, code: str) -> str:
    """Return what is stored. The same code has another hash in every link, and in every installation."""
    return hmac.digest(secret, f"{link}\n{as_typed(code)}".encode(errors="surrogatepass"), "sha256").hex()
