"""Promo codes (C-87): made, changed, checked and listed by the actions `create_promo`, `modify_promo`, `check_promo`,
`promo_management`.

Guarantees: a step makes one code, however often it is repeated. With a salt the same name, person and salt always give
the same code. A code is never given to a second promo. An expired one is kept for 30 more days.
"""

import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta, tzinfo
from hashlib import blake2b

import msgspec
from msgspec import Struct, structs

from core.errors import Conflict
from core.model.clock import from_ms, in_ms, to_ms
from core.model.json_form import compact_json
from core.redis.keys import KEYS
from core.redis.store import Store
from scenarios.bot.data import Data
from scenarios.placeholders import HTML
from scenarios.stores import step_results
from scenarios.words import Text, sentence

MOST = 100_000
"""Codes of a tenant."""
LENGTH = 8
FORGOTTEN = timedelta(days=30)
_PAGE = 200
_DELETED = "deleted"
"""The owner of the codes of a person that was deleted."""
_MOST_READ = 5000
"""Codes that one list reads at most, to find those that match."""
MOST_LISTED = 50
"""Codes of one list; a message has room for about as many."""
LETTERS, DIGITS = "ABCDEFGHJKLMNPQRSTUVWXYZ", "23456789"
"""Without letters and digits that look alike. 32 of them, so each is five bits of a hash."""

ALWAYS = datetime(2000, 1, 1, tzinfo=UTC), datetime(2999, 12, 31, 23, 59, 59, tzinfo=UTC)
"""When a permanent code is valid."""


class Promo(Struct, frozen=True, omit_defaults=True):
    """A promo code. `user_id`: the only person who may use it, "" for all. Times in ms; `ends` 0: never.
    `step`: the step that made it. `id`: its number, 0 before it is stored.
    """

    code: str
    name: str
    user_id: str
    starts: int
    ends: int = 0
    step: str = ""
    id: int = 0

    @property
    def is_permanent(self) -> bool:
        return (self.starts, self.ends) == tuple(map(to_ms, ALWAYS))


def fault_of(promo: Promo, name: str, user_id: str, now: int, zone: tzinfo) -> tuple[str, Text] | None:
    """Return the code and the words of why this person cannot use a promo now; None if it can. `name`: that of the
    wanted promo, "" for any.
    """
    if name and promo.name != name:
        return "PROMO_OF_OTHER_NAME", sentence("promo_of_other_name", name=name)
    if promo.user_id and promo.user_id != user_id:
        return "PROMO_OF_OTHER_PERSON", sentence("promo_of_other_person")
    if now < promo.starts:
        starts = from_ms(promo.starts).astimezone(zone)
        return "PROMO_NOT_YET_VALID", sentence("promo_not_yet_valid", at=f"{starts:%d.%m.%Y %H:%M}")
    return ("PROMO_EXPIRED", sentence("promo_expired")) if promo.ends and now >= promo.ends else None


def new_code(length: int, alphabet: str) -> str:
    """Return a random code."""
    return "".join(secrets.choice(alphabet) for _ in range(length))


def salted_code(name: str, user_id: str, salt: str, length: int, alphabet: str) -> str:
    """Return the code that these always give."""
    digest = blake2b("\n".join((name, user_id, salt)).encode(), digest_size=length).digest()
    return "".join(alphabet[byte % len(alphabet)] for byte in digest)


class Promos:
    """The promo codes of one tenant's bot."""

    def __init__(self, store: Store, tenant: str) -> None:
        self._store = store
        self._tenant = tenant
        self._shard = store.shard_of_tenant(tenant)

    async def store(self, promo: Promo) -> Promo:
        """Store a code; return it, or that of an earlier attempt at its step, or the same code of another step.

        Raises Conflict PROMO_TAKEN if the code is another promo's, TOO_MANY_PROMOS.
        """
        code, record = promo.code.upper(), _record(promo)
        limits = (MOST, in_ms(FORGOTTEN), step_results.KEPT_MS)
        reply = await self._store.run(
            "store_promo", self._shard, self._tenant, promo.step, code, record, promo.ends, *limits
        )
        if reply[0] == "full":
            raise Conflict("TOO_MANY_PROMOS", sentence("too_many_promos", most=MOST))
        stored = msgspec.json.decode(reply[1], type=Promo)
        if stored.step != promo.step and (stored.name, stored.user_id) != (promo.name, promo.user_id):
            raise Conflict("PROMO_TAKEN", sentence("code_belongs_another_promo", name=stored.code))
        return stored

    async def change(self, promo: Promo, changed: Promo) -> Promo:
        """Replace a stored promo.

        Raises Conflict PROMO_TAKEN if the new code is another promo's, PROMO_CHANGED if it has changed meanwhile.
        """
        before = f'{{"id":{promo.id},{_record(promo)[1:]}'
        arguments = (self._tenant, promo.id, before, changed.code.upper(), _record(changed), changed.ends)
        reply = await self._store.run("change_promo", self._shard, *arguments)
        if reply[0] == "taken":
            raise Conflict("PROMO_TAKEN", sentence("code_belongs_another_promo", name=changed.code))
        if reply[0] == "changed":
            raise Conflict("PROMO_CHANGED", sentence("promo_changed"))
        return msgspec.json.decode(reply[1], type=Promo)

    async def with_id(self, number: int) -> Promo | None:
        key = KEYS["promoids"].at(self._shard, self._tenant)
        found = await self._read(await self._store.command("ZRANGEBYSCORE", key, number, number))
        return found[0] if found else None

    async def find(self, code: str) -> Promo | None:
        """Return the promo with this code, in capitals or not."""
        found = await self._read([code.strip().upper()])
        return found[0] if found else None

    async def forget(self, user_id: str) -> None:
        """Take a person that is deleted out of its codes: nobody can use them any more."""
        key = KEYS["promolist"].at(self._shard, self._tenant)
        codes = await self._store.command("ZRANGE", key, 0, -1)  # in pages by rank one is missed if another ends
        for first in range(0, len(codes), _PAGE):
            for promo in await self._read(codes[first : first + _PAGE]):
                await self._disown(promo, user_id)

    async def _disown(self, promo: Promo | None, user_id: str) -> None:
        while promo and promo.user_id == user_id:
            with suppress(Conflict):  # a bot has changed it meanwhile
                await self.change(promo, structs.replace(promo, user_id=_DELETED))
            promo = await self.with_id(promo.id)

    async def newest(self, limit: int, matches: Callable[[Promo], bool] = lambda promo: True) -> list[Promo]:
        """Return the newest codes that match, newest first."""
        found: list[Promo] = []
        key = KEYS["promolist"].at(self._shard, self._tenant)
        for first in range(0, _MOST_READ, _PAGE):
            codes = await self._store.command("ZREVRANGE", key, first, first + _PAGE - 1)
            page = await self._read(codes)
            found += filter(matches, page)
            if len(found) >= limit or len(codes) < _PAGE:
                break
        return found[:limit]

    async def _read(self, codes: Sequence[str]) -> list[Promo]:
        if not codes:
            return []
        records = await self._store.command("HMGET", KEYS["promos"].at(self._shard, self._tenant), *codes)
        return [msgspec.json.decode(record, type=Promo) for record in records if record]


def _record(promo: Promo) -> str:
    """Return a promo as it is stored, without its id, which the server adds in front."""
    return compact_json(structs.replace(promo, id=0))


def listed(promos: Sequence[Promo], zone: tzinfo, most: int = MOST_LISTED) -> str:
    """Return a readable list in HTML, one line for each code; … in place of those beyond `most`."""
    more = ["…"] if len(promos) > most else []
    return "\n".join([*(shown(promo, zone) for promo in promos[:most]), *more])


def shown(promo: Promo, zone: tzinfo) -> str:
    """Return a code, its name, when it is valid, and the id of its person."""
    starts = from_ms(promo.starts).astimezone(zone)
    ends = f"{from_ms(promo.ends).astimezone(zone):%d.%m.%Y %H:%M}" if promo.ends else "∞"
    user = f" · id {HTML.escape(promo.user_id)}" if promo.user_id else ""
    what = f"<code>{HTML.escape(promo.code)}</code> · {HTML.escape(promo.name)}"
    return f"{what} · {starts:%d.%m.%Y %H:%M} – {ends}{user}"


def results_of(promo: Promo, zone: tzinfo) -> dict[str, Data]:
    """Return what actions return of a promo: `expired_at` only if it ever expires, `target_user_id` None for
    all people."""
    ends = {"expired_at": from_ms(promo.ends).astimezone(zone).isoformat()} if promo.ends else {}
    return {
        "promo_id": promo.id,
        "promo_code": promo.code,
        "promo_name": promo.name,
        "target_user_id": promo.user_id or None,
        "started_at": from_ms(promo.starts).astimezone(zone).isoformat(),
        "permanent": promo.is_permanent,
        **ends,
    }
