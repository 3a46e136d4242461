"""What one request to VK carries: up to 25 calls of messages.send, each for up to 100 peers, as one `execute`.

The code is VKScript, not JavaScript: one `return [API.messages.send({…}),…];` whose arguments are JSON literals in
ASCII, so no text can end its literal (U+2028 would, were it not escaped).
Source: dev.vk.com/method/execute, dev.vk.com/method/messages.send.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from core.courier import Message

MOST_CALLS = 25
MOST_PEERS = 100
LARGEST_CODE = 512 * 1024  # a megabyte is what most servers take, and each backslash travels as three letters

_PEER = re.compile(r"-?[1-9][0-9]{0,17}")


@dataclass(frozen=True, slots=True)
class Key:
    """What tells one message from another: VK takes a second one with the same key for the same message."""

    text: str
    random_id: int
    peer: int


@dataclass(frozen=True, slots=True)
class Call:
    """One messages.send. Its peers are different from each other."""

    text: str
    random_id: int
    peers: tuple[int, ...]

    def messages(self) -> list[Key]:
        return [Key(self.text, self.random_id, peer) for peer in self.peers]

    def literal(self) -> str:
        wanted = {"peer_ids": list(self.peers), "message": self.text, "random_id": self.random_id}
        return f"API.messages.send({json.dumps(wanted, ensure_ascii=True, separators=(',', ':'))})"


def key_of(message: Message) -> Key | None:
    """None where the address is no peer id of VK.

    The random id is the delivery's, not the recipient's: in one call the peers share it, and VK remembers it per
    dialog. So whatever company a peer is sent to in, before or after a bisection, his message has the same id.
    """
    if not _PEER.fullmatch(message.address):
        return None
    return Key(message.text, message.shared_id(bits=31), int(message.address))


def calls_of(keys: Sequence[Key]) -> list[Call]:
    """The calls for these messages, in their order; a message that is there twice is sent once."""
    groups: dict[tuple[str, int], dict[int, None]] = {}
    for key in keys:
        groups.setdefault((key.text, key.random_id), {})[key.peer] = None
    return [Call(*group, page) for group, peers in groups.items() for page in _pages(tuple(peers))]


def _pages(peers: tuple[int, ...]) -> list[tuple[int, ...]]:
    return [peers[start : start + MOST_PEERS] for start in range(0, len(peers), MOST_PEERS)]


def code_of(calls: Sequence[Call]) -> str:
    return f"return [{','.join(call.literal() for call in calls)}];"
