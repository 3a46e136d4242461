"""Describes the waits of the steps of a parked run, as stored in the run: `slow`, `answer <history key>` for a message
to the event's person, `send,<others> <history key>` for any other, `ask:<until>:<remind>:<reminders>:<verdict>:<history
key>` for an answer. Before the key of a delivery that is under way stands a space: its end wakes the run (`park_run`).

Pure. A `Waiting` is a delivery; an `Asking` an answer; None is a slow action, which has a task of its own.
"""

from collections.abc import Mapping
from urllib.parse import quote, unquote

from core.model.history_key import HistoryKey
from scenarios.context import Asking, Waiting
from scenarios.engine import Path

SLOW = "slow"

WaitsFor = Waiting | Asking | None
Waits = Mapping[Path, WaitsFor]

_ANSWER, _SEND = "answer", "send"
_ASK = "ask:"


def encode(waiting: WaitsFor) -> str:
    if waiting is None:
        return SLOW
    if isinstance(waiting, Asking):
        numbers = f"{waiting.until}:{waiting.remind}:{waiting.reminders}"
        return f"{_ASK}{numbers}:{waiting.verdict}:{' ' if waiting.under_way else ''}{waiting.delivery or ''}"
    others = "".join(f",{quote(str(one), safe='')}" for one in waiting.others)
    return f"{_ANSWER if waiting.one else _SEND}{others} {waiting.delivery}"


def decode(text: str) -> WaitsFor:
    if text == SLOW:
        return None
    if text.startswith(_ASK):
        ends, again, reminders, verdict, delivery = text.removeprefix(_ASK).split(":", 4)
        key = HistoryKey.parse(delivery.removeprefix(" ")) if delivery else None
        return Asking(int(ends), int(again), int(reminders), key, verdict)
    words, _, delivery = text.partition(" ")
    kind, *others = words.split(",")
    keys = tuple(HistoryKey.parse(unquote(one)) for one in others)
    return Waiting(HistoryKey.parse(delivery), one=kind == _ANSWER, others=keys)
