"""Personal keys: a person's own program acts as the person, with some of its rights, until a day that the person chose.

    a signed-in person ─▶ create ─▶ a secret, shown once ─▶ Authorization: Bearer ─▶ Sessions.find_personal_key

Guarantees: a key has never a right that its person has not at this moment; only the hash of its secret is stored; it
ends with its time, by `revoke`, with all sessions of the person, and when the person is deleted or merged into another.
While the person is blocked it is refused. Over HTTP only a person who is signed in creates keys, and lists and revokes
its own (`check_signed_in`): a key that is stolen makes no second one. Who manages people lists and revokes those of
others. The verb `key` does all of it for every person.
"""

import secrets
from collections.abc import Collection
from datetime import UTC, datetime, timedelta

from core.admission.api_keys import check_key_name
from core.errors import Conflict, Forbidden, Invalid, NotFound
from core.model.people import User, id_text
from core.sessions.sessions import CALENDAR, PERSONAL_KEY, Identity, PersonalKey, Sessions, StoredSession, new_secret

MOST_KEYS = 20
"""How many personal keys a person has at most."""
DEFAULT_DAYS, LONGEST_DAYS = 90, 366
"""How long a key is valid, in days."""


class PersonalKeys:
    """The personal keys of the people of all tenants."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def create(
        self, identity: Identity, name: str, scopes: Collection[str], lifetime: timedelta
    ) -> tuple[PersonalKey, str]:
        """Create a key of the person of `identity`; return it with its secret, which is not stored. Raises Forbidden
        SCOPE_MISSING, SESSION_ENDED for a person who is blocked; Invalid KEY_NAME_MALFORMED, CALENDAR_ALONE;
        Conflict KEY_LIMIT_REACHED.
        """
        check_key_name(name)
        if CALENDAR in scopes and len(set(scopes)) > 1:
            raise Invalid(
                "CALENDAR_ALONE", "A key for the calendar has no further scope: it stands in an address.", "scopes"
            )
        for number, scope in enumerate(scopes):
            if scope not in (*identity.key.scopes, CALENDAR):
                raise Forbidden("SCOPE_MISSING", f"The person does not have the right {scope}.", f"scopes.{number}")
        if len(await self.list(identity)) >= MOST_KEYS:
            raise Conflict("KEY_LIMIT_REACHED", f"A person has at most {MOST_KEYS} personal keys.")
        now = datetime.now(UTC)
        key = PersonalKey(secrets.token_hex(6), name, sorted(set(scopes)), now + lifetime)
        secret = PERSONAL_KEY + new_secret(self._sessions.shard_of(identity), 32)
        stored = StoredSession(identity.tenant, now, id_text(_person(identity).id), personal_key=key)
        await self._sessions.store(stored, secret, lifetime)
        return key, secret

    async def list(self, identity: Identity) -> list[PersonalKey]:
        """Return the keys of the person, that which ends first before the others."""
        sessions = (await self._sessions.all_of(identity)).values()
        return sorted((one.personal_key for one in sessions if one.personal_key), key=lambda key: key.expires_at)

    async def revoke(self, identity: Identity, key_id: str) -> None:
        """Revoke a key of the person. Raises NotFound KEY_NOT_FOUND."""
        for hashed, session in (await self._sessions.all_of(identity)).items():
            if session.personal_key and session.personal_key.id == key_id:
                return await self._sessions.end_hashed(identity, hashed)
        raise _not_found()

    async def revoke_of_anybody(self, key_id: str) -> tuple[str, str]:
        """Revoke a key of whichever person, also of one who is blocked; return its tenant and person. Raises NotFound
        KEY_NOT_FOUND.
        """
        async for tenant, person, key in self._sessions.personal_keys():
            if key.id == key_id:
                await self.revoke(Identity.of_person(tenant, User(person), "", datetime.now(UTC)), key_id)
                return tenant, person
        raise _not_found()


def check_signed_in(identity: Identity) -> Identity:
    """Return the identity of a person who is signed in. Raises Forbidden PERSON_SESSION_REQUIRED."""
    if identity.person is None or not identity.session:
        raise Forbidden("PERSON_SESSION_REQUIRED", "Only a person who is signed in to the console has personal keys.")
    return identity


def _person(identity: Identity) -> User:
    if identity.person is None:
        raise ValueError("an API key has no personal keys")
    return identity.person


def _not_found() -> NotFound:
    return NotFound("KEY_NOT_FOUND", "There is no such key.")
