"""The groups, supergroups and people that a person may write to, as a bot offers them."""

from collections.abc import Sequence
from hashlib import blake2b

from msgspec import Struct

from core.directory import Directory
from core.model.history_key import Id
from core.model.people import Group, ObjectKind, Supergroup, User, id_text
from core.orders.order import Addressee

_PAGE = 500


PERSON = "person"


class Choice(Struct, frozen=True):
    """A group or person that a sender may write to. `kind`: `group`, `supergroup` or `person`; `ref`: `<kind>:<id>`."""

    kind: str
    id: Id
    title: str

    @property
    def ref(self) -> str:
        return f"{self.kind}:{id_text(self.id)}"

    @property
    def short(self) -> str:
        """A name for the data of a button: an id may be longer than that."""
        return blake2b(self.ref.encode(), digest_size=6).hexdigest()


def addressee(ref: str) -> Addressee:
    """Return the addressee of an order."""
    kind, _, object_id = ref.partition(":")
    if kind == PERSON:
        return Addressee(object_id)
    return Addressee(group=object_id) if kind == "group" else Addressee(supergroup=object_id)


def person_choice(user: User) -> Choice:
    return Choice(PERSON, user.id, user.name or id_text(user.id))


class Addressees:
    """Of one tenant."""

    def __init__(self, directory: Directory, tenant: str) -> None:
        self._directory = directory
        self._tenant = tenant

    async def of(self, user: User | None) -> Sequence[Choice]:
        """Return the groups and supergroups that a person owns; None: all of the tenant. Groups first, sorted by
        title.
        """
        groups, supergroups = await (self._owned(user) if user else self._all())
        kinds: tuple[tuple[ObjectKind, Sequence[Group | Supergroup]], ...] = (
            ("group", groups),
            ("supergroup", supergroups),
        )
        return [choice for kind, some in kinds for choice in _sorted(kind, some)]

    async def _owned(self, user: User) -> tuple[Sequence[Group], Sequence[Supergroup]]:
        owned = await self._directory.ownerships.of(self._tenant, user.id)
        group_ids = [one.id for one in owned if one.kind == "group"]
        super_ids = [one.id for one in owned if one.kind == "supergroup"]
        groups = await self._directory.groups.lookup(self._tenant, group_ids)
        supergroups = await self._directory.supergroups.lookup(self._tenant, super_ids)
        return [one for one in groups if one], [one for one in supergroups if one]

    async def _all(self) -> tuple[Sequence[Group], Sequence[Supergroup]]:
        return await self._all_groups(), await self._all_supergroups()

    async def _all_groups(self) -> Sequence[Group]:
        page = await self._directory.groups.page(self._tenant, limit=_PAGE)
        found = list(page.items)
        while page.next:
            page = await self._directory.groups.page(self._tenant, cursor=page.next, limit=_PAGE)
            found += page.items
        return found

    async def _all_supergroups(self) -> Sequence[Supergroup]:
        page = await self._directory.supergroups.page(self._tenant, limit=_PAGE)
        found = list(page.items)
        while page.next:
            page = await self._directory.supergroups.page(self._tenant, cursor=page.next, limit=_PAGE)
            found += page.items
        return found


def _sorted(kind: ObjectKind, some: Sequence[Group | Supergroup]) -> Sequence[Choice]:
    choices = [Choice(kind, one.id, one.title or id_text(one.id)) for one in some]
    return sorted(choices, key=lambda choice: (choice.title.lower(), choice.ref))
