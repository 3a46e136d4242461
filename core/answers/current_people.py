"""Checks before a message or a reminder goes out, or an answer counts: does the address still belong to the recipient,
and is the recipient still a guardian of the child?
"""

import asyncio
from collections.abc import Collection, Sequence

from core.directory import Directory
from core.directory.departed import DepartedPeople
from core.model.delivery import Contact
from core.model.history_key import Id
from core.model.people import User, id_text
from core.redis.store import Store


class CurrentPeople:
    """One per process. Methods raise StoreError."""

    def __init__(self, store: Store) -> None:
        self._users = Directory(store).users
        self._departed = DepartedPeople(store)

    async def have_lost(self, tenant: str, contacts: Sequence[Contact], ordered: int) -> list[bool]:
        """Return for each contact, a person with channel and address, whether it was removed from the person after a
        message was ordered, in ms; of who was deleted, whether another person has it. An address that the directory
        never had for the person is its own, as the order says.
        """
        owners = await self._users.owners(tenant, [(channel, address) for _, channel, address in contacts])
        unsure = [
            (n, contact) for n, contact in enumerate(contacts) if owners[n] is None or owners[n] != id_text(contact[0])
        ]
        heirs = await asyncio.gather(*(self._departed.heir_of(tenant, person) for _, (person, *_) in unsure))
        own = [
            (heir or person, channel, address)
            for (_, (person, channel, address)), heir in zip(unsure, heirs, strict=True)
        ]
        removals = await self._users.removals(tenant, own)
        lost = [False] * len(contacts)
        for (n, _), heir, removed in zip(unsure, heirs, removals, strict=True):
            is_of_heir = bool(heir) and owners[n] == heir
            lost[n] = owners[n] is not None if heir == "" else not is_of_heir and 0 < ordered <= removed
        return lost

    async def accept(self, tenant: str, contacts: Sequence[Contact]) -> list[bool]:
        """Return for each contact whether its person, and the person that has the address by now, may be written to in
        the channel.
        """
        people = dict.fromkeys(id_text(person) for person, *_ in contacts)
        known = dict(zip(people, await self._users.lookup(tenant, list(people)), strict=True)) if people else {}
        owners = await self._users.at(tenant, [(channel, address) for _, channel, address in contacts])
        return [
            all(one is None or one.accepts(channel) for one in (known[id_text(person)], owner))
            for (person, channel, _), owner in zip(contacts, owners, strict=True)
        ]

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
