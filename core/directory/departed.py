"""People who are gone: who was merged into whom, and whose data were deleted. Their inboxes outlive them."""

from datetime import timedelta

from core.model.history_key import Id
from core.model.people import id_text
from core.redis.keys import KEYS
from core.redis.store import Store

_RETENTION_MS, _REPLIED_TO_MS = (timedelta(days=days) // timedelta(milliseconds=1) for days in (30, 90))
"""Of a history, unless the settings of the store say otherwise, and for how long its messages can be replied to then:
as in lua/threads/modules/received.lua.
"""


class DepartedPeople:
    """One per process. Methods raise StoreError."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def inherited(self, tenant: str, person: Id) -> list[str]:
        """Return the ids of the people who were merged into a person: it reads their inboxes, too."""
        return sorted(await self._store.command("SMEMBERS", self._key("inherited_inboxes", tenant, person)))

    async def heir_of(self, tenant: str, person: Id) -> str | None:
        """Return the id of the person into which one was merged; "" if it was deleted, None if it was neither."""
        heir = await self._store.command("GET", self._key("inbox_heir", tenant, person))
        if heir is None and await self.was_deleted(tenant, person):
            return ""
        return None if heir is None else str(heir)

    async def was_deleted(self, tenant: str, person: Id) -> bool:
        """Return whether a person was deleted, and not merged into another one. It is known as long as its messages can
        be replied to.
        """
        return bool(await self._store.command("EXISTS", self._key("closed_inbox", tenant, person)))

    async def note_merged(self, tenant: str, kept: Id, other: Id) -> None:
        """Note that one person, with those who were merged into it, has become a part of another."""
        for one in [*await self.inherited(tenant, other), id_text(other)]:
            await self._store.command("SADD", self._key("inherited_inboxes", tenant, kept), one)
            await self._store.command("SET", self._key("inbox_heir", tenant, one), id_text(kept))
        await self.forget_inherited(tenant, other)

    async def note_deleted(self, tenant: str, person: Id) -> None:
        """Note that a person was deleted, for as long as its messages can be replied to."""
        settings = KEYS["settings"].at(self._store.shard_of(f"{tenant}:{person}"))
        kept = await self._store.command("HMGET", settings, "retention_ms", "answers_ms")
        retention = max(int(kept[0] or _RETENTION_MS), int(kept[1] or 0))
        key = self._key("closed_inbox", tenant, person)
        await self._store.command("SET", key, "1", "PX", retention + _REPLIED_TO_MS)
        await self._store.command("DEL", self._key("inbox_heir", tenant, person))

    async def forget_inherited(self, tenant: str, person: Id) -> None:
        """Delete whose inboxes a person reads besides its own."""
        await self._store.command("DEL", self._key("inherited_inboxes", tenant, person))

    def _key(self, name: str, tenant: str, person: Id) -> str:
        return KEYS[name].at(self._store.shard_of(f"{tenant}:{person}"), tenant, id_text(person))
