"""Addresses that people type into what they write to each other. A message with one is held until its author has
confirmed that the other side may see it.
"""

import re
from datetime import timedelta

from core.model.clock import in_ms
from core.redis.keys import KEYS
from core.redis.store import Store
from core.threads.threads import ReplyRoute
from core.updates.events import Event, decode, encode

_KEPT = timedelta(days=2)
"""Longer than a number in an SMS is an answer to the question."""
_MOST = 5

_ADDRESS = re.compile(
    r"""
    (?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+                              # mail; a long word is read once
    | (?<![\w@.])@[A-Za-z]\w{3,31}                                        # an account
    | \[(?:id|club|public)\d+\|[^\]]{0,200}\]                                 # an account, as VK writes it
    | (?<![\w.-])(?:www\.|m\.)?(?:(?:t|telegram)\.me|telegram\.dog|vk\.(?:com|ru|me)|wa\.me|max\.ru|ok\.ru
        |(?:instagram|facebook)\.com|discord\.gg|join\.skype\.com)/[\w@./+-]+
    | skype:[\w.,-]+
    | tg://[\w?=&/+-]+
    | (?<![\w+])(?:\+|00)[ ]?\d(?:[ \u00a0().\u2010-\u2015-]{0,3}\d){7,14}(?!\w)        # a telephone of any country
    | (?<![\w+.,:/-])[78](?:[ \u00a0()\u2010-\u2015-]{0,3}\d){10}(?![ -]?\d|\w)        # of Russia
    | (?<![\w+.,:/-])(?:\(\d{3,5}\)|9\d\d)(?:[ \u00a0-]?\d){5,7}(?![ -]?\d|\w)
    | (?<![\w+.,:/-])\d{3}[ -]\d\d-\d\d(?![ -]?\d|\w)                     # of a town
    """,
    re.VERBOSE | re.IGNORECASE,
)


def typed_addresses(text: str) -> list[str]:
    """Return the first addresses in a text, each once: of mail, telephones, accounts and their pages."""
    return list(dict.fromkeys(found[0].strip() for found in _ADDRESS.finditer(text)))[:_MOST]


class HeldReplies:
    """One per process. Methods raise StoreError."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def hold(self, tenant: str, way: ReplyRoute, name: str, event: Event) -> None:
        """Keep an event that its author may send under this name, and what it has written before, for two days."""
        key = self._key(tenant, way)
        await self._store.command("HSET", key, name, encode(event))
        await self._store.command("PEXPIRE", key, in_ms(_KEPT))

    async def find(self, tenant: str, way: ReplyRoute, name: str) -> Event | None:
        """Return what this account has written under the name; None if it is no longer kept."""
        stored = await self._store.command("HGET", self._key(tenant, way), name)
        return decode(stored) if stored else None

    async def forget(self, tenant: str, way: ReplyRoute) -> None:
        """Delete all that this account has written and not confirmed."""
        await self._store.command("DEL", self._key(tenant, way))

    def _key(self, tenant: str, way: ReplyRoute) -> str:
        return KEYS["held_reply"].at(self._store.shard_of_person(tenant, *way), tenant, *way)
