"""The setting `notify-keyspace-events` of the server: without our flags no sleeping worker is woken.

A server that restarts without `CONFIG REWRITE` loses them. Therefore they are checked, and set if they are missing, at
every connect of `core.redis.events.keyspace_events`, by `connect`, by `/readyz` and by `doctor`. Other flags are kept.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from redis.exceptions import ResponseError

from core.errors import FunctionFault

log = logging.getLogger(__name__)

SETTING = "notify-keyspace-events"

# K: keyspace channels; g: del, expire, …; x: expired.
_OURS = "Kgx"

Command = Callable[..., Awaitable[Any]]
"""Sends a command. Raises ResponseError or FunctionFault if the server refuses it."""


@dataclass(frozen=True, slots=True)
class Notifications:
    """`found`: the flags before; None if the server does not show them. `missing`: ours that it does not have now.
    `refusal`: why they could not be read or set.
    """

    found: str | None
    missing: str = ""
    refusal: str = ""

    @property
    def changed(self) -> str:
        """Return what was changed, in a sentence; "" if nothing."""
        if self.found is None or self.missing or merged_flags(self.found) == self.found:
            return ""
        return f"{SETTING} was {self.found or 'empty'} and was set to {merged_flags(self.found)}"


def merged_flags(found: str) -> str:
    """Return the flags with ours added; none is removed. `A` means all classes, `g` and `x` included."""
    return found + missing_flags(found)


def missing_flags(found: str) -> str:
    return "".join(flag for flag in _OURS if flag not in found and not (flag in "gx" and "A" in found))


async def ensure_notifications(command: Command) -> Notifications:
    """Set the flags that are missing; log a change and a refusal."""
    try:
        found = flags_of(await command("CONFIG", "GET", SETTING))
    except (ResponseError, FunctionFault) as refusal:
        return Notifications(None, refusal=str(refusal))
    if found is None or not missing_flags(found):
        return Notifications(found)
    try:
        await command("CONFIG", "SET", SETTING, merged_flags(found))
    except (ResponseError, FunctionFault) as refusal:
        log.warning("%s lacks %s and cannot be set: %s", SETTING, missing_flags(found), refusal)
        return Notifications(found, missing_flags(found), str(refusal))
    state = Notifications(found)
    log.warning("%s; write it to the server's configuration: CONFIG REWRITE", state.changed)
    return state


def flags_of(answer: Any) -> str | None:
    """Return the flags in an answer to CONFIG GET: a map in RESP3, a flat list in RESP2."""
    pairs = answer if isinstance(answer, dict) else dict(zip(answer[::2], answer[1::2], strict=True))
    found = pairs.get(SETTING)
    return None if found is None else str(found)
