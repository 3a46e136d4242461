"""Addresses that people type into what they write to each other. A message with one is held until its author has
confirmed that the other side may see it.
"""

import re
import unicodedata
from datetime import timedelta

from core.model.clock import in_ms
from core.redis.keys import KEYS
from core.redis.store import Store
from core.threads.incoming import Incoming
from core.threads.threads import ReplyRoute
from core.updates.events import Event, decode, encode

_KEPT = timedelta(days=2)
"""Longer than a number in an SMS is an answer to the question."""
_MOST = 5

_ADDRESS = re.compile(
    r"""
    (?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+                              # mail; a long word is read once
    | (?<![\w.+-])[\w.+-]+[ ]{0,3}@[ ]{0,3}[\w-]+(?:\.[\w-]+)*\.[^\W\d_]{2,}
    | (?<![\w.+-])[a-z0-9._+-]+\s{0,3}[(\[{<]\s?(?:at|эт|собака|собачка|@)\s?[)\]}>]\s{0,3}[a-z0-9-]+(?:\.[a-z0-9-]+)*
    | (?<![\w.+-])[\w.+-]+\s{1,3}(?:собака|собачка)\s{1,3}[a-z0-9-]+(?:\.[a-z0-9-]+)+
    | (?<![\w.+-])[\w.+-]+\s{1,3}(?:at|эт|собака|собачка)\s{1,3}(?!the\s)[\w-]+\s{1,3}(?:dot|точка)\s{1,3}\w{2,10}(?!\w)
    | (?<![\w@.])@[A-Za-z]\w{3,31}                                        # an account
    | \[(?:id|club|public)\d+\|[^\]]{0,200}\]                                 # an account, as VK writes it
    | (?<![\w.-])(?:www\.|m\.)?(?:(?:t|telegram)\.me|telegram\.dog|vk\.(?:com|ru|me)|wa\.me|max\.ru|ok\.ru
        |(?:instagram|facebook)\.com|discord\.gg|join\.skype\.com)/[\w@./+-]+
    | skype:[\w.,-]+
    | (?<!\w)(?:tg|тг|telegram|телеграмм?|телега|вк|vk|insta|instagram|инста|инстаграм|whatsapp|viber)[ ]?[:=][ ]{0,2}
        (?=\w{0,31}[\d_])[a-z][a-z0-9_.]{4,31}                             # an account of a messenger that is named
    | tg://[\w?=&/+-]+
    | (?<![\w+])(?:\+|00)[ ]?\d(?:[ \u00a0().\u2010-\u2015-]{0,3}\d){7,14}(?!\w)        # a telephone of any country
    | (?<![\w+.,:/-])[78](?:[ \u00a0()\u2010-\u2015-]{0,3}\d){10}(?![ -]?\d|\w)        # of Russia
    | (?<![\w+.,:/-])[78][._/]9\d\d[._/]\d{3}[._/]\d\d[._/]\d\d(?!\w)
    | (?<![\w+.,:/-])(?:\(\d{3,5}\)|9\d\d)(?:[ \u00a0-]?\d){5,7}(?![ -]?\d|\w)
    | (?<![\w+.,:/-])\d{3}[ -]\d\d-\d\d(?![ -]?\d|\w)                     # of a town
    """,
    re.VERBOSE | re.IGNORECASE,
)


_WIDE = {0xFF01 + n: 0x21 + n for n in range(94)}
"""The letters, digits and signs of ASCII as East Asian keyboards write them."""
_INVISIBLE = dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u2060\ufeff\ufe0f\u20e3"))
"""Characters that show nothing, and the frame of digits that are drawn as keys."""
_OTHER_DIGIT = re.compile(r"[^\D0-9]")


def typed_addresses(text: str) -> list[str]:
    """Return the first addresses in a text, each once: of mail, telephones, accounts and their pages, also written in
    words (`masha собака mail точка ru`) or in other digits. What only a person understands is not found.
    """
    plain = _OTHER_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), text.translate(_WIDE | _INVISIBLE))
    return list(dict.fromkeys(found[0].strip() for found in _ADDRESS.finditer(plain)))[:_MOST]


class HeldReplies:
    """One per process. Methods raise StoreError."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def hold(self, tenant: str, way: ReplyRoute, name: str, event: Event) -> None:
        """Keep an event that its author may send under this name, and what it has written before, for two days."""
        key = self._key(tenant, way)
        await self._store.write_lasting(in_ms(_KEPT), "HSET", key, name, encode(event))

    async def hold_reply(self, reply: Incoming, why: str) -> None:
        """Keep a reply with what it quotes. `why`: its author is asked."""
        source = {"reply_message_id": reply.source.reference} if reply.source else {}
        await self.hold(reply.tenant, reply.way, f"{why}.{reply.written.event}", {**reply.event, **source})

    async def find(self, tenant: str, way: ReplyRoute, name: str) -> Event | None:
        """Return what this account has written under the name; None if it is no longer kept."""
        stored = await self._store.command("HGET", self._key(tenant, way), name)
        return decode(stored) if stored else None

    async def forget(self, tenant: str, way: ReplyRoute) -> None:
        """Delete all that this account has written and not confirmed."""
        await self._store.command("DEL", self._key(tenant, way))

    def _key(self, tenant: str, way: ReplyRoute) -> str:
        return KEYS["held_reply"].at(self._store.shard_of_person(tenant, *way), tenant, *way)
