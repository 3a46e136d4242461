"""The name of a delivery and of its history; the names of tenants, and names that no other tenant has. Pure."""

import re
import time
from base64 import urlsafe_b64encode
from hashlib import blake2b
from urllib.parse import quote, unquote

from msgspec import Struct

from core.errors import Invalid

Id = int | str
"""The id of a sender or recipient, as the caller gives it."""

_KEY = re.compile(r"history:\{(\d{1,5})\}:(.+):(\d{19})", re.DOTALL)
_PUBLIC = re.compile(r"(\d{1,5})\.(.+)\.(\d{19})", re.DOTALL)


def person_key(id_: Id) -> str:
    """Return an id as histories name it: of a number 42 and a text "42" different ones."""
    return f"{'i' if isinstance(id_, int) else 's'}{id_}"


def typed_id(key: str) -> Id:
    """Return the id of a `person_key`."""
    return int(key[1:]) if key[0] == "i" else key[1:]


class HistoryKey(Struct, frozen=True, gc=False):
    """Names a delivery: `history:{shard}:<sender>:<unix ns>` in Redis, `<shard>.<sender>.<unix ns>` in URLs."""

    shard: int
    sender: str
    ns: int

    def __str__(self) -> str:
        return f"history:{{{self.shard}}}:{self.sender}:{self.ns}"

    @property
    def suffix(self) -> str:
        """`<sender>:<unix ns>`: the part that the `history:` key and the order key have in common."""
        return f"{self.sender}:{self.ns}"

    @property
    def id(self) -> str:
        """URL-safe and opaque for callers."""
        return f"{self.shard}.{_escaped(self.sender)}.{self.ns}"

    @classmethod
    def of(cls, shard: int, suffix: str) -> "HistoryKey":
        """Return the key with this suffix, `<sender>:<unix ns>`; the sender may contain colons. For suffixes from
        functions, unchecked: use `parse` for keys from outside.
        """
        sender, _, ns = suffix.rpartition(":")
        return cls(shard, sender, int(ns))

    @classmethod
    def parse(cls, text: str) -> "HistoryKey":
        """Parse either form. Raises Invalid HISTORY_KEY_MALFORMED."""
        if found := _KEY.fullmatch(text):
            return cls(int(found[1]), found[2], int(found[3]))
        if found := _PUBLIC.fullmatch(text):
            return cls(int(found[1]), unquote(found[2].replace("~", "%")), int(found[3]))
        detail = (
            "The id of a delivery looks like 0.42.1763712000000000000, as the answer to sending has it, and its history"
            " key like history:{0}:42:1763712000000000000."
        )
        raise Invalid("HISTORY_KEY_MALFORMED", detail, "history_key")

    @classmethod
    def new(cls, sender: Id, shards: int, shard: int | None = None) -> "HistoryKey":
        """Return a new key for a delivery of `sender`, in this shard or in any."""
        ns = _NANOSECONDS.next()
        return cls(ns // 1000 % shards if shard is None else shard, str(sender), ns)


def code_of(key: HistoryKey) -> str:
    """Return the code by which the buttons of a question name its delivery: a history key is too long for them."""
    return urlsafe_b64encode(blake2b(key.suffix.encode(), digest_size=8).digest()).decode().rstrip("=")


def _escaped(sender: str) -> str:
    """Return the id percent-encoded with `~` instead of `%`, so that it stays the same if a caller quotes it again."""
    if sender.isascii() and sender.isalnum():
        return sender
    return quote(sender, safe="").replace("~", "%7E").replace("%", "~")


class _Nanoseconds:
    """Unix nanoseconds, strictly increasing in this process. `lua/delivery/functions/enqueue.lua` refuses the rare
    clash with another process.
    """

    last = 0

    def next(self) -> int:
        self.last = max(time.time_ns(), self.last + 1)
        return self.last


_NANOSECONDS = _Nanoseconds()


DEFAULT_TENANT = "default"


def own_name(tenant: str, name: str) -> str:
    """Return a name that no other tenant has: all tenants of a tube share its lanes and its unique names. The default
    tenant's names are as they are.
    """
    return name if tenant == DEFAULT_TENANT else f"{tenant}/{name}"
