"""One client's connection: bytes in, packets opened, messages answered, answers packed and sent.

Everything that one packet asks is answered in one packet, as Telegram does. A client whose bytes make no sense loses
its connection and nothing else. Before: framing.py and envelope.py. After: dispatch.py.
"""

import asyncio
import logging
import struct
from collections.abc import Callable
from typing import Any, cast

from telethon.extensions import BinaryReader
from telethon.tl import functions, types
from telethon.tl.alltlobjects import tlobjects

from sandbox.telegram import encryption as envelope
from sandbox.telegram import framing, messages
from sandbox.telegram import service_messages as service
from sandbox.telegram.dispatch import replied
from sandbox.telegram.handshake import Handshake
from sandbox.telegram.hub import Platform
from sandbox.telegram.key_store import AuthKey
from sandbox.telegram.malformed import UNREADABLE, MalformedError
from sandbox.telegram.replies import Cut, Late, Refusal, Reply, Silence, encode

_log = logging.getLogger(__name__)

_UNKNOWN_KEY = struct.pack("<i", -404)  # the transport error for an authorization key that nobody knows
_IN_ONE_CONTAINER = 500


class Connection(asyncio.Protocol):
    """A `platform.Client`. A new session of the same key on the same connection takes the place of the old one."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._handshake = Handshake(platform.vault)
        self._clock = messages.Clock()
        self._opening = b""
        self._framing: framing.Framing | None = None
        self._outgoing: list[bytes] = []
        self._session: int | None = None
        self._content_sent = 0
        self._hanging_up: asyncio.TimerHandle | None = None
        self.key = AuthKey(b"")
        self.wants_updates = False
        self.address = ("127.0.0.1", 0)

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        host, port, *_ = transport.get_extra_info("sockname")
        self.address = (host, port)
        self._platform.clients.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._platform.clients.discard(self)
        if self._hanging_up:
            self._hanging_up.cancel()

    def data_received(self, data: bytes) -> None:
        try:
            self._feed(data)
        except UNREADABLE as error:
            deep = _log.isEnabledFor(logging.DEBUG)
            _log.warning("closing a connection: %s: %s", type(error).__name__, error, exc_info=deep)
            self.close()

    # bytes to messages

    def _feed(self, data: bytes) -> None:
        if self._framing is None:
            data = self._recognised(data)
        if self._framing is not None:
            for packet in self._framing.feed(data):
                self._take(packet)

    def _recognised(self, data: bytes) -> bytes:
        """Find out which framing is spoken; returns what is left after its announcement."""
        self._opening += data
        if found := framing.recognise(self._opening):
            self._framing, announced = found
            return self._opening[announced:]
        return b""

    def _take(self, packet: bytes) -> None:
        if self._transport.is_closing():
            return  # what came behind the request that cut the connection was never received
        if len(packet) < envelope.SHORTEST:
            raise MalformedError(f"a packet of {len(packet)} bytes")
        if packet.startswith(envelope.PLAIN):
            self._take_plain(packet)
        else:
            self._take_encrypted(packet)

    def _take_plain(self, packet: bytes) -> None:
        request = BinaryReader(envelope.open_plain(packet)).tgread_object()
        if isinstance(request, types.MsgsAck):
            return
        answer = self._handshake.answer(request)
        self._write(envelope.seal_plain(self._clock.next(answer=True), bytes(answer)))

    def _take_encrypted(self, packet: bytes) -> None:
        key = self._platform.vault.keys.get(packet[:8])
        if key is None:
            self._write(_UNKNOWN_KEY)
            return
        opened = envelope.unseal(key.secret, packet)
        outer, inner = messages.read(opened.content)
        self._enter(key, opened.session, inner)
        if opened.salt != key.salt:
            self._correct_salt(outer)
        else:
            self._take_all(inner)

    def _enter(self, key: AuthKey, session: int, inner: list[messages.Message]) -> None:
        """Notice that a session begins and tell the client, as the specification wants."""
        if (key.id, session) == (self.key.id if self.key.secret else None, self._session):
            return
        self._flush()
        self.key, self._session, self._content_sent, self.wants_updates = key, session, 0, False
        first = min((message.id for message in inner), default=0)
        self._post(bytes(types.NewSessionCreated(first, session, key.salt)), content=True)

    def _correct_salt(self, outer: messages.Message) -> None:
        self._post(bytes(types.BadServerSalt(outer.id, outer.number, error_code=48, new_server_salt=self.key.salt)))

    def _take_all(self, inner: list[messages.Message]) -> None:
        for message in inner:
            if not self._transport.is_closing():
                self._take_message(message)

    # messages to answers

    def _take_message(self, message: messages.Message) -> None:
        body = messages.unpacked(message.body)
        reader = BinaryReader(body)
        if reader.read_int(signed=False) not in tlobjects:
            self._answer(message.id, Refusal(400, f"INPUT_METHOD_INVALID_{int.from_bytes(body[:4], 'little')}_0"))
            return
        reader.seek(-4)
        self._serve(message.id, reader.tgread_object())

    def _serve(self, message: int, request: Any) -> None:
        if isinstance(request, functions.DestroyAuthKeyRequest):
            self._destroy_key()
        elif answer := service.ANSWERS.get(type(request)):
            self._serve_service(answer(self.key, message, request), request)
        else:
            self._answer(message, replied(self._platform, self, request))

    def _serve_service(self, body: bytes | None, request: Any) -> None:
        if body is not None:
            self._post(body)
        if isinstance(request, functions.PingDelayDisconnectRequest):
            self._hang_up_after(request.disconnect_delay)

    def _destroy_key(self) -> None:
        self._platform.vault.forget_key(self.key)
        self._post(bytes(types.DestroyAuthKeyOk()))

    def _hang_up_after(self, seconds: int) -> None:
        if self._hanging_up:
            self._hanging_up.cancel()
        self._hanging_up = asyncio.get_running_loop().call_later(max(0, seconds), self.close)

    def _answer(self, message: int, reply: Reply) -> None:
        match reply:
            case Cut():
                self.close()
            case Silence():
                self._post(bytes(types.MsgsAck([message])))
            case Late():
                self._answer_late(message, reply.seconds, reply.finish)
            case _:
                self._post(messages.result(message, encode(reply)), content=True)

    def _answer_late(self, message: int, seconds: float, finish: Callable[[], Reply]) -> None:
        self._post(bytes(types.MsgsAck([message])))
        asyncio.get_running_loop().call_later(seconds, lambda: self._answer(message, finish()))

    def push(self, update: Any) -> None:
        """Send an update unasked."""
        self._post(bytes(update), content=True, answer=False)

    # answers to bytes

    def _post(self, body: bytes, *, content: bool = False, answer: bool = True) -> None:
        """Lay a message ready; all that are ready when the loop comes round leave together."""
        if not self._outgoing:
            asyncio.get_running_loop().call_soon(self._flush)
        self._outgoing.append(messages.framed(self._clock.next(answer=answer), self._number(content), body))

    def _number(self, content: bool) -> int:
        number = self._content_sent * 2 + content
        self._content_sent += content
        return number

    def _flush(self) -> None:
        ready, self._outgoing = self._outgoing, []
        for start in range(0, len(ready), _IN_ONE_CONTAINER):
            self._send(ready[start : start + _IN_ONE_CONTAINER])

    def _send(self, ready: list[bytes]) -> None:
        content = ready[0] if len(ready) == 1 else self._contained(ready)
        if self._session is not None:
            self._write(envelope.seal(self.key.secret, self.key.id, self.key.salt, self._session, content))

    def _contained(self, ready: list[bytes]) -> bytes:
        return messages.framed(self._clock.next(answer=True), self._number(False), messages.container(ready))

    def _write(self, packet: bytes) -> None:
        if self._framing is None:
            raise MalformedError("an answer before a question")
        if not self._transport.is_closing():
            self._transport.write(self._framing.wrap(packet))

    def close(self) -> None:
        """Close after what was answered already has left."""
        self._flush()
        self._transport.close()

    def abort(self) -> None:
        """Close at once, even if the client never reads what is on its way."""
        self._transport.abort()
