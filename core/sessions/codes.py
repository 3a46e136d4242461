"""Codes that are mailed to sign a person in.

Guarantees: a code is valid for 24 minutes and signs in once; only its hash is stored; after 5 wrong guesses it is
void; in an hour at most 5 are mailed to one address. No response reveals whether an address has a person: the
responses, their time and the limits are the same, because the mail is sent after the answer (docs/decisions/0102).

The id of a code names the shard of its tenant, in which its record stands.
"""

import asyncio
import logging
import secrets
from datetime import datetime, timedelta
from hashlib import blake2b

from msgspec import Struct

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
from core.errors import Conflict, Forbidden, StoreError, TooMany, raise_first
from core.model.clock import from_ms
from core.model.people import canonical_email, faults_of_email
from core.redis.installation_secrets import InstallationSecret
from core.redis.store import Store
from core.sessions.links import Proven
from core.sessions.sessions import new_secret, shard_in

log = logging.getLogger(__name__)

_MS = timedelta(milliseconds=1)


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
