"""The connection to the sandbox's Telegram: transports, salts, keys, and bytes that make no sense."""

import asyncio
import logging
import random
import struct
from collections import defaultdict
from typing import Any
from zlib import crc32

import pytest
from telethon import TelegramClient, errors
from telethon.network.connection import (
    ConnectionTcpAbridged,
    ConnectionTcpFull,
    ConnectionTcpIntermediate,
    ConnectionTcpObfuscated,
)
from telethon.network.mtprotostate import MTProtoState
from telethon.tl import functions as f
from telethon.tl import types as t

from sandbox.telegram.dispatch import METHODS
from tests.sandbox.telegram_clients import Place, asked, hear, refusal, send
from tests.support.waiting import until

pytestmark = pytest.mark.row("D-43")


class TestConnecting:
    @pytest.mark.parametrize(
        "transport",
        [ConnectionTcpFull, ConnectionTcpAbridged, ConnectionTcpIntermediate, ConnectionTcpObfuscated],
    )
    async def test_every_tcp_transport_is_understood(self, place: Place, transport: Any) -> None:
        client = await place.bot(connection=transport)
        await client(send("x" * 4096))
        assert place.texts() == ["x" * 4096]

    async def test_the_config_names_the_address_that_the_client_came_by(self, place: Place) -> None:
        client = await place.client()
        config = await client(f.help.GetConfigRequest())
        assert config.this_dc == 2
        assert [(dc.id, dc.ip_address, dc.port) for dc in config.dc_options] == [(2, "127.0.0.1", place.server.port)]

    async def test_a_ping_is_answered(self, place: Place) -> None:
        client = await place.client()
        assert (await asked(client, f.PingRequest(42))).ping_id == 42

    async def test_future_salts_hold_the_salt_in_use(self, place: Place) -> None:
        client = await place.bot()
        answer = await asked(client, f.GetFutureSaltsRequest(1))
        assert [salt.salt for salt in answer.salts] == [client._sender._state.salt]

    async def test_a_wrong_salt_is_corrected_and_nothing_is_lost(self, place: Place) -> None:
        client = await place.bot()
        client._sender._state.salt = 5
        await client(send("salted"))
        assert place.texts() == ["salted"]
        assert client._sender._state.salt != 5

    async def test_a_new_session_is_announced_with_the_salt(self, place: Place) -> None:
        client = await place.bot()
        announced: list[Any] = []
        client._sender._handlers[t.NewSessionCreated.CONSTRUCTOR_ID] = lambda message: hear(announced, message.obj)
        place.server.disconnect()
        await client.get_me()
        assert [session.server_salt for session in announced] == [client._sender._state.salt]

    async def test_ping_delay_disconnect_hangs_up_when_no_other_ping_comes(self, place: Place) -> None:
        client = await place.client(auto_reconnect=False)
        await asked(client, f.PingDelayDisconnectRequest(1, disconnect_delay=0))
        await until(lambda: not client.is_connected())

    async def test_a_destroyed_key_opens_nothing(self, place: Place) -> None:
        client = await place.bot()
        session = client.session.save()
        assert isinstance(await asked(client, f.DestroyAuthKeyRequest()), t.DestroyAuthKeyOk)
        await place.restart()
        with pytest.raises((errors.AuthKeyNotFound, ConnectionError)):
            await asked(await place.client(session), send())

    async def test_a_method_that_is_not_played_is_an_rpc_error(self, place: Place) -> None:
        client = await place.bot()
        assert f.stickers.CheckShortNameRequest not in METHODS
        assert await refusal(client, f.stickers.CheckShortNameRequest("x")) == (400, "METHOD_INVALID")

    async def test_a_constructor_that_does_not_exist_is_an_rpc_error(self, place: Place) -> None:
        class Invented(f.PingRequest):  # type: ignore[misc]
            def _bytes(self) -> bytes:
                return struct.pack("<I", 0x12345678)

        client = await place.bot()
        assert await refusal(client, Invented(1)) == (400, f"INPUT_METHOD_INVALID_{0x12345678}_0")

    @pytest.mark.parametrize(
        "data",
        [
            b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 3,
            b"\xee\xee\xee\xee" + struct.pack("<I", 2**31),
            b"\xee\xee\xee\xee" + struct.pack("<I", 40) + b"\x00" * 16 + struct.pack("<i", 20) + b"\xff" * 20,
            b"\xef\x01\x00\x00\x00\x00",
            struct.pack("<II", 16, 0) + b"junkjunk",
            b"\xff" * 64,
        ],
    )
    async def test_bytes_that_make_no_sense_cost_only_their_own_connection(
        self, place: Place, data: bytes, caplog: pytest.LogCaptureFixture
    ) -> None:
        client = await place.bot()
        reader, writer = await asyncio.open_connection(place.server.host, place.server.port)
        with caplog.at_level(logging.WARNING, "sandbox.telegram"):
            writer.write(data)
            assert await asyncio.wait_for(reader.read(), 10) == b""
        assert "closing a connection" in caplog.text
        writer.close()
        assert await client(send())

    async def test_an_encrypted_packet_that_was_tampered_with_closes_the_connection(self, place: Place) -> None:
        client = await place.bot()
        ping = bytes(f.PingRequest(1))
        sealed = _sealed(client, struct.pack("<qii", 4, 1, len(ping)) + ping)
        in_the_padding = sealed[:-1] + bytes([sealed[-1] ^ 1])
        assert await _answered(place, sealed)
        assert not await _answered(place, in_the_padding)

    async def test_a_full_frame_needs_its_checksum(self, place: Place) -> None:
        client = await place.bot()
        ping = bytes(f.PingRequest(1))
        packet = _sealed(client, struct.pack("<qii", 4, 1, len(ping)) + ping)[8:]
        frame = struct.pack("<II", len(packet) + 12, 0) + packet
        assert await _answered(place, frame + struct.pack("<I", crc32(frame)))
        assert not await _answered(place, frame + struct.pack("<I", crc32(frame) ^ 1))

    async def test_requests_with_broken_bytes_harm_nobody_else(
        self, place: Place, caplog: pytest.LogCaptureFixture
    ) -> None:
        """What is inside a packet that was encrypted rightly is not to be trusted either."""
        client, chance = await place.bot(), random.Random(43)
        requests = [send(random_id=7), f.users.GetUsersRequest([t.InputUserSelf()]), f.PingRequest(1)]
        for _ in range(150):
            body = bytearray(bytes(chance.choice(requests)))
            body[chance.randrange(4, len(body))] = chance.randrange(256)
            size = len(body) + chance.choice((0, 0, 0, -4, 100))
            await _answered(place, _sealed(client, struct.pack("<qii", 4, 1, size) + body))
        assert (await client.get_me()).id == 4242
        assert "could not be served" not in caplog.text
        assert "protocol.data_received" not in caplog.text  # how asyncio says that the server itself failed

    async def test_an_unknown_key_is_answered_by_the_transport_error_404(self, place: Place) -> None:
        reader, writer = await asyncio.open_connection(place.server.host, place.server.port)
        writer.write(b"\xef" + bytes([18]) + b"\x07" * 72)
        assert await reader.readexactly(5) == b"\x01" + struct.pack("<i", -404)
        writer.close()


async def _answered(place: Place, data: bytes) -> bool:
    """Tell if the server answers the data; otherwise it closes the connection."""
    reader, writer = await asyncio.open_connection(place.server.host, place.server.port)
    writer.write(data)
    answer = await asyncio.wait_for(reader.read(1), 10)
    writer.close()
    return bool(answer)


def _sealed(client: TelegramClient, content: bytes) -> bytes:
    """Return an intermediate frame, with its announcement, that holds the content under the client's key."""
    state = MTProtoState(client.session.auth_key, loggers=defaultdict(lambda: logging.getLogger("fuzz")))
    state.salt = client._sender._state.salt
    packet: bytes = state.encrypt_message_data(content)
    return b"\xee\xee\xee\xee" + struct.pack("<I", len(packet)) + packet
