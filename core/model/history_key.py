"""The name of a delivery and of its history."""

import re
import time
from urllib.parse import quote, unquote
from zlib import crc32

from msgspec import Struct

from core.errors import Invalid

Id = int | str
"""The id of a sender or recipient, as the caller gave it."""

_KEY = re.compile(r"history:\{(\d{1,5})\}:(.+):(\d{19})", re.DOTALL)
_PUBLIC = re.compile(r"(\d{1,5})\.(.+)\.(\d{19})", re.DOTALL)


class HistoryKey(Struct, frozen=True, gc=False):
    """Names a delivery: `history:{shard}:<sender>:<unix ns>` in Redis, `<shard>.<sender>.<unix ns>` in URLs."""

    shard: int
    sender: str
    ns: int

    def __str__(self) -> str:
        return f"history:{{{self.shard}}}:{self.sender}:{self.ns}"

    @property
    def suffix(self) -> str:
        """What the `history:` and the `delivery:` key have in common, without the shard."""
        return f"{self.sender}:{self.ns}"

    @property
    def id(self) -> str:
        """URL-safe and opaque for callers."""
        return f"{self.shard}.{_escaped(self.sender)}.{self.ns}"

    @classmethod
    def of(cls, shard: int, suffix: str) -> "HistoryKey":
        """The key that has this `suffix`: `<sender>:<unix ns>`, where the sender may hold colons of his own. It is
        taken as the scripts tell it and not checked; what came from outside goes through `parse`.
        """
        sender, _, ns = suffix.rpartition(":")
        return cls(shard, sender, int(ns))

    @classmethod
    def parse(cls, text: str) -> "HistoryKey":
        """Read either form. Raises `Invalid` HISTORY_KEY_MALFORMED."""
        if found := _KEY.fullmatch(text):
            return cls(int(found[1]), found[2], int(found[3]))
        if found := _PUBLIC.fullmatch(text):
            return cls(int(found[1]), unquote(found[2].replace("~", "%")), int(found[3]))
        raise Invalid(
            "HISTORY_KEY_MALFORMED", "A history key looks like history:{0}:42:1763712000000000000.", "history_key"
        )

    @classmethod
    def new(cls, sender: Id, shards: int, spread: str = "") -> "HistoryKey":
        """A key for a delivery of `sender` from now. The shard follows `spread` (an Idempotency-Key) where one is
        given.
        """
        ns = _NANOSECONDS.fresh()
        shard = crc32(spread.encode()) % shards if spread else ns // 1000 % shards
        return cls(shard, str(sender), ns)


def _escaped(sender: str) -> str:
    """In URLs, and again quoted by whoever builds one: `~` stands for `%`, which a second quoting would change."""
    if sender.isascii() and sender.isalnum():
        return sender
    return quote(sender, safe="").replace("~", "%7E").replace("%", "~")


class _Nanoseconds:
    """Unix nanoseconds, strictly growing in this process; `lua/delivery/enqueue.lua` refuses the rare clash between
    two.
    """

    last = 0

    def fresh(self) -> int:
        self.last = max(time.time_ns(), self.last + 1)
        return self.last


_NANOSECONDS = _Nanoseconds()
