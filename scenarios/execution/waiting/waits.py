"""What the steps of a parked run wait for, and its text in the run: `slow`, `answer <history key>` for a message to the
event's person, `send <history key>` for any other.

Pure. A `Waiting` is a delivery; None is a slow action, which has a task of its own.
"""

from collections.abc import Mapping

from core.model.history_key import HistoryKey
from scenarios.context import Waiting
from scenarios.engine import Path

SLOW = "slow"

Waits = Mapping[Path, Waiting | None]

_ANSWER, _SEND = "answer", "send"


def encode(waiting: Waiting | None) -> str:
    if waiting is None:
        return SLOW
    return f"{_ANSWER if waiting.one else _SEND} {waiting.delivery}"


def decode(text: str) -> Waiting | None:
    if text == SLOW:
        return None
    kind, _, delivery = text.partition(" ")
    return Waiting(HistoryKey.parse(delivery), one=kind == _ANSWER)
