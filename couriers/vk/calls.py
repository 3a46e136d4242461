"""Builds one request to VK: up to 25 calls of messages.send, each for up to 100 peers, in one `execute`.

The code is VKScript: `return [API.messages.send({…}),…];`. The arguments are JSON literals in ASCII, so no text can
end its literal (an unescaped U+2028 would).
Source: dev.vk.com/method/execute, dev.vk.com/method/messages.send.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from couriers.sending import Message, malformed

MAX_CALLS = 25
MAX_PEERS = 100
MAX_CODE = 512 * 1024  # servers usually accept a megabyte, and each backslash is three characters in a form

Parameters = tuple[tuple[str, str], ...]
"""Names and values."""


@dataclass(frozen=True, slots=True)
class MessageKey:
    """Identifies one message: VK treats a second one with the same random id and peer as a repeat. `more`: further
    parameters of messages.send.
    """

    text: str
    random_id: int
    peer: int
    more: Parameters = ()


@dataclass(frozen=True, slots=True)
class VkCall:
    """One messages.send. Its peers are distinct."""

    text: str
    random_id: int
    peers: tuple[int, ...]
    more: Parameters = ()

    def messages(self) -> list[MessageKey]:
        return [MessageKey(self.text, self.random_id, peer, self.more) for peer in self.peers]

    def code(self) -> str:
        parameters = {
            "peer_ids": list(self.peers),
            "message": self.text,
            "random_id": self.random_id,
            **dict(self.more),
        }
        return f"API.messages.send({json.dumps(parameters, ensure_ascii=True, separators=(',', ':'))})"


def message_key(message: Message) -> MessageKey | None:
    """Return the key of a message, None if its address is not a peer id of VK.

    All recipients of a delivery have the same random id: the peers of a call share it, and VK remembers it per dialog.
    So a message keeps its random id however the recipients are grouped into calls.
    """
    if malformed("vk", message.address):
        return None
    return MessageKey(message.text, message.shared_id(bits=31), int(message.address))


def group_into_calls(keys: Sequence[MessageKey]) -> list[VkCall]:
    """Return the calls for these messages, in their order. A message that occurs twice is sent once."""
    groups: dict[tuple[str, int, Parameters], dict[int, None]] = {}
    for key in keys:
        groups.setdefault((key.text, key.random_id, key.more), {})[key.peer] = None
    return [
        VkCall(text, random_id, page, more)
        for (text, random_id, more), peers in groups.items()
        for page in _pages(tuple(peers))
    ]


def _pages(peers: tuple[int, ...]) -> list[tuple[int, ...]]:
    return [peers[start : start + MAX_PEERS] for start in range(0, len(peers), MAX_PEERS)]


def execute_code(calls: Sequence[VkCall]) -> str:
    return f"return [{','.join(call.code() for call in calls)}];"
