"""Who makes a request, and with which rights. Frozen values."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from core.admission.api_keys import ApiKey
from core.model.history_key import Id
from core.model.people import User, id_text

_SCOPES_OF_ROLES: Mapping[str | None, frozenset[str]] = {
    "trainer": frozenset({"send", "read"}),
    "staff": frozenset({"send", "read"}),
    "admin": frozenset({"send", "read", "manage"}),
}
_OF_ANY_PERSON = frozenset({"read"})


@dataclass(frozen=True, slots=True)
class Identity:
    """`person` None: a program, or a session that an API key has begun. `session`: the hash of its secret, "" for a
    request with a key. For a person, `key` has the tenant and the scopes of its role.
    """

    key: ApiKey
    person: User | None = None
    session: str = ""

    @classmethod
    def of_person(cls, tenant: str, person: User, session: str, since: datetime) -> "Identity":
        """Return the identity of a person who is signed in."""
        scopes = _SCOPES_OF_ROLES.get(person.role, _OF_ANY_PERSON)
        key = ApiKey(f"person:{tenant}:{person.id}", tenant, scopes, person.name or str(person.id), since)
        return cls(key, person, session)

    @property
    def tenant(self) -> str:
        return self.key.tenant

    def may_see_deliveries_of(self, sender: Id) -> bool:
        """Return whether the deliveries of a sender are this identity's to see and to change: a person's are its own,
        a key's all of its tenant.
        """
        return self.person is None or id_text(self.person.id) == id_text(sender)
