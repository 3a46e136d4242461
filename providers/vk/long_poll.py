"""Bots Long Poll: waits for the next events of a community.

The community must have long poll and the events that are wanted switched on: `message_new`, for bots with scenarios
`message_event`, for read marks `message_read`. VK keeps events for a while under a number `ts`.
Source: dev.vk.com, "Bots Long Poll API".
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from providers.vk.client import Client
from providers.vk.errors import VkUnavailable

WAIT = 10
"""Seconds that VK holds a request without events."""


class Server(Struct, frozen=True):
    """Where to poll. `ts`: the number of the next event."""

    url: str
    key: str
    ts: str


class Events(Struct, frozen=True):
    """The answer to one poll. `ts`: the number of the next event, "" if VK has lost it. `needs_server`: the key is no
    longer valid.
    """

    events: Sequence[Mapping[str, Any]] = ()
    ts: str = ""
    needs_server: bool = False


async def find_server(client: Client, community: int) -> Server:
    """Return where to poll, from the newest event on. Raises VkUnavailable, TokenRefused."""
    found = await client.call("groups.getLongPollServer", group_id=community)
    if not isinstance(found, dict) or not {"server", "key", "ts"} <= found.keys():
        raise VkUnavailable("the answer has no server; is long poll switched on in the community?")
    return Server(str(found["server"]), str(found["key"]), str(found["ts"]))


async def poll(client: Client, server: Server) -> Events:
    """Wait for the next events. Raises VkUnavailable."""
    answer = await client.get(server.url, {"act": "a_check", "key": server.key, "ts": server.ts, "wait": str(WAIT)})
    if not isinstance(answer, dict):
        raise VkUnavailable("the answer is no object")
    match answer.get("failed"):
        case 1:  # events too old are gone
            return Events((), str(answer.get("ts", server.ts)))
        case 2:  # the key is no longer valid
            return Events((), server.ts, needs_server=True)
        case failed if failed is not None:  # 3: the key and the position are lost
            return Events((), "", needs_server=True)
    events = answer.get("updates")
    known = [one for one in events if isinstance(one, dict)] if isinstance(events, list) else []
    return Events(known, str(answer.get("ts", server.ts)))
