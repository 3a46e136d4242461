"""messages.sendMessage: checks, random id memory, the message into the inbox, the answer.

A random id is remembered per account and address for as long as the process lives: a repeat gets the first answer and
is never received twice. Before: dispatch.py. After: faults.py for what is ordered to fail; the world's inbox.
"""

from dataclasses import dataclass
from typing import Any

from telethon.tl import types

from sandbox.state import Fault
from sandbox.telegram import peers
from sandbox.telegram.accounts import Account, Kept
from sandbox.telegram.hub import Call, now
from sandbox.telegram.replies import Refusal, Reply

LONGEST = 4096  # UTF-16 code units (core.telegram.org/api/config, message_length_max)
STILL_RUNNING = Refusal(500, "RANDOM_ID_DUPLICATE")
_CHANNEL = "-100"


@dataclass(frozen=True, slots=True)
class Sending:
    """One message on its way to one address."""

    call: Call
    account: Account
    address: str

    @property
    def key(self) -> tuple[str, int]:
        return self.address, self.call.request.random_id

    def fault(self, names: frozenset[str]) -> Fault | None:
        return self.call.platform.world.fault("telegram", self.address, self.call.method, names)

    def wait(self, what: str, seconds: int) -> None:
        self.account.waits[what] = self.call.platform.clock() + seconds

    def remaining(self, what: str) -> int:
        return self.account.remaining(what, self.call.platform.clock())


def prepared(call: Call) -> Sending | Refusal:
    """Return the sending, or why it cannot be one: its text, its random id, its address, a wait in force."""
    address = peers.address_of(call.account, call.request.peer)
    if isinstance(address, Refusal):
        return address
    sending = Sending(call, call.account, address)
    return _content(call.request) or _waiting(sending) or sending


def _content(request: Any) -> Refusal | None:
    if not request.message.strip():
        return Refusal(400, "MESSAGE_EMPTY")
    if len(request.message.encode("utf-16-le")) // 2 > LONGEST:
        return Refusal(400, "MESSAGE_TOO_LONG")
    return None if request.random_id else Refusal(400, "RANDOM_ID_EMPTY")


def _waiting(sending: Sending) -> Refusal | None:
    if seconds := sending.remaining(sending.call.method):
        return Refusal(420, f"FLOOD_WAIT_{seconds}")
    if seconds := sending.remaining(chat(sending)):
        return Refusal(420, f"SLOWMODE_WAIT_{seconds}")
    return None


def chat(sending: Sending) -> str:
    """Return the name of a wait that applies to this chat only."""
    return f"to {sending.address}"


def repeated(sending: Sending) -> Reply | None:
    """Return the answer to a random id seen before, None for a new one."""
    kept = sending.account.sent.get(sending.key)
    if kept is None:
        return None
    if kept.message and not kept.duplicates:
        return _answer(sending, kept)
    kept.duplicates = max(0, kept.duplicates - 1)
    return STILL_RUNNING


def begun(sending: Sending) -> Kept:
    """Remember the random id before its message is there: until `stored`, a repeat is told that it still runs."""
    return sending.account.sent.setdefault(sending.key, Kept(0, now()))


def stored(sending: Sending) -> Reply:
    """Put the message into the inbox and return the normal answer."""
    kept = begun(sending)
    kept.message = _number(sending)
    sending.account.newest_to[sending.address] = kept.message
    world, request = sending.call.platform.world, sending.call.request
    world.receive(
        "telegram", sending.address, request.message, reference=str(kept.message), random_id=request.random_id
    )
    return _answer(sending, kept)


def _number(sending: Sending) -> int:
    if sending.address.startswith(_CHANNEL):
        return sending.call.platform.next_in_channel(int(sending.address.removeprefix(_CHANNEL)))
    return sending.account.next_serial()


def _answer(sending: Sending, kept: Kept) -> Any:
    if not sending.address.startswith("-"):
        return types.UpdateShortSentMessage(kept.message, pts=kept.message, pts_count=1, date=kept.at, out=True)
    return _answer_in_chat(sending, kept)


def _answer_in_chat(sending: Sending, kept: Kept) -> Any:
    """Return what Telegram answers for groups and channels: the whole message, under its random id."""
    request, channel = sending.call.request, sending.address.startswith(_CHANNEL)
    message = types.Message(
        kept.message,
        peer_id=_peer(sending.address),
        from_id=types.PeerUser(sending.account.id),
        date=kept.at,
        message=request.message,
        out=True,
    )
    news = (types.UpdateNewChannelMessage if channel else types.UpdateNewMessage)(message, kept.message, 1)
    named = types.UpdateMessageID(kept.message, random_id=request.random_id)
    return types.Updates([named, news], users=[], chats=[], date=kept.at, seq=0)


def _peer(address: str) -> Any:
    if address.startswith(_CHANNEL):
        return types.PeerChannel(int(address.removeprefix(_CHANNEL)))
    return types.PeerChat(int(address.removeprefix("-")))
