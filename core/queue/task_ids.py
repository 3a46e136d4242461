"""Task ids: how they are made and read. Pure.

Inside a shard an id is `<unix ns, 12 digits to base 36>.<client>`; outside it carries its shard: `<shard>.<id>`.
"""

import secrets
import time
from dataclasses import dataclass, field

from core.errors import NotFound

_DIGITS = 12  # to base 36: enough for the ns of 150 years
_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"
_PAIRS = [first + second for first in _ALPHABET for second in _ALPHABET]


@dataclass
class TaskIds:
    """Makes the ids of one process. They are short, because each stands in several indexes.

    Guarantee (K-23): the ids of one process sort strictly by time, and no two processes make the same id: a process
    uses each ns once, and each has its own random `client` name.
    """

    client: str = field(default_factory=lambda: secrets.token_hex(4))
    last_ns: int = 0

    def next(self, offset_ms: int = 0) -> str:
        """Return a new id, without a shard. `offset_ms`: of the store's clock."""
        self.last_ns = max(self.last_ns + 1, time.time_ns() + offset_ms * 1_000_000)
        return f"{_base36(self.last_ns)}.{self.client}"


def split_id(task_id: str) -> tuple[int, str]:
    """Return (shard, id inside it). Raises TypeError; NotFound TASK_NOT_FOUND."""
    if not isinstance(task_id, str):
        raise TypeError(f"The id of a task is the text that put has returned, and not {type(task_id).__name__}.")
    shard, dot, name = task_id.partition(".")
    if not dot or not shard.isdecimal() or len(shard) > 5 or not name:
        raise NotFound("TASK_NOT_FOUND", "There is no such task.")
    return int(shard), name


def put_ms(name: str) -> float | None:
    """Return the unix ms at which a task was put, from its id without shard; for a parcel, when its delivery was
    accepted. None: the id holds no time.
    """
    moment = name.partition(".")[0]
    if len(moment) == _DIGITS and moment.isalnum():
        return int(moment, 36) / 1e6
    return int(moment) / 1e6 if moment.isdecimal() else None


def _base36(number: int) -> str:
    pairs = []
    for _ in range(_DIGITS // 2):
        number, pair = divmod(number, 36 * 36)
        pairs.append(_PAIRS[pair])
    return "".join(reversed(pairs))
