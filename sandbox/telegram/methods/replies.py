"""The replies of a method, besides a TL object, a bool or a list of TL objects (a vector)."""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from telethon.tl import types


@dataclass(frozen=True, slots=True)
class Refusal:
    """An RPC error, with Telegram's code and text."""

    code: int
    text: str


@dataclass(frozen=True, slots=True)
class NoReply:
    """The request is acknowledged and never answered."""


@dataclass(frozen=True, slots=True)
class Disconnect:
    """The connection is closed instead of an answer."""


@dataclass(frozen=True, slots=True)
class DelayedReply:
    """`finish` returns the reply and is called after `seconds`, even if the client has disconnected."""

    seconds: float
    finish: Callable[[], Any]


Reply = Any  # TLObject | bool | list[TLObject] | Refusal | NoReply | Disconnect | DelayedReply; Telethon has no types

_VECTOR, _TRUE, _FALSE = (struct.pack("<I", code) for code in (0x1CB5C415, 0x997275B5, 0xBC799737))


def encode(reply: Reply) -> bytes:
    """Return the body of rpc_result for a reply that is sent at once."""
    if isinstance(reply, Refusal):
        return bytes(types.RpcError(reply.code, reply.text))
    if isinstance(reply, bool):
        return _TRUE if reply else _FALSE
    if isinstance(reply, list):
        return _VECTOR + struct.pack("<i", len(reply)) + b"".join(map(bytes, reply))
    return bytes(reply)
