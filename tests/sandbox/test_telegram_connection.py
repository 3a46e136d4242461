"""Connections to the Telegram sandbox: transports, salts, keys, and malformed bytes."""

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

from sandbox.telegram.methods.dispatch import METHODS
from tests.sandbox.telegram_clients import TelegramSandbox, record, request_once, rpc_error, send
from tests.support.waiting import until


class TestConnection:
    @pytest.mark.parametrize(
        "transport",
        [ConnectionTcpFull, ConnectionTcpAbridged, ConnectionTcpIntermediate, ConnectionTcpObfuscated],
    )
    async def test_every_tcp_transport_works(self, telegram: TelegramSandbox, transport: Any) -> None:
        client = await telegram.bot(connection=transport)
        await client(send("x" * 4096))
        assert telegram.texts() == ["x" * 4096]

    async def test_the_config_has_the_address_that_the_client_connected_to(self, telegram: TelegramSandbox) -> None:
        client = await telegram.client()
        config = await client(f.help.GetConfigRequest())
        assert config.this_dc == 2
        assert [(dc.id, dc.ip_address, dc.port) for dc in config.dc_options] == [(2, "127.0.0.1", telegram.server.port)]

    async def test_a_ping_is_answered(self, telegram: TelegramSandbox) -> None:
        client = await telegram.client()
        assert (await request_once(client, f.PingRequest(42))).ping_id == 42

    async def test_future_salts_contain_the_salt_in_use(self, telegram: TelegramSandbox) -> None:
        client = await telegram.bot()
        answer = await request_once(client, f.GetFutureSaltsRequest(1))
        assert [salt.salt for salt in answer.salts] == [client._sender._state.salt]

    async def test_a_wrong_salt_is_corrected_and_no_message_is_lost(self, telegram: TelegramSandbox) -> None:
        client = await telegram.bot()
        client._sender._state.salt = 5
        await client(send("salted"))
        assert telegram.texts() == ["salted"]
        assert client._sender._state.salt != 5

    async def test_a_new_session_is_announced_with_the_salt(self, telegram: TelegramSandbox) -> None:
        client = await telegram.bot()
        announced: list[Any] = []
        client._sender._handlers[t.NewSessionCreated.CONSTRUCTOR_ID] = lambda message: record(announced, message.obj)
        telegram.server.disconnect()
        await client.get_me()
        assert [session.server_salt for session in announced] == [client._sender._state.salt]

    async def test_ping_delay_disconnect_closes_the_connection_without_another_ping(
        self, telegram: TelegramSandbox
    ) -> None:
        client = await telegram.client(auto_reconnect=False)
        await request_once(client, f.PingDelayDisconnectRequest(1, disconnect_delay=0))
        await until(lambda: not client.is_connected())

    async def test_a_destroyed_key_is_invalid(self, telegram: TelegramSandbox) -> None:
        client = await telegram.bot()
        session = client.session.save()
        assert isinstance(await request_once(client, f.DestroyAuthKeyRequest()), t.DestroyAuthKeyOk)
        await telegram.restart()
        with pytest.raises((errors.AuthKeyNotFound, ConnectionError)):
            await request_once(await telegram.client(session), send())

    async def test_an_unknown_method_is_an_rpc_error(self, telegram: TelegramSandbox) -> None:
        client = await telegram.bot()
        assert f.stickers.CheckShortNameRequest not in METHODS
        assert await rpc_error(client, f.stickers.CheckShortNameRequest("x")) == (400, "METHOD_INVALID")

    async def test_an_unknown_constructor_is_an_rpc_error(self, telegram: TelegramSandbox) -> None:
        class Invented(f.PingRequest):  # type: ignore[misc]
            def _bytes(self) -> bytes:
                return struct.pack("<I", 0x12345678)

        client = await telegram.bot()
        assert await rpc_error(client, Invented(1)) == (400, f"INPUT_METHOD_INVALID_{0x12345678}_0")

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
    async def test_malformed_bytes_close_only_their_own_connection(
        self, telegram: TelegramSandbox, data: bytes, caplog: pytest.LogCaptureFixture
    ) -> None:
        client = await telegram.bot()
        reader, writer = await asyncio.open_connection(telegram.server.host, telegram.server.port)
        with caplog.at_level(logging.WARNING, "sandbox.telegram"):
            writer.write(data)
            assert await asyncio.wait_for(reader.read(), 10) == b""
        assert "closing a connection" in caplog.text
        writer.close()
        assert await client(send())

    async def test_a_modified_encrypted_packet_closes_the_connection(self, telegram: TelegramSandbox) -> None:
        client = await telegram.bot()
        ping = bytes(f.PingRequest(1))
        encrypted = _encrypted(client, struct.pack("<qii", 4, 1, len(ping)) + ping)
        in_the_padding = encrypted[:-1] + bytes([encrypted[-1] ^ 1])
        assert await _answered(telegram, encrypted)
        assert not await _answered(telegram, in_the_padding)

    async def test_a_full_frame_needs_its_checksum(self, telegram: TelegramSandbox) -> None:
        client = await telegram.bot()
        ping = bytes(f.PingRequest(1))
        packet = _encrypted(client, struct.pack("<qii", 4, 1, len(ping)) + ping)[8:]
        frame = struct.pack("<II", len(packet) + 12, 0) + packet
        assert await _answered(telegram, frame + struct.pack("<I", crc32(frame)))
        assert not await _answered(telegram, frame + struct.pack("<I", crc32(frame) ^ 1))

    async def test_requests_with_modified_bytes_do_not_affect_other_connections(
        self, telegram: TelegramSandbox, caplog: pytest.LogCaptureFixture
    ) -> None:
        """The content of a correctly encrypted packet is untrusted, too."""
        client, randomness = await telegram.bot(), random.Random(43)
        requests = [send(random_id=7), f.users.GetUsersRequest([t.InputUserSelf()]), f.PingRequest(1)]
        for _ in range(150):
            body = bytearray(bytes(randomness.choice(requests)))
            body[randomness.randrange(4, len(body))] = randomness.randrange(256)
            size = len(body) + randomness.choice((0, 0, 0, -4, 100))
            await _answered(telegram, _encrypted(client, struct.pack("<qii", 4, 1, size) + body))
        assert (await client.get_me()).id == 4242
        assert not [record for record in caplog.records if record.name == "sandbox.telegram.methods.dispatch"]
        assert "protocol.data_received" not in caplog.text  # asyncio's log of an exception in the server itself

    async def test_an_unknown_key_is_the_transport_error_404(self, telegram: TelegramSandbox) -> None:
        reader, writer = await asyncio.open_connection(telegram.server.host, telegram.server.port)
        writer.write(b"\xef" + bytes([18]) + b"\x07" * 72)
        assert await reader.readexactly(5) == b"\x01" + struct.pack("<i", -404)
        writer.close()


async def _answered(telegram: TelegramSandbox, data: bytes) -> bool:
    """Return whether the server answers; otherwise it closes the connection."""
    reader, writer = await asyncio.open_connection(telegram.server.host, telegram.server.port)
    writer.write(data)
    answer = await asyncio.wait_for(reader.read(1), 10)
    writer.close()
    return bool(answer)


def _encrypted(client: TelegramClient, content: bytes) -> bytes:
    """Return the content as an announced intermediate frame, encrypted with the client's key."""
    state = MTProtoState(client.session.auth_key, loggers=defaultdict(lambda: logging.getLogger("fuzz")))
    state.salt = client._sender._state.salt
    packet: bytes = state.encrypt_message_data(content)
    return b"\xee\xee\xee\xee" + struct.pack("<I", len(packet)) + packet
