"""People who sign in with an account of an identity provider.

    an account whose person is known                          ─▶ a session
    an account with a verified e-mail address of a person     ─▶ bound to the person, and a session
    any other                                                 ─▶ kept for its browser until a mailed code says who it is

Guarantees: an account is found by issuer and subject only. An e-mail address decides only once, if the issuer has
verified it, and never for a person that has an account of this issuer already. What the issuer says about roles changes
only the roles that a rule gives. A session of an account ends when the issuer ends it, and when the person loses it.
"""

from collections.abc import Sequence
from datetime import timedelta
from hashlib import sha256

import msgspec
from msgspec import Struct

from core.directory import Directory
from core.errors import Forbidden, Invalid
from core.model.people import ACCOUNTS, User, UserChange
from core.redis.keys import KEYS
from core.redis.store import Store
from core.sessions.links import Proven
from core.sessions.sessions import LIFETIME_OF_PEOPLE, NewSession, OutsideLogin, Sessions

LINK_LIFETIME = timedelta(minutes=30)
"""Time in which a person confirms by a mailed code whose an account is."""

_MS = timedelta(milliseconds=1)


class OutsideAccount(Struct, frozen=True):
    """An account that has just signed in. `login`: the issuer's id of this sign-in, "" if it has none. `email`: an
    address that the issuer has verified, "" without one. `role`: by rule, None for none; `ruled_roles`: those that the
    rule can give.
    """

    tenant: str
    issuer: str
    subject: str
    login: str = ""
    email: str = ""
    role: str | None = None
    ruled_roles: Sequence[str] = ()

    @property
    def external_id(self) -> str:
        return external_id(self.issuer, self.subject)


class EndedLogin(Struct, frozen=True):
    """A logout at the issuer: it ends all sessions of a subject, or with `login` those of one sign-in. `token`: the id
    of the message, which counts once.
    """

    tenant: str
    issuer: str
    subject: str
    login: str
    token: str


def external_id(issuer: str, subject: str) -> str:
    """Return the external id of an account: issuer and subject as digests, so that it has no name in it."""
    return f"{_prefix(issuer)}{_digest(issuer, subject)}"


def _prefix(issuer: str) -> str:
    return f"{ACCOUNTS}:{_digest(issuer)[:16]}-"


def _digest(*words: str) -> str:
    return sha256("\0".join(words).encode(errors="replace")).hexdigest()


class OutsideAccounts:
    """The accounts of all tenants."""

    def __init__(self, store: Store, directory: Directory, sessions: Sessions) -> None:
        self._store = store
        self._directory = directory
        self._sessions = sessions

    async def sign_in(self, account: OutsideAccount) -> NewSession | None:
        """Begin a session of the person with this account; None if no person has it. Raises Forbidden
        ACCOUNT_BLOCKED."""
        users = self._directory.users
        person = await users.by_external_id(account.tenant, account.external_id)
        if person is None and (candidate := await self._with_verified_address(account)):
            person = await users.add_external_id(account.tenant, candidate.id, account.external_id)
        return await self._begin(account, person) if person else None

    async def _with_verified_address(self, account: OutsideAccount) -> User | None:
        person = await self._directory.users.by_email(account.tenant, account.email) if account.email else None
        has_another = person and any(one.startswith(_prefix(account.issuer)) for one in person.external_ids)
        return None if has_another else person

    async def _begin(self, account: OutsideAccount, person: User) -> NewSession:
        if person.blocked:
            raise Forbidden("ACCOUNT_BLOCKED", "This person is blocked and cannot sign in.")
        if person.role != account.role and (person.role is None or person.role in account.ruled_roles):
            await self._directory.users.update(account.tenant, person.id, UserChange(role=account.role))
        login = _digest(account.issuer, account.login) if account.login else ""
        if login:
            name = self._login_key(account.tenant, login)
            await self._store.command("SET", name, account.external_id, "PX", LIFETIME_OF_PEOPLE // _MS)
        outside = OutsideLogin(account.external_id, login)
        return await self._sessions.begin_as_person(account.tenant, person.id, outside)

    async def keep(self, account: OutsideAccount, browser: str) -> None:
        """Keep an account without a person for `link`. `browser`: the secret of the browser that has signed in."""
        stored = msgspec.json.encode(account).decode()
        await self._store.command("SET", self._kept_key(account.tenant, browser), stored, "PX", LINK_LIFETIME // _MS)

    async def link(self, browser: str, proven: Proven) -> NewSession:
        """Bind the account that was kept for this browser to a person who has proved its identity, and begin its
        session. Raises Invalid SIGN_IN_UNKNOWN, Conflict EXTERNAL_ID_TAKEN, LIMIT_REACHED; Forbidden ACCOUNT_BLOCKED.
        """
        stored = await self._store.command("GETDEL", self._kept_key(proven.tenant, browser)) if browser else None
        if stored is None:
            raise Invalid("SIGN_IN_UNKNOWN", "This sign-in is not known here, was used before, or took too long.")
        account = msgspec.json.decode(stored, type=OutsideAccount)
        person = await self._directory.users.add_external_id(proven.tenant, proven.person, account.external_id)
        return await self._begin(account, person)

    async def end(self, ended: EndedLogin) -> None:
        """End the sessions that an issuer has ended. The same message has no effect a second time."""
        seen = KEYS["logout_token"].at(self._store.shard_of_tenant(ended.tenant), _digest(ended.issuer, ended.token))
        login = _digest(ended.issuer, ended.login) if ended.login else ""
        account = external_id(ended.issuer, ended.subject) if ended.subject else None
        if account is None:
            account = await self._store.command("GET", self._login_key(ended.tenant, login))
        is_new = await self._store.command("GET", seen) is None
        person = await self._directory.users.by_external_id(ended.tenant, account) if account and is_new else None
        if account and person:
            await self._sessions.end_outside(ended.tenant, person, OutsideLogin(account, login))
        await self._store.command("SET", seen, "1", "PX", LINK_LIFETIME // _MS)  # last: a repeat after a fault counts

    def _login_key(self, tenant: str, login: str) -> str:
        return KEYS["outside_login"].at(self._store.shard_of_tenant(tenant), login)

    def _kept_key(self, tenant: str, browser: str) -> str:
        return KEYS["kept_account"].at(self._store.shard_of_tenant(tenant), _digest(tenant, browser))
