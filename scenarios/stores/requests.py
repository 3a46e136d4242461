"""Requests of people: stored by `request` (C-63), listed and shown by `request_management` (C-64, C-65).

Guarantees: a step stores one request, however often it is repeated. A request has a number of its own, which grows, and
is kept for 400 days.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta, tzinfo
from itertools import chain

import msgspec
from msgspec import Struct

from core.model.clock import from_ms, in_ms, to_ms
from core.model.json_form import JsonValue, compact_json
from core.redis.keys import KEYS
from core.redis.store import Store
from scenarios.placeholders import HTML
from scenarios.stores import step_results

KEPT = timedelta(days=400)
MOST_LISTED = 100
"""Requests of one list; a message has room for about as many."""


class NewRequest(Struct, frozen=True, omit_defaults=True):
    """The stored record of a request. `attachments`: as in the event. `info`: the author's note."""

    name: str
    channel: str
    user_id: str
    username: str = ""
    first_name: str = ""
    last_name: str = ""
    chat_id: str = ""
    text: str = ""
    attachments: Sequence[JsonValue] = ()
    info: str = ""


class PersonRequest(NewRequest, frozen=True, kw_only=True):
    """A stored request. `at`: when it was stored (ms)."""

    id: int
    at: int


class Requests:
    """The requests of one tenant's bot."""

    def __init__(self, store: Store, tenant: str) -> None:
        self._store = store
        self._tenant = tenant
        self._shard = store.shard_of_tenant(tenant)

    async def store(self, step: str, request: NewRequest) -> int:
        """Store a request; return its id. A repeat of the same step returns the id of the first time."""
        arguments = (self._tenant, step, request.name, compact_json(request), in_ms(KEPT), step_results.KEPT_MS)
        return int(await self._store.run("store_request", self._shard, *arguments))

    async def find(self, number: int) -> PersonRequest | None:
        found = await self._read([str(number)])
        return found[0] if found else None

    async def newest(
        self, names: Sequence[str] = (), since: datetime | None = None, limit: int = MOST_LISTED
    ) -> list[PersonRequest]:
        """Return the newest requests, newest first; of these names, if any are given."""
        lists = [f"name:{name}" for name in names] or ["all"]
        found = [await self._ids(of, since, limit) for of in lists]
        newest = sorted(set(chain.from_iterable(found)), key=int, reverse=True)[:limit]
        return await self._read(newest)

    async def _ids(self, of: str, since: datetime | None, most: int) -> list[str]:
        key, low = KEYS["requestlist"].at(self._shard, self._tenant, of), to_ms(since) if since else "-inf"
        ids: list[str] = await self._store.command("ZREVRANGEBYSCORE", key, "+inf", low, "LIMIT", 0, most)
        return ids

    async def _read(self, ids: Sequence[str]) -> list[PersonRequest]:
        """Return the requests with these ids that are still kept."""
        if not ids:
            return []
        records = await self._store.command(
            "MGET", *(KEYS["request"].at(self._shard, self._tenant, one) for one in ids)
        )
        return [msgspec.json.decode(record, type=PersonRequest) for record in records if record]


def listed(requests: Sequence[PersonRequest], zone: tzinfo, most: int = MOST_LISTED) -> str:
    """Return a readable list in HTML, one paragraph for each request; … in place of those beyond `most`."""
    more = ["…"] if len(requests) > most else []
    return "\n\n".join([*(shown(request, zone, 200) for request in requests[:most]), *more])


def shown(request: PersonRequest, zone: tzinfo, longest: int = 3000) -> str:
    """Return a request in HTML. `longest`: characters of its text and of its note."""
    at = from_ms(request.at).astimezone(zone)
    who = " ".join(one for one in (request.first_name, request.last_name) if one) or request.user_id
    name = f" (@{request.username})" if request.username else ""
    lines = [
        f"<b>#{request.id}</b> · {HTML.escape(request.name)} · {at:%d.%m.%Y %H:%M}",
        HTML.escape(f"{who}{name}"),
        HTML.escape(_cut(request.text, longest)),
        f"<i>{HTML.escape(_cut(request.info, longest))}</i>" if request.info else "",
        f"📎 {len(request.attachments)}" if request.attachments else "",
    ]
    return "\n".join(line for line in lines if line)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
