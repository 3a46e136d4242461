"""The mark of a migration on both of its servers: no process of Ada starts where it stands (docs/decisions/0111).

Written by `core.backup.migration`, read by `core.redis.server_checks`.
"""

from enum import StrEnum

import msgspec
from msgspec import Struct


class Side(StrEnum):
    """The server that has the data before a migration, and the one that has them after it."""

    SOURCE = "source"
    TARGET = "target"


class MigrationMark(Struct, frozen=True):
    """`id`: the same on both servers. `other`: the other server, without its password. `is_done`: whether all data are
    at the target.
    """

    id: str
    side: Side
    other: str
    is_done: bool = False

    @classmethod
    def read(cls, text: str | bytes) -> "MigrationMark":
        return msgspec.json.decode(text, type=cls)

    @property
    def text(self) -> str:
        return msgspec.json.encode(self).decode()

    @property
    def sentence(self) -> str:
        """Return why no process may start here, and what to do."""
        if self.is_done:
            return f"the data of this server have moved to {self.other}. Set ADA_REDIS_URL to it."
        way = "to" if self.side is Side.SOURCE else "from"
        return f"`./ada migrate` has not moved all data {way} {self.other}. Run it again, with ADA_REDIS_URL as before."
