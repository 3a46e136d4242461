"""Data of layout 2 from layout_2.json, which `make_layout_2.py` wrote."""

import json
import time
from functools import cache
from pathlib import Path
from typing import Any

from redis import Redis

from tests.support.stack import Stack


@cache
def layout_2() -> dict[str, Any]:
    """`now`, `data` and `views`, as `make_layout_2.py` describes them."""
    found: dict[str, Any] = json.loads(Path(__file__).with_name("layout_2.json").read_text())
    return found


def load(url: str) -> None:
    """Write the data to an empty server. A key has the time to live that it had."""
    with Redis.from_url(url) as client, client.pipeline(transaction=False) as calls:
        for name, (kind, ttl_ms, content) in layout_2()["data"].items():
            for command in commands(kind, name, content):
                calls.execute_command(*(word.encode("latin-1") for word in command))
            if ttl_ms > 0:
                calls.pexpire(name, ttl_ms)
        calls.execute()


def commands(kind: str, name: str, content: Any) -> list[list[str]]:
    if kind == "string":
        return [["SET", name, content]]
    if kind == "stream":
        return [["XADD", name, entry, *fields] for entry, fields in content]
    if kind == "zset":
        members, scores = content[::2], content[1::2]
        return [["ZADD", name, *(word for pair in zip(scores, members, strict=True) for word in pair)]]
    return [[{"hash": "HSET", "set": "SADD"}[kind], name, *content]]


async def old_stack(stack: Stack) -> Stack:
    """The stack at the moment at which the data were made."""
    stack.store.clock_offset_ms = layout_2()["now"] - int(time.time() * 1000)
    return stack


def body_ids(*bodies: str) -> list[str]:
    """The ids of the tasks with these bodies."""
    by_body = {view.get("body"): task_id for task_id, view in layout_2()["views"]["tasks"].items()}
    return [by_body[body] for body in bodies]
