"""Checks before an answer counts or a reminder goes out: does the address still belong to the recipient, and is the
recipient still a guardian of the child?
"""

from collections.abc import Collection, Sequence

from core.directory import Directory
from core.directory.departed import DepartedPeople
from core.model.history_key import Id
from core.model.people import User, id_text
from core.redis.store import Store


class CurrentPeople:
    """One per process. Methods raise StoreError."""

    def __init__(self, store: Store) -> None:
        self._users = Directory(store).users
        self._departed = DepartedPeople(store)

    async def have_lost(self, tenant: str, contacts: Sequence[tuple[Id, str, str]]) -> list[bool]:
        """Return for each contact, a person with channel and address, whether the address is another person's by now.
        Of who was never in the directory it is not.
        """
        owners = await self._users.owners(tenant, [(channel, address) for _, channel, address in contacts])
        return [
            owner is not None and owner != id_text(person) and await self._is_another(tenant, person, owner)
            for (person, *_), owner in zip(contacts, owners, strict=True)
        ]

    async def _is_another(self, tenant: str, person: Id, owner: str) -> bool:
        heir = await self._departed.heir_of(tenant, person)
        if heir is not None:
            return heir != owner
        (user,) = await self._users.lookup(tenant, [person])
        return user is not None

    async def ids_of(self, tenant: str, person: Id) -> Collection[str]:
        """Return the id of a person, and that of the person into which it was merged."""
        heir = await self._departed.heir_of(tenant, person)
        return {id_text(person), heir} if heir else {id_text(person)}


def is_barred_by(child: User | None, guardian: Collection[str]) -> bool:
    """Return whether a guardian gets nothing about a child: it is blocked for it, or its guardian no more. `guardian`:
    its ids. The child itself is never barred.
    """
    if child is None or id_text(child.id) in guardian:
        return False
    return not set(guardian).isdisjoint(child.blocked_guardians) or set(guardian).isdisjoint(child.guardians)
