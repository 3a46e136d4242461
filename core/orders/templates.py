"""Messages that are kept to be sent again: those of a person, and those of its tenant, which keys keep.

They are few and small, so each owner has one hash. Nothing that was sent depends on them.
"""

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from core.errors import Conflict, NotFound
from core.model.history_key import Id
from core.model.json_form import compact_json
from core.model.people import id_text
from core.redis.store import Store

MOST = 100
_OF_ALL = "all"


class MessageTemplate(Struct, frozen=True, kw_only=True):
    """`message`: the fields of a delivery, as the API takes them. `shared`: it belongs to the tenant."""

    id: str = ""
    title: str
    message: Mapping[str, Any]
    shared: bool = False


_decode = msgspec.json.Decoder(MessageTemplate).decode


class MessageTemplates:
    """Templates of all tenants. `person` None: those of the tenant itself."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def list(self, tenant: str, person: Id | None) -> Sequence[MessageTemplate]:
        """Return the templates that a person may use, its own first, by title."""
        owners = [None] if person is None else [person, None]
        found = [await self._store.command("HVALS", self._key(tenant, owner)) for owner in owners]
        return [one for texts in found for one in sorted(map(_decode, texts), key=lambda one: one.title.casefold())]

    async def save(self, tenant: str, person: Id | None, template: MessageTemplate) -> MessageTemplate:
        """Keep a template under a new id. Raises Conflict TOO_MANY_TEMPLATES."""
        key = self._key(tenant, person)
        if await self._store.command("HLEN", key) >= MOST:
            raise Conflict("TOO_MANY_TEMPLATES", f"At most {MOST} templates are kept. Delete one first.")
        saved = replace(template, id=secrets.token_hex(6), shared=person is None)
        await self._store.write("HSET", key, saved.id, compact_json(saved))
        return saved

    async def delete(self, tenant: str, person: Id | None, template: str) -> None:
        """Delete a template. Raises NotFound TEMPLATE_NOT_FOUND, also for a template of another owner."""
        key = self._key(tenant, person)
        if await self._store.command("HGET", key, template) is None:
            raise NotFound("TEMPLATE_NOT_FOUND", "There is no such template of yours.")
        await self._store.write("HDEL", key, template)

    async def delete_all(self, tenant: str, person: Id) -> None:
        await self._store.write("DEL", self._key(tenant, person))

    def _key(self, tenant: str, person: Id | None) -> str:
        return self._store.tenant_key("templates", tenant, _OF_ALL if person is None else f"user:{id_text(person)}")
