"""VK's long poll of a community, for read marks.

The community must have long poll and its event `message_read` switched on (dev.vk.com, "Bots Long Poll API"). VK keeps
events for a while under a number `ts`; a mark that is lost is covered by the dialog's next one.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import aiohttp
from vkbottle import API
from vkbottle.http import AiohttpClient

from core.courier import ReadMark

WAIT = 20  # seconds that VK holds a request without events
PAUSE = 5.0  # seconds after a failure
_LOST_KEY, _LOST_ALL = 2, 3  # `failed`: ask for a new key


async def read_marks(api: API, client: AiohttpClient, group: int) -> AsyncIterator[ReadMark]:
    """Emit the read marks of the community until cancelled."""
    server: dict[str, Any] | None = None
    while True:
        try:
            server = server or await _server(api, group)
            answer = await _poll(client, server) if server else None
        except (aiohttp.ClientError, OSError, ValueError):
            answer = None
        if server is None or not isinstance(answer, dict):
            await asyncio.sleep(PAUSE)
            continue
        server = None if answer.get("failed") in (_LOST_KEY, _LOST_ALL) else server | {"ts": answer.get("ts")}
        for mark in _marks_in(answer):
            yield mark


async def _server(api: API, group: int) -> dict[str, Any] | None:
    """Where to poll: `server`, `key`, `ts`; None if VK refuses."""
    body: Any = await api.request("groups.getLongPollServer", {"group_id": group})
    found = body.get("response") if isinstance(body, dict) else None
    return found if isinstance(found, dict) and {"server", "key", "ts"} <= found.keys() else None


async def _poll(client: AiohttpClient, server: dict[str, Any]) -> Any:
    parameters = {"act": "a_check", "key": server["key"], "ts": server["ts"], "wait": WAIT}
    return await client.request_json(server["server"], method="GET", params=parameters)


def _marks_in(answer: dict[str, Any]) -> Iterator[ReadMark]:
    for update in answer.get("updates") or ():
        read = update.get("object") if update.get("type") == "message_read" else None
        if isinstance(read, dict) and _is_private(read) and isinstance(read.get("read_message_id"), int):
            yield ReadMark(str(read["from_id"]), read["read_message_id"])


def _is_private(read: dict[str, Any]) -> bool:
    """In a chat the mark of one member says nothing about the private messages to it."""
    return isinstance(read.get("from_id"), int) and read.get("peer_id", read["from_id"]) == read["from_id"]
