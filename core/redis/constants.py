"""Constants that Python and the Lua functions share. In Lua each is a local of the same name.

Tables become Lua tables: a mapping name → number, a set name → true, a sequence a list.
"""

from collections.abc import Mapping, Sequence, Set

from core.model.states import BEST, OPEN, RANK, REACHED, TASK_ENDS, Status

PRIORITY_STEP = 2**42
"""One step of priority in the score of a takeable task; it is more than every order of submission."""

EVENTS_KEPT = 20_000
"""Entries of an event stream; older ones are trimmed."""

DAY_MS = 86_400_000
REPLY_MS = 3_600_000
"""Time to live of the reply stream of a client after its last entry."""

COUNTED = tuple(str(status) for status in Status if status is not Status.QUEUED)
"""Statuses that a history counts by channel; `queued` is what is left."""

RELATIONS = 2000
"""The most groups of a person or supergroup, supergroups of a group, ownerships of a person, owners of a group. A
function that follows all of them takes the server a few milliseconds.
"""

TASK_FACTS = (
    *("state", "tube", "tenant", "lane", "priority", "order", "due", "expires"),
    *("attempts", "allowed", "token", "started"),
    *("cancel", "skip", "history", "place", "kind", "user", "tags", "ended"),
)
"""Fields of a task that the audit reads, in the order of its rows."""

HISTORY_FACTS = (
    *("tenant", "state", "version", "created", "due", "released", "finished", "plan", "recipients"),
    *("reached", "reported"),
)
"""Fields of a history that the audit reads, in the order of its rows."""

AWAITING_MS = 9_999_999_999_999
"""In a checkpoint: the entry waits for an earlier channel (lua/delivery/modules/next_channel.lua)."""

ASKS_AGAIN = -1
"""The place of a parcel that is sent only to those whose question is open (lua/answers/modules/reminders.lua)."""

Constant = int | Mapping[Status, int] | Set[str] | Sequence[str]

CONSTANTS: Mapping[str, Constant] = {
    "ASKS_AGAIN": ASKS_AGAIN,
    "BEST": BEST,
    "COUNTED": COUNTED,
    "DAY_MS": DAY_MS,
    "EVENTS_KEPT": EVENTS_KEPT,
    "AWAITING_MS": AWAITING_MS,
    "HISTORY_FACTS": HISTORY_FACTS,
    "OPEN": OPEN,
    "PRIORITY_STEP": PRIORITY_STEP,
    "RANK": RANK,
    "REACHED": REACHED,
    "RELATIONS": RELATIONS,
    "REPLY_MS": REPLY_MS,
    "TASK_ENDS": TASK_ENDS,
    "TASK_FACTS": TASK_FACTS,
}


def lua_constant(name: str) -> str:
    return f"local {name} = {_literal(CONSTANTS[name])}"


def _literal(value: Constant) -> str:
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Mapping):
        items = [f"{key} = {number}" for key, number in value.items()]
    elif isinstance(value, Set):
        items = [f"{key} = true" for key in sorted(value)]
    else:
        items = [f"'{item}'" for item in value]
    return f"{{ {', '.join(items)} }}"
