"""Parts of messages.sendMessage: checks, random ids, the inbox, the answer. `faults.send_message` combines them.

A random id is remembered per account and address for the lifetime of the process: a repeat gets the first answer and
is not received twice.
"""

from dataclasses import dataclass
from typing import Any

from telethon.tl import types

from sandbox.state import Fault
from sandbox.telegram.methods import peers
from sandbox.telegram.methods.editing import check_content, reply_to_of
from sandbox.telegram.methods.replies import Refusal, Reply
from sandbox.telegram.state.accounts import Account, SentMessage
from sandbox.telegram.state.dialogs import DialogMessage, StoredFile
from sandbox.telegram.state.hub import Call, now

MAX_LENGTH = 4096  # UTF-16 code units (core.telegram.org/api/config, message_length_max)
STILL_PROCESSED = Refusal(500, "RANDOM_ID_DUPLICATE")
MAX_CAPTION = 1024
_CHANNEL = "-100"


@dataclass(frozen=True, slots=True)
class SendRequest:
    """One message to one address."""

    call: Call
    account: Account
    address: str
    file: StoredFile | None = None

    @property
    def key(self) -> tuple[str, int]:
        return self.address, self.call.request.random_id

    @property
    def is_known(self) -> bool:
        """Return whether its random id was seen before."""
        return self.key in self.account.sent_messages

    def fault(self, names: frozenset[str]) -> Fault | None:
        return self.call.hub.state.fault("telegram", self.address, self.call.method, names)

    def throttle(self, key: str, seconds: int) -> None:
        self.account.throttled_until[key] = self.call.hub.clock() + seconds

    def is_within_rate(self, messages_per_second: int) -> bool:
        return self.account.rate_limit.accepts(messages_per_second, self.call.hub.clock())

    def throttle_seconds(self, key: str) -> int:
        return self.account.throttle_seconds(key, self.call.hub.clock())


def prepare(call: Call, file: StoredFile | None = None) -> SendRequest | Refusal:
    """Return the request, or the refusal of its address, text or random id, or because of a throttle."""
    address = peers.address_of(call.account, call.request.peer)
    if isinstance(address, Refusal):
        return address
    sending = SendRequest(call, call.account, address, file)
    return _check_text(sending) or check_content(call, address) or _check_throttles(sending) or sending


def _check_text(sending: SendRequest) -> Refusal | None:
    request, length = sending.call.request, len(sending.call.request.message.encode("utf-16-le")) // 2
    if sending.file is not None and length > MAX_CAPTION:
        return Refusal(400, "MEDIA_CAPTION_TOO_LONG")
    if sending.file is None and not request.message.strip():
        return Refusal(400, "MESSAGE_EMPTY")
    if length > MAX_LENGTH:
        return Refusal(400, "MESSAGE_TOO_LONG")
    return None if request.random_id else Refusal(400, "RANDOM_ID_EMPTY")


def _check_throttles(sending: SendRequest) -> Refusal | None:
    if seconds := sending.throttle_seconds(sending.call.method):
        return Refusal(420, f"FLOOD_WAIT_{seconds}")
    if seconds := sending.throttle_seconds(chat_key(sending)):
        return Refusal(420, f"SLOWMODE_WAIT_{seconds}")
    return None


def chat_key(sending: SendRequest) -> str:
    """Return the key of a throttle that applies to this chat only."""
    return f"to {sending.address}"


def repeated_reply(sending: SendRequest) -> Reply | None:
    """Return the answer to a random id seen before, None for a new one."""
    sent = sending.account.sent_messages.get(sending.key)
    if sent is None:
        return None
    if sent.message and not sent.duplicates:
        return _answer(sending, sent)
    sent.duplicates = max(0, sent.duplicates - 1)
    return STILL_PROCESSED


def remember_random_id(sending: SendRequest) -> SentMessage:
    """Remember the random id. Until `store`, a repeat is refused because the first call is still being processed."""
    return sending.account.sent_messages.setdefault(sending.key, SentMessage(0, now()))


def store(sending: SendRequest) -> Reply:
    """Put the message into the inbox and return the normal answer."""
    return _answer(sending, _receive(sending))


def sent_message(sending: SendRequest) -> SentMessage:
    """Return the message of a random id that was seen before; put a new one into the inbox."""
    return sending.account.sent_messages.get(sending.key) or _receive(sending)


def _receive(sending: SendRequest) -> SentMessage:
    sent = remember_random_id(sending)
    sent.message = _next_message_id(sending)
    sending.account.newest_message_to[sending.address] = sent.message
    state, request = sending.call.hub.state, sending.call.request
    markup, reply_to = request.reply_markup, reply_to_of(request)
    shown = DialogMessage(
        sent.message, request.message, True, request.entities or [], markup, reply_to, file=sending.file
    )
    file = f"[{sending.file.kind}] {sending.file.name}" if sending.file else ""
    sending.account.dialogs.store(sending.address, shown)
    state.receive(
        "telegram", sending.address, request.message or file, reference=str(sent.message), random_id=request.random_id
    )
    return sent


def _next_message_id(sending: SendRequest) -> int:
    if sending.address.startswith(_CHANNEL):
        return sending.call.hub.next_channel_message_id(int(sending.address.removeprefix(_CHANNEL)))
    return sending.account.next_message_id()


def _answer(sending: SendRequest, sent: SentMessage) -> Any:
    if not sending.address.startswith("-") and sending.file is None:
        return types.UpdateShortSentMessage(sent.message, pts=sent.message, pts_count=1, date=sent.at, out=True)
    return _answer_in_chat(sending, sent)


def _answer_in_chat(sending: SendRequest, sent: SentMessage) -> Any:
    """Return the answer for groups, channels and files: the whole message, with its random id."""
    request, channel = sending.call.request, sending.address.startswith(_CHANNEL)
    message = types.Message(
        sent.message,
        peer_id=_peer(sending.address),
        from_id=types.PeerUser(sending.account.id),
        date=sent.at,
        message=request.message,
        out=True,
    )
    new_message = (types.UpdateNewChannelMessage if channel else types.UpdateNewMessage)(message, sent.message, 1)
    id_update = types.UpdateMessageID(sent.message, random_id=request.random_id)
    return types.Updates([id_update, new_message], users=[], chats=[], date=sent.at, seq=0)


def _peer(address: str) -> Any:
    if address.startswith(_CHANNEL):
        return types.PeerChannel(int(address.removeprefix(_CHANNEL)))
    return types.PeerChat(-int(address)) if address.startswith("-") else types.PeerUser(int(address))
