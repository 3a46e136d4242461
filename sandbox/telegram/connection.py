"""One client's connection: decodes packets, answers their messages, encodes the answers.

All answers to one packet are sent in one packet, as by Telegram. Bytes that do not follow the protocol close this
connection and affect no other.
"""

import asyncio
import logging
import struct
from collections.abc import Callable
from typing import Any, cast

from telethon.extensions import BinaryReader
from telethon.tl import functions, types
from telethon.tl.alltlobjects import tlobjects

from sandbox.telegram.methods.dispatch import reply_to
from sandbox.telegram.methods.replies import DelayedReply, Disconnect, NoReply, Refusal, Reply, encode
from sandbox.telegram.protocol import encryption, framing, messages
from sandbox.telegram.protocol.handshake import Handshake
from sandbox.telegram.protocol.key_store import AuthKey
from sandbox.telegram.protocol.malformed import UNREADABLE, MalformedError
from sandbox.telegram.state.hub import Hub, now

_log = logging.getLogger(__name__)

_UNKNOWN_KEY = struct.pack("<i", -404)  # the transport error for an unknown authorization key
_MAX_CONTAINER = 500

_TEN_YEARS = 10 * 365 * 86_400  # seconds


class Connection(asyncio.Protocol):
    """Implements `hub.Client`. A new session on the same connection replaces the previous one."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._handshake = Handshake(hub.key_store)
        self._message_ids = messages.MessageIds()
        self._first_bytes = b""
        self._framing: framing.Framing | None = None
        self._outgoing: list[bytes] = []
        self._session: int | None = None
        self._content_count = 0
        self._close_timer: asyncio.TimerHandle | None = None
        self.key = AuthKey(b"")
        self.wants_updates = False
        self.address = ("127.0.0.1", 0)

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        host, port, *_ = transport.get_extra_info("sockname")
        self.address = (host, port)
        self._hub.clients.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._hub.clients.discard(self)
        if self._close_timer:
            self._close_timer.cancel()

    def data_received(self, data: bytes) -> None:
        try:
            self._receive(data)
        except UNREADABLE as error:
            debug = _log.isEnabledFor(logging.DEBUG)
            _log.warning("closing a connection: %s: %s", type(error).__name__, error, exc_info=debug)
            self.close()

    # decoding

    def _receive(self, data: bytes) -> None:
        if self._framing is None:
            data = self._detect_framing(data)
        if self._framing is not None:
            for packet in self._framing.feed(data):
                self._receive_packet(packet)

    def _detect_framing(self, data: bytes) -> bytes:
        """Detect the framing; return the bytes after its announcement."""
        self._first_bytes += data
        if found := framing.detect(self._first_bytes):
            self._framing, length = found
            return self._first_bytes[length:]
        return b""

    def _receive_packet(self, packet: bytes) -> None:
        if self._transport.is_closing():
            return  # requests after the one that closed the connection are not received
        if len(packet) < encryption.MIN_PACKET:
            raise MalformedError(f"a packet of {len(packet)} bytes")
        if packet.startswith(encryption.PLAIN):
            self._receive_plain(packet)
        else:
            self._receive_encrypted(packet)

    def _receive_plain(self, packet: bytes) -> None:
        request = BinaryReader(encryption.read_plain(packet)).tgread_object()
        if isinstance(request, types.MsgsAck):
            return
        answer = self._handshake.answer(request)
        self._write(encryption.write_plain(self._message_ids.next(answer=True), bytes(answer)))

    def _receive_encrypted(self, packet: bytes) -> None:
        key = self._hub.key_store.keys.get(packet[:8])
        if key is None:
            self._write(_UNKNOWN_KEY)
            return
        decrypted = encryption.decrypt_packet(key.secret, packet)
        outer, inner = messages.read(decrypted.content)
        self._start_session(key, decrypted.session, inner)
        if decrypted.salt != key.salt:
            self._correct_salt(outer)
        else:
            self._handle_messages(inner)

    def _start_session(self, key: AuthKey, session: int, inner: list[messages.Message]) -> None:
        """Reset the state if the session is new, and announce it to the client, as the specification requires."""
        if (key.id, session) == (self.key.id if self.key.secret else None, self._session):
            return
        self._flush()
        self.key, self._session, self._content_count, self.wants_updates = key, session, 0, False
        first = min((message.id for message in inner), default=0)
        self._queue(bytes(types.NewSessionCreated(first, session, key.salt)), content=True)

    def _correct_salt(self, outer: messages.Message) -> None:
        self._queue(bytes(types.BadServerSalt(outer.id, outer.number, error_code=48, new_server_salt=self.key.salt)))

    def _handle_messages(self, inner: list[messages.Message]) -> None:
        for message in inner:
            if not self._transport.is_closing():
                self._handle_message(message)

    # handling

    def _handle_message(self, message: messages.Message) -> None:
        body = messages.unpack(message.body)
        reader = BinaryReader(body)
        if reader.read_int(signed=False) not in tlobjects:
            self._send_reply(message.id, Refusal(400, f"INPUT_METHOD_INVALID_{int.from_bytes(body[:4], 'little')}_0"))
            return
        reader.seek(-4)
        self._handle_request(message.id, reader.tgread_object())

    def _handle_request(self, message: int, request: Any) -> None:
        if isinstance(request, functions.DestroyAuthKeyRequest):
            self._destroy_key()
        elif handler := HANDLERS.get(type(request)):
            self._handle_service_message(handler(self.key, message, request), request)
        else:
            self._send_reply(message, reply_to(self._hub, self, request))

    def _handle_service_message(self, body: bytes | None, request: Any) -> None:
        if body is not None:
            self._queue(body)
        if isinstance(request, functions.PingDelayDisconnectRequest):
            self._close_after(request.disconnect_delay)

    def _destroy_key(self) -> None:
        self._hub.key_store.forget_key(self.key)
        self._queue(bytes(types.DestroyAuthKeyOk()))

    def _close_after(self, seconds: int) -> None:
        if self._close_timer:
            self._close_timer.cancel()
        self._close_timer = asyncio.get_running_loop().call_later(max(0, seconds), self.close)

    def _send_reply(self, message: int, reply: Reply) -> None:
        match reply:
            case Disconnect():
                self.close()
            case NoReply():
                self._queue(bytes(types.MsgsAck([message])))
            case DelayedReply():
                self._send_later(message, reply.seconds, reply.finish)
            case _:
                self._queue(messages.result(message, encode(reply)), content=True)

    def _send_later(self, message: int, seconds: float, finish: Callable[[], Reply]) -> None:
        self._queue(bytes(types.MsgsAck([message])))
        asyncio.get_running_loop().call_later(seconds, lambda: self._send_reply(message, finish()))

    def push(self, update: Any) -> None:
        """Send an update."""
        self._queue(bytes(update), content=True, answer=False)

    # encoding

    def _queue(self, body: bytes, *, content: bool = False, answer: bool = True) -> None:
        """Queue a message. All messages queued in one turn of the event loop are sent together."""
        if not self._outgoing:
            asyncio.get_running_loop().call_soon(self._flush)
        self._outgoing.append(
            messages.with_header(self._message_ids.next(answer=answer), self._sequence_number(content), body)
        )

    def _sequence_number(self, content: bool) -> int:
        number = self._content_count * 2 + content
        self._content_count += content
        return number

    def _flush(self) -> None:
        queued, self._outgoing = self._outgoing, []
        for start in range(0, len(queued), _MAX_CONTAINER):
            self._send_packet(queued[start : start + _MAX_CONTAINER])

    def _send_packet(self, queued: list[bytes]) -> None:
        content = queued[0] if len(queued) == 1 else self._container(queued)
        if self._session is not None:
            self._write(encryption.encrypt_packet(self.key.secret, self.key.id, self.key.salt, self._session, content))

    def _container(self, queued: list[bytes]) -> bytes:
        return messages.with_header(
            self._message_ids.next(answer=True), self._sequence_number(False), messages.container(queued)
        )

    def _write(self, packet: bytes) -> None:
        if self._framing is None:
            raise MalformedError("an answer before a request")
        if not self._transport.is_closing():
            self._transport.write(self._framing.wrap(packet))

    def close(self) -> None:
        """Send what is queued, then close."""
        self._flush()
        self._transport.close()

    def abort(self) -> None:
        """Close at once; data not yet sent is lost."""
        self._transport.abort()


def _ping(key: AuthKey, message: int, request: Any) -> bytes:
    return bytes(types.Pong(message, request.ping_id))


def _salts(key: AuthKey, message: int, request: Any) -> bytes:
    salt = types.FutureSalt(now(), min(now() + _TEN_YEARS, 2**31 - 1), key.salt)
    return bytes(types.FutureSalts(message, now(), [salt]))


def _states(key: AuthKey, message: int, request: Any) -> bytes:
    # 4: received. The field is bytes; a string of characters below 128 is encoded the same.
    return bytes(types.MsgsStateInfo(message, chr(4) * len(request.msg_ids)))


def _destroyed_session(key: AuthKey, message: int, request: Any) -> bytes:
    return bytes(types.DestroySessionNone(request.session_id))


def _dropped(key: AuthKey, message: int, request: Any) -> bytes:
    return messages.result(message, bytes(types.RpcAnswerUnknown()))


def _nothing(key: AuthKey, message: int, request: Any) -> None:
    """Do nothing: acknowledgements and notices have no answer."""


HANDLERS: dict[type, Callable[[AuthKey, int, Any], bytes | None]] = {
    functions.DestroySessionRequest: _destroyed_session,
    functions.GetFutureSaltsRequest: _salts,
    functions.PingDelayDisconnectRequest: _ping,
    functions.PingRequest: _ping,
    functions.RpcDropAnswerRequest: _dropped,
    types.HttpWait: _nothing,
    types.MsgResendReq: _nothing,
    types.MsgsAck: _nothing,
    types.MsgsAllInfo: _nothing,
    types.MsgsStateInfo: _nothing,
    types.MsgsStateReq: _states,
}
