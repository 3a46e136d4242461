"""The sandbox's Telegram, asked by an unmodified Telethon over a real socket."""

import asyncio
import logging
import random
import shutil
import struct
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from telethon import TelegramClient, errors, events
from telethon.network.connection import (
    ConnectionTcpAbridged,
    ConnectionTcpFull,
    ConnectionTcpIntermediate,
    ConnectionTcpObfuscated,
)
from telethon.network.mtprotostate import MTProtoState
from telethon.sessions import StringSession
from telethon.tl import functions as f
from telethon.tl import types as t

from sandbox.telegram import TelegramServer, point, trust
from sandbox.telegram.dispatch import METHODS
from sandbox.telegram.faults import NAMES
from sandbox.world import Fault, Rule, World
from tests.waiting import until

pytestmark = pytest.mark.row("D-43")

BOT = "4242:sandbox"
PERSON = 100_001
NEVER = 0.2  # seconds in which an answer that comes at all has come hundreds of times over


class Place:
    """One server with the clients that a test opened on it."""

    def __init__(self, directory: Path) -> None:
        self.world, self.directory, self.time = World(), directory, 1000.0
        self.server = self._made()
        self.clients: list[TelegramClient] = []

    def _made(self, port: int = 0) -> TelegramServer:
        return TelegramServer(self.world, self.directory, port=port, clock=lambda: self.time)

    async def restart(self) -> None:
        await self.server.stop()
        self.server = self._made(self.server.port)
        await self.server.start()

    async def client(self, session: str | None = None, **options: Any) -> TelegramClient:
        """Return a connected Telethon that neither sleeps through floods nor repeats by itself."""
        kept = StringSession(session)
        if session is None:
            point(kept, self.server.host, self.server.port)
        options = {"flood_sleep_threshold": 0, "request_retries": 0, "raise_last_call_error": True, **options}
        client = TelegramClient(kept, 1, "hash", **options)
        self.clients.append(client)
        await client.connect()
        return client

    async def bot(self, token: str = BOT, **options: Any) -> TelegramClient:
        client = await self.client(**options)
        await client.sign_in(bot_token=token)
        return client

    async def user(self, phone: str = "+79990000077", **options: Any) -> TelegramClient:
        client = await self.client(**options)
        await client.send_code_request(phone)
        await client.sign_in(phone, "22222")
        return client

    def order(self, name: str, value: int | None = None, *, times: int | None = 1, method: str = "sendMessage") -> None:
        self.world.add_rule(Rule("telegram", Fault(name, value), method=method, times=times))

    def texts(self, person: int | str = PERSON) -> list[str]:
        return [message.text for message in self.world.inbox("telegram", str(person))]


@pytest.fixture(scope="session")
def server_key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the RSA key once: it takes seconds."""
    directory = tmp_path_factory.mktemp("telegram")
    trust(TelegramServer(World(), directory).public_key_pem)
    return directory / "server-key.pem"


@pytest.fixture
async def place(tmp_path: Path, server_key: Path) -> AsyncIterator[Place]:
    shutil.copy(server_key, tmp_path)
    here = Place(tmp_path)
    await here.server.start()
    yield here
    for client in here.clients:
        await client.disconnect()
    await here.server.stop()


def send(text: str = "hello", *, to: int = PERSON, random_id: int = 1, access_hash: int = 0) -> Any:
    return f.messages.SendMessageRequest(t.InputPeerUser(to, access_hash), text, random_id=random_id)


async def asked(client: TelegramClient, request: Any) -> Any:
    """Ask once, without the two seconds that Telethon sleeps after an error of the server."""
    return await client._sender.send(request)


async def refusal(client: TelegramClient, request: Any) -> tuple[int, str]:
    """Return the code and the text as they came over the wire."""
    seen: list[tuple[int, str]] = []
    handler = client._sender._handlers[0xF35C6D01]

    async def watch(message: Any) -> None:
        if message.obj.error:
            seen.append((message.obj.error.error_code, message.obj.error.error_message))
        await handler(message)

    client._sender._handlers[0xF35C6D01] = watch
    with pytest.raises(errors.RPCError):
        await asked(client, request)
    client._sender._handlers[0xF35C6D01] = handler
    return seen[-1]


async def unanswered(waiting: Awaitable[Any]) -> None:
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(waiting, NEVER)


class TestSigningIn:
    async def test_a_bot_signs_in_by_its_token(self, place: Place) -> None:
        client = await place.client()
        assert not await client.is_user_authorized()
        me = await client.sign_in(bot_token=BOT)
        assert (me.id, me.bot, me.is_self, me.phone) == (4242, True, True, None)
        assert (await client.get_me()).id == 4242

    async def test_a_user_signs_in_by_phone_and_any_code_of_five_digits(self, place: Place) -> None:
        me = await (await place.user("+79990000077")).get_me()
        assert (me.id, me.bot, me.phone) == (77, False, "79990000077")

    async def test_start_does_the_same(self, place: Place) -> None:
        client = await place.client()
        await client.start(phone="+79990000078", code_callback=lambda: "54321")
        assert (await client.get_me()).id == 78

    @pytest.mark.parametrize("token", ["nonsense", "4242", ":abcdefghijklm", "4242:", "0:abcdefghijklm", "4242:a b"])
    async def test_a_token_of_the_wrong_form_is_refused(self, place: Place, token: str) -> None:
        with pytest.raises(errors.AccessTokenInvalidError):
            await (await place.client()).sign_in(bot_token=token)

    @pytest.mark.parametrize("code", ["1234", "123456", "abcde"])
    async def test_another_code_is_refused(self, place: Place, code: str) -> None:
        client = await place.client()
        sent = await client.send_code_request("+79990000077")
        with pytest.raises(errors.PhoneCodeInvalidError):
            await asked(client, f.auth.SignInRequest("+79990000077", sent.phone_code_hash, code))

    async def test_a_code_for_another_phone_is_refused(self, place: Place) -> None:
        client = await place.client()
        sent = await client.send_code_request("+79990000077")
        with pytest.raises(errors.PhoneCodeExpiredError):
            await asked(client, f.auth.SignInRequest("+79990000078", sent.phone_code_hash, "22222"))

    async def test_what_is_no_phone_is_refused(self, place: Place) -> None:
        with pytest.raises(errors.PhoneNumberInvalidError):
            await (await place.client()).send_code_request("123")

    async def test_nobody_sends_without_signing_in(self, place: Place) -> None:
        client = await place.client()
        assert await refusal(client, send()) == (401, "AUTH_KEY_UNREGISTERED")
        assert place.texts() == []

    async def test_logging_out_ends_the_session(self, place: Place) -> None:
        client = await place.bot()
        session = client.session.save()
        assert await client.log_out()
        assert not await (await place.client(session)).is_user_authorized()

    async def test_a_stored_session_is_still_signed_in_after_a_restart_of_the_server(self, place: Place) -> None:
        client = await place.bot()
        session = client.session.save()
        await client.disconnect()
        pem = place.server.public_key_pem
        await place.restart()
        assert place.server.public_key_pem == pem
        again = await place.client(session)
        assert (await again.get_me()).id == 4242
        assert await asked(again, send())

    async def test_a_connected_client_comes_back_by_itself_after_a_restart(self, place: Place) -> None:
        client = await place.bot()
        await place.restart()
        await asked(client, send("after"))
        assert place.texts() == ["after"]

    async def test_message_ids_go_on_after_a_restart(self, place: Place) -> None:
        client = await place.bot()
        before = await asked(client, send(random_id=1))
        await place.restart()
        after = await asked(client, send(random_id=2))
        assert after.id > before.id

    async def test_a_session_that_the_server_never_saw_is_told_so(self, place: Place) -> None:
        client = await place.bot()
        session = client.session.save()
        await client.disconnect()
        (place.directory / "sessions.jsonl").unlink()
        await place.restart()
        with pytest.raises((errors.AuthKeyNotFound, ConnectionError)):
            await asked(await place.client(session), send())

    async def test_a_line_cut_off_by_a_kill_loses_nothing_else(self, place: Place) -> None:
        client = await place.bot()
        session = client.session.save()
        await client.disconnect()
        await place.server.stop()
        with (place.directory / "sessions.jsonl").open("a") as file:
            file.write('{"key": "00')
        await place.restart()
        assert await (await place.client(session)).is_user_authorized()

    async def test_session_files_are_for_their_owner_only(self, place: Place) -> None:
        await place.bot()
        for name in ("sessions.jsonl", "server-key.pem"):
            assert (place.directory / name).stat().st_mode & 0o077 == 0

    async def test_two_accounts_work_at_once_and_each_sends_as_itself(self, place: Place) -> None:
        one, other = await place.bot("1001:sandbox-token"), await place.user()
        await other(f.contacts.ImportContactsRequest([t.InputPhoneContact(1, "+79990100001", "A", "B")]))
        await asyncio.gather(one(send("from the bot")), other(send("from the user")))
        assert sorted(place.texts()) == ["from the bot", "from the user"]

    async def test_two_connections_of_one_account_work_at_once(self, place: Place) -> None:
        one, other = await place.bot(), await place.bot()
        answers = await asyncio.gather(one(send("a", random_id=1)), other(send("b", random_id=2)))
        assert len({answer.id for answer in answers}) == 2


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
        client._sender._handlers[t.NewSessionCreated.CONSTRUCTOR_ID] = lambda message: _heard(announced, message.obj)
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


class TestSending:
    async def test_a_message_reaches_the_inbox_with_its_number_and_random_id(self, place: Place) -> None:
        client = await place.bot()
        answer = await client(send("Моей пары сегодня не будет", random_id=-77))
        assert isinstance(answer, t.UpdateShortSentMessage)
        [message] = place.world.inbox("telegram")
        assert (message.address, message.text, message.random_id) == (
            str(PERSON),
            "Моей пары сегодня не будет",
            -77,
        )
        assert message.reference == str(answer.id)
        assert place.world.counted("telegram", "sendMessage") == 1

    async def test_telethons_own_send_message_works(self, place: Place) -> None:
        client = await place.bot()
        message = await client.send_message(PERSON, "by name")
        assert place.world.inbox()[0].reference == str(message.id)

    async def test_hundreds_at_once_travel_in_containers_and_all_arrive_once(self, place: Place) -> None:
        client = await place.bot()
        answers = await asyncio.gather(*(client(send(str(n), to=n, random_id=n)) for n in range(1, 501)))
        assert len({answer.id for answer in answers}) == 500
        assert sorted(int(message.text) for message in place.world.inbox()) == list(range(1, 501))

    async def test_telethon_without_updates_is_served(self, place: Place) -> None:
        client = await place.bot(receive_updates=False)
        await client(send("quiet"))
        assert place.texts() == ["quiet"]

    async def test_long_text_travels_compressed(self, place: Place) -> None:
        client = await place.bot()
        text = ("строка " * 600)[:4096]
        await client(send(text))
        assert place.texts() == [text]

    @pytest.mark.parametrize("text", ["x" * 4096, "я" * 4096, "🙂" * 2048, "\u0000", "{[\"\\n\u2028]}'<b>"])
    async def test_text_of_4096_units_and_any_letters_arrive_as_they_are(self, place: Place, text: str) -> None:
        await (await place.bot())(send(text))
        assert place.texts() == [text]

    @pytest.mark.parametrize("text", ["x" * 4097, "🙂" * 2048 + "x", "🙂" * 2049])
    async def test_more_than_4096_utf16_units_are_too_long(self, place: Place, text: str) -> None:
        client = await place.bot()
        assert await refusal(client, send(text)) == (400, "MESSAGE_TOO_LONG")
        assert place.texts() == []

    @pytest.mark.parametrize("text", ["", " \n"])
    async def test_an_empty_message_is_refused(self, place: Place, text: str) -> None:
        assert await refusal(await place.bot(), send(text)) == (400, "MESSAGE_EMPTY")

    async def test_a_group_and_a_channel_answer_with_the_whole_message(self, place: Place) -> None:
        client = await place.bot()
        for peer, address in ((t.InputPeerChat(55), "-55"), (t.InputPeerChannel(66, 0), "-10066")):
            answer = await asked(client, f.messages.SendMessageRequest(peer, "all", random_id=9))
            named, news = answer.updates
            assert (named.random_id, news.message.message, news.message.id) == (9, "all", named.id)
            assert place.world.inbox("telegram", address)[0].reference == str(named.id)

    async def test_one_may_write_to_oneself(self, place: Place) -> None:
        client = await place.bot()
        await asked(client, f.messages.SendMessageRequest(t.InputPeerSelf(), "note", random_id=1))
        assert place.texts(4242) == ["note"]

    @pytest.mark.parametrize("user", [0, -5, 2**50])
    async def test_an_id_that_nobody_can_have_is_refused(self, place: Place, user: int) -> None:
        assert await refusal(await place.bot(), send(to=user)) == (400, "PEER_ID_INVALID")

    async def test_a_user_needs_the_right_access_hash(self, place: Place) -> None:
        client = await place.user()
        assert await refusal(client, send(access_hash=0)) == (400, "PEER_ID_INVALID")
        assert await refusal(client, send(access_hash=12345)) == (400, "PEER_ID_INVALID")
        found = await client(f.contacts.ResolvePhoneRequest("+79990100001"))
        assert await client(send(access_hash=found.users[0].access_hash))

    async def test_an_access_hash_is_worth_nothing_to_another_account(self, place: Place) -> None:
        one, other = await place.user("+79990000077"), await place.user("+79990000078")
        found = await one(f.contacts.ResolvePhoneRequest("+79990100001"))
        request = send(access_hash=found.users[0].access_hash)
        assert await refusal(other, request) == (400, "PEER_ID_INVALID")

    async def test_an_access_hash_outlives_a_restart(self, place: Place) -> None:
        client = await place.user()
        found = await client(f.contacts.ResolvePhoneRequest("+79990100001"))
        await place.restart()
        assert await asked(client, send(access_hash=found.users[0].access_hash))


class TestRandomIds:
    async def test_a_repeat_has_the_same_number_and_is_not_received_again(self, place: Place) -> None:
        client = await place.bot()
        first, again = await client(send(random_id=7)), await client(send(random_id=7))
        assert first.id == again.id
        assert len(place.texts()) == 1

    async def test_repeats_in_one_container_are_one_message(self, place: Place) -> None:
        client = await place.bot()
        answers = await asyncio.gather(*(client(send(random_id=7)) for _ in range(20)))
        assert len({answer.id for answer in answers}) == 1
        assert len(place.texts()) == 1

    async def test_the_same_id_for_another_person_is_another_message(self, place: Place) -> None:
        client = await place.bot()
        first, other = await client(send(random_id=7)), await client(send(random_id=7, to=5))
        assert first.id != other.id
        assert len(place.world.inbox()) == 2

    async def test_the_same_id_of_another_account_is_another_message(self, place: Place) -> None:
        for token in ("1001:sandbox-token", "1002:sandbox-token"):
            await (await place.bot(token))(send(random_id=7))
        assert len(place.texts()) == 2

    async def test_a_group_repeats_its_whole_answer(self, place: Place) -> None:
        client = await place.bot()
        request = f.messages.SendMessageRequest(t.InputPeerChat(55), "all", random_id=9)
        first, again = await asked(client, request), await asked(client, request)
        assert first.updates[0].id == again.updates[0].id
        assert place.texts(-55) == ["all"]

    async def test_no_random_id_is_refused(self, place: Place) -> None:
        assert await refusal(await place.bot(), send(random_id=0)) == (400, "RANDOM_ID_EMPTY")


REFUSED = {
    "privacy": (403, "USER_PRIVACY_RESTRICTED", errors.UserPrivacyRestrictedError),
    "premium_required": (406, "PRIVACY_PREMIUM_REQUIRED", errors.AuthKeyError),
    "payment_required": (403, "ALLOW_PAYMENT_REQUIRED_7", errors.ForbiddenError),
    "blocked": (400, "USER_IS_BLOCKED", errors.UserIsBlockedError),
    "deactivated": (400, "INPUT_USER_DEACTIVATED", errors.InputUserDeactivatedError),
    "peer_invalid": (400, "PEER_ID_INVALID", errors.PeerIdInvalidError),
    "write_forbidden": (403, "CHAT_WRITE_FORBIDDEN", errors.ChatWriteForbiddenError),
    "peer_flood": (400, "PEER_FLOOD", errors.PeerFloodError),
    "frozen": (420, "FROZEN_METHOD_INVALID", errors.FrozenMethodInvalidError),
    "auth_key_unregistered": (401, "AUTH_KEY_UNREGISTERED", errors.AuthKeyUnregisteredError),
    "session_revoked": (401, "SESSION_REVOKED", errors.SessionRevokedError),
    "deactivated_ban": (401, "USER_DEACTIVATED_BAN", errors.UserDeactivatedBanError),
    "auth_key_duplicated": (406, "AUTH_KEY_DUPLICATED", errors.AuthKeyDuplicatedError),
    "server_error": (500, "INTERNAL_SERVER_ERROR", errors.ServerError),
    "message_too_long": (400, "MESSAGE_TOO_LONG", errors.MessageTooLongError),
    "message_empty": (400, "MESSAGE_EMPTY", errors.MessageEmptyError),
    "flood_wait": (420, "FLOOD_WAIT_7", errors.FloodWaitError),
    "slow_mode": (420, "SLOWMODE_WAIT_7", errors.SlowModeWaitError),
}
NOT_PLAIN_REFUSALS = {
    "random_id_duplicate",
    "stored_then_error",
    "timeout",
    "stored_then_silence",
    "disconnect_before",
    "disconnect_after",
    "slow",
}


class TestFaults:
    def test_every_fault_has_a_test(self) -> None:
        assert set(REFUSED) | NOT_PLAIN_REFUSALS == NAMES

    @pytest.mark.parametrize("name", REFUSED)
    async def test_a_refusal_has_telegrams_code_and_text_and_stores_nothing(self, place: Place, name: str) -> None:
        client = await place.bot()
        code, text, kind = REFUSED[name]
        value = None if name == "server_error" else 7
        place.order(name, value)
        assert await refusal(client, send(random_id=1)) == (code, text)
        place.time += 100
        place.order(name, value)
        with pytest.raises(kind):
            await asked(client, send(random_id=2))
        assert place.texts() == []
        place.time += 100
        assert await asked(client, send("works again", random_id=1))

    async def test_a_magic_recipient_meets_with_its_failure_every_time(self, place: Place) -> None:
        client = await place.bot()
        for _ in range(3):
            assert await refusal(client, send(to=900_003)) == (403, "USER_PRIVACY_RESTRICTED")

    async def test_a_flood_wait_holds_the_account_and_counts_down(self, place: Place) -> None:
        client = await place.bot()
        other = await place.bot("1001:sandbox-token")
        place.order("flood_wait", 60)
        assert await refusal(client, send(random_id=1)) == (420, "FLOOD_WAIT_60")
        place.time += 20.5
        assert await refusal(client, send(random_id=2, to=5)) == (420, "FLOOD_WAIT_40")
        assert await asked(other, send("of another account"))
        assert await client.get_me()
        place.time += 39.5
        assert await asked(client, send("afterwards", random_id=3))
        assert place.texts() == ["of another account", "afterwards"]

    async def test_slow_mode_holds_one_chat(self, place: Place) -> None:
        client = await place.bot()
        place.order("slow_mode", 10)
        assert await refusal(client, send(random_id=1)) == (420, "SLOWMODE_WAIT_10")
        place.time += 4
        assert await refusal(client, send(random_id=2)) == (420, "SLOWMODE_WAIT_6")
        assert await asked(client, send(random_id=3, to=5))
        place.time += 6
        assert await asked(client, send(random_id=2))

    async def test_stored_then_error_is_received_once_and_the_repeat_tells_its_number(self, place: Place) -> None:
        client = await place.bot()
        place.order("stored_then_error")
        assert await refusal(client, send(random_id=7)) == (500, "INTERNAL_SERVER_ERROR")
        [received] = place.world.inbox()
        assert str((await asked(client, send(random_id=7))).id) == received.reference
        assert len(place.texts()) == 1

    async def test_stored_then_error_with_a_code_of_its_own(self, place: Place) -> None:
        client = await place.bot()
        place.order("stored_then_error", -503)
        assert await refusal(client, send()) == (-503, "Timeout")

    async def test_telethon_itself_repeats_an_error_of_the_server_to_the_same_message(self, place: Place) -> None:
        client = await place.bot(request_retries=1)
        place.order("stored_then_error")
        answer = await client(send())
        assert [message.reference for message in place.world.inbox()] == [str(answer.id)]

    async def test_random_id_duplicate_means_the_message_is_there(self, place: Place) -> None:
        client = await place.bot()
        place.order("random_id_duplicate", 3)
        for _ in range(3):
            assert await refusal(client, send(random_id=7)) == (500, "RANDOM_ID_DUPLICATE")
        assert str((await asked(client, send(random_id=7))).id) == place.world.inbox()[0].reference
        assert len(place.texts()) == 1

    async def test_a_random_id_in_process_is_a_duplicate_until_it_is_answered(self, place: Place) -> None:
        client, other = await place.bot(), await place.bot()
        place.order("slow", 1)
        slow = asyncio.ensure_future(asked(client, send(random_id=7)))
        await until(lambda: place.world.counted("telegram", "sendMessage"))
        assert await refusal(other, send(random_id=7)) == (500, "RANDOM_ID_DUPLICATE")
        assert place.texts() == []
        answer = await slow
        assert (await asked(other, send(random_id=7))).id == answer.id
        assert len(place.texts()) == 1

    async def test_a_timeout_is_never_answered_and_stores_nothing(self, place: Place) -> None:
        client = await place.bot()
        place.order("timeout")
        await unanswered(asked(client, send(random_id=7)))
        assert place.texts() == []
        assert await asked(client, send(random_id=7))

    async def test_stored_then_silence_is_never_answered_but_received(self, place: Place) -> None:
        client = await place.bot()
        place.order("stored_then_silence")
        await unanswered(asked(client, send(random_id=7)))
        assert len(place.texts()) == 1
        assert str((await asked(client, send(random_id=7))).id) == place.world.inbox()[0].reference
        assert len(place.texts()) == 1

    async def test_a_cut_before_stores_nothing_and_the_client_repeats(self, place: Place) -> None:
        lonely = await place.bot(auto_reconnect=False)
        place.order("disconnect_before")
        with pytest.raises((ConnectionError, asyncio.CancelledError, asyncio.IncompleteReadError)):
            await asked(lonely, send(random_id=7))
        assert place.texts() == []

    async def test_what_travelled_behind_a_cut_was_never_received(self, place: Place) -> None:
        lonely = await place.bot(auto_reconnect=False)
        place.order("disconnect_before")
        both = asyncio.gather(*(asked(lonely, send(random_id=n)) for n in (1, 2)), return_exceptions=True)
        assert all(isinstance(answer, BaseException) for answer in await both)
        assert place.texts() == []

    async def test_a_cut_after_has_stored_the_message(self, place: Place) -> None:
        lonely = await place.bot(auto_reconnect=False)
        place.order("disconnect_after")
        with pytest.raises((ConnectionError, asyncio.CancelledError, asyncio.IncompleteReadError)):
            await asked(lonely, send(random_id=7))
        assert len(place.texts()) == 1

    @pytest.mark.parametrize("name", ["disconnect_before", "disconnect_after"])
    async def test_telethon_reconnects_after_a_cut_and_the_message_arrives_once(self, place: Place, name: str) -> None:
        client = await place.bot()
        place.order(name)
        answer = await client(send(random_id=7))
        assert [message.reference for message in place.world.inbox()] == [str(answer.id)]

    async def test_a_magic_cut_does_not_hold_up_the_others_for_ever(self, place: Place) -> None:
        """The client repeats what was cut as soon as it is back, so a cut at every attempt would never end."""
        client = await place.bot()
        people = [PERSON, 900_015, 900_016, 5]
        await asyncio.wait_for(asyncio.gather(*(client(send(to=n)) for n in people)), 20)
        assert sorted(message.address for message in place.world.inbox()) == sorted(map(str, people))

    async def test_a_cut_by_hand_is_survived(self, place: Place) -> None:
        client = await place.bot()
        place.server.disconnect()
        assert await client(send())
        assert len(place.texts()) == 1


class TestPeople:
    async def test_a_phone_is_imported_and_can_be_written_to(self, place: Place) -> None:
        client = await place.user()
        contacts = [t.InputPhoneContact(n, phone, "A", "B") for n, phone in ((1, "+7 999 010-00-01"), (2, "123"))]
        answer = await client(f.contacts.ImportContactsRequest(contacts))
        assert [(found.user_id, found.client_id) for found in answer.imported] == [(PERSON, 1)]
        assert (answer.users[0].phone, answer.users[0].contact) == ("79990100001", True)
        assert await client(send(access_hash=answer.users[0].access_hash))
        assert [user.id for user in (await client(f.contacts.GetContactsRequest(0))).users] == [PERSON]

    async def test_a_contact_is_found_by_his_bare_id_afterwards_and_a_stranger_is_not(self, place: Place) -> None:
        client = await place.user()
        await asked(client, f.contacts.ImportContactsRequest([t.InputPhoneContact(1, "+79990100001", "A", "B")]))
        known, stranger = await client(
            f.users.GetUsersRequest([t.InputUser(PERSON, 0), t.InputUser(PERSON + 1, access_hash=0)])
        )
        assert isinstance(known, t.User)
        assert isinstance(stranger, t.UserEmpty)
        await place.restart()
        await place.restart()
        [still] = await asked(client, f.users.GetUsersRequest([t.InputUser(PERSON, 0)]))
        assert isinstance(still, t.User)

    async def test_telegram_may_want_an_import_to_be_repeated(self, place: Place) -> None:
        client = await place.user()
        place.order("retry_contacts", method="importContacts")
        request = f.contacts.ImportContactsRequest([t.InputPhoneContact(8, "+79990100001", "A", "B")])
        first, again = await client(request), await client(request)
        assert (first.imported, first.retry_contacts) == ([], [8])
        assert (again.imported[0].client_id, again.retry_contacts) == (8, [])

    async def test_a_phone_without_telegram_is_not_imported(self, place: Place) -> None:
        client = await place.user()
        place.order("not_registered", method="importContacts")
        answer = await client(f.contacts.ImportContactsRequest([t.InputPhoneContact(8, "+79990100001", "A", "B")]))
        assert (answer.imported, answer.retry_contacts, answer.users) == ([], [], [])

    async def test_imports_meet_with_floods_of_their_own(self, place: Place) -> None:
        client = await place.user()
        place.order("flood_wait", 50, method="importContacts")
        request = f.contacts.ImportContactsRequest([])
        assert await refusal(client, request) == (420, "FLOOD_WAIT_50")
        place.time += 10
        assert await refusal(client, request) == (420, "FLOOD_WAIT_40")
        note = f.messages.SendMessageRequest(t.InputPeerSelf(), "not held up", random_id=1)
        assert await asked(client, note)
        place.time += 40
        assert await asked(client, request)

    @pytest.mark.parametrize(
        "request_", [f.contacts.ImportContactsRequest([]), f.contacts.ResolvePhoneRequest("+79990100001")]
    )
    async def test_bots_have_no_contacts(self, place: Place, request_: Any) -> None:
        assert await refusal(await place.bot(), request_) == (400, "BOT_METHOD_INVALID")

    async def test_a_phone_is_resolved(self, place: Place) -> None:
        client = await place.user()
        found = await client(f.contacts.ResolvePhoneRequest("+79990100001"))
        assert (found.peer.user_id, found.users[0].phone) == (PERSON, None)
        assert await refusal(client, f.contacts.ResolvePhoneRequest("12")) == (400, "PHONE_NOT_OCCUPIED")

    async def test_a_username_is_resolved(self, place: Place) -> None:
        client = await place.bot()
        assert (await client.get_entity("@user100001")).id == PERSON
        named = await client.get_entity("@ivanov_i")
        assert named.id == (await client.get_entity("@Ivanov_I")).id
        place.order("not_registered", method="resolveUsername")
        request = f.contacts.ResolveUsernameRequest("somebody")
        assert await refusal(client, request) == (400, "USERNAME_NOT_OCCUPIED")
        assert await refusal(client, f.contacts.ResolveUsernameRequest("?")) == (400, "USERNAME_INVALID")

    async def test_a_bot_finds_anybody_by_his_bare_id(self, place: Place) -> None:
        client = await place.bot()
        person = await client.get_entity(PERSON)
        assert (person.id, person.phone) == (PERSON, None)
        full = await client(f.users.GetFullUserRequest(PERSON))
        assert (full.full_user.id, full.users[0].first_name) == (PERSON, person.first_name)

    async def test_a_bot_finds_a_supergroup_by_its_bare_id_and_a_user_does_not(self, place: Place) -> None:
        bot, user = await place.bot(), await place.user()
        request = f.channels.GetChannelsRequest([t.InputChannel(66, access_hash=0)])
        assert await refusal(user, request) == (400, "CHANNEL_INVALID")
        [found] = (await bot(request)).chats
        peer = t.InputPeerChannel(66, found.access_hash)
        assert await bot(f.messages.SendMessageRequest(peer, "all", random_id=1))


class TestNews:
    async def test_a_user_learns_that_a_person_read_everything(self, place: Place) -> None:
        client = await place.user()
        read: list[Any] = []
        client.add_event_handler(lambda event: _heard(read, event), events.Raw(t.UpdateReadHistoryOutbox))
        found = await client(f.contacts.ResolvePhoneRequest("+79990100001"))
        sent = await client(send(access_hash=found.users[0].access_hash))
        assert place.server.mark_read(str(PERSON)) == 1
        await until(lambda: read)
        assert (read[0].peer.user_id, read[0].max_id) == (PERSON, sent.id)

    async def test_bots_never_learn_it_and_nobody_learns_what_he_did_not_send(self, place: Place) -> None:
        client = await place.bot()
        await place.user()
        await client(send())
        assert place.server.mark_read(str(PERSON)) == 0

    @pytest.mark.parametrize("kind", ["bot", "user"])
    async def test_a_person_writes_to_the_account_and_is_answered(self, place: Place, kind: str) -> None:
        client = await getattr(place, kind)()

        @client.on(events.NewMessage)  # type: ignore[untyped-decorator]
        async def answer(event: Any) -> None:
            await event.respond(f"you said {event.raw_text}")

        place.server.write(str(PERSON), "привет")
        await until(lambda: place.texts() == ["you said привет"])

    async def test_a_person_who_wrote_is_known_to_the_account(self, place: Place) -> None:
        client = await place.user()
        request = f.users.GetUsersRequest([t.InputUser(PERSON, 0)])
        assert isinstance((await asked(client, request))[0], t.UserEmpty)
        place.server.write(str(PERSON), "привет")
        assert isinstance((await asked(client, request))[0], t.User)

    async def test_a_person_writes_to_one_account_only_when_it_is_named(self, place: Place) -> None:
        heard: list[tuple[int, str]] = []
        for token in ("1001:sandbox-token", "1002:sandbox-token"):
            client = await place.bot(token)

            @client.on(events.NewMessage)  # type: ignore[untyped-decorator]
            async def note(event: Any, account: int = int(token[:4])) -> None:
                heard.append((account, event.raw_text))

        place.server.write(str(PERSON), "to one", account=1002)
        place.server.write(str(PERSON), "to all")
        await until(lambda: len(heard) == 3)
        assert sorted(heard) == [(1001, "to all"), (1002, "to all"), (1002, "to one")]

    async def test_what_was_missed_while_away_is_fetched_by_the_difference(self, place: Place) -> None:
        client = await place.user()
        state = await client(f.updates.GetStateRequest())
        heard: list[str] = []
        client.add_event_handler(lambda event: _heard(heard, event), events.NewMessage)
        await client.disconnect()
        place.server.write(str(PERSON), "while you were away")
        await client.connect()
        difference = await client(f.updates.GetDifferenceRequest(state.pts, state.date, qts=0))
        assert [message.message for message in difference.new_messages] == ["while you were away"]
        nothing = f.updates.GetDifferenceRequest(difference.state.pts, state.date, qts=0)
        assert isinstance(await client(nothing), t.updates.DifferenceEmpty)

    async def test_a_client_that_wants_no_updates_gets_none(self, place: Place) -> None:
        quiet, loud = await place.bot(receive_updates=False), await place.bot()
        heard: list[str] = []
        for name, client in (("quiet", quiet), ("loud", loud)):
            client.add_event_handler(lambda _, who=name: _heard(heard, who), events.Raw(t.UpdateNewMessage))
        place.server.write(str(PERSON), "hello")
        await until(lambda: heard)
        await quiet.get_me()
        assert heard == ["loud"]


async def _heard(heard: list[Any], what: Any) -> None:
    heard.append(what)
