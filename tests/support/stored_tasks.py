"""Reads and changes tasks as they are stored (lua/shared/modules/record.lua), for tests that look below the scripts or
damage what is there.
"""

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

_FIRST = ("tube", "lane", "order")
_FLAGS = ("tried", "aside")
_NUMBERS = ("priority", "due", "expires", "max", "place", "attempts", "ended")


def read_record(text: str) -> dict[str, str]:
    """Return the facts of a record, the usual ones included; {} if it is none."""
    line, _, body = text.partition("\n")
    words = line.split("\t")
    if len(words) != 4:
        return {}
    tube, lane, order, rest = words
    facts = {"tube": unquote(tube), "order": order, "tenant": "default", "priority": "5", "state": "ready"}
    facts |= {"lane": unquote(lane)} if lane else {}
    facts |= {"body": body} if body else {}
    others = json.loads(rest or "{}").items()
    return facts | {name: str(value) for name, value in others if name not in _FLAGS}


def write_record(facts: Mapping[str, str]) -> str:
    """Return the record of these facts, in a form that the functions read."""
    rest: dict[str, Any] = {name: value for name, value in facts.items() if name not in (*_FIRST, "body")}
    rest |= {name: int(rest[name]) for name in _NUMBERS if name in rest}
    words = [re.sub(r"[\x00-\x1f%]", lambda one: f"%{ord(one[0]):02x}", facts.get(name, "")) for name in _FIRST]
    return "\t".join([*words, json.dumps(rest | {"tried": True})]) + "\n" + facts.get("body", "")


def with_lease(facts: dict[str, str], lease: str | None) -> dict[str, str]:
    """Return the facts of a task, with its lease if it is taken."""
    if lease is None:
        return facts
    token, started, owner = lease.split(" ", 2)
    attempts = str(int(facts.get("attempts", 0)) + 1)
    return facts | {"state": "taken", "token": token, "started": started, "owner": owner, "attempts": attempts}


async def stored_facts(redis: Any, task_id: str, shard: int = 0) -> dict[str, str]:
    """Return all that is stored of a task; {} if there is none."""
    text = await redis.get(f"queue:{{{shard}}}:task:{task_id}")
    if text is None:
        return {}
    progress: dict[str, str] = await redis.hgetall(f"queue:{{{shard}}}:progress:{task_id}")
    return with_lease({**progress, **read_record(text)}, await redis.hget(f"queue:{{{shard}}}:taken", task_id))


async def change_record(redis: Any, task_id: str, name: str, value: str) -> None:
    """Write one fact into a record past the scripts."""
    key = f"queue:{{0}}:task:{task_id}"
    await redis.set(key, write_record(read_record(await redis.get(key)) | {name: value}), keepttl=True)
