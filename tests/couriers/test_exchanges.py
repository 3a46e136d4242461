"""What the providers said about a message (D-48): in every channel, over the wire, and never a secret or a text."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from core.deliveries.delivery_reports import Exchange
from core.model.clock import Backoff
from core.model.delivery import Recipient
from core.model.history_key import HistoryKey
from core.model.states import Status
from couriers.email import courier as email
from couriers.max import courier as max_courier
from couriers.provider_calls import LONGEST_WORDS, WordFilter, noted_call, noting_calls, secrets_of
from couriers.sending.services import CourierOptions
from couriers.sms import courier as sms
from couriers.telegram_bot import courier as telegram_bot
from couriers.vk import courier as vk
from sandbox.events import Fault
from tests.couriers.test_one_recipient_delays_no_other import CHANNELS, LONG, SILENT, Served
from tests.support.serving import serving_app
from tests.support.stack import FLOOR, TENANT, Stack

ONCE = CourierOptions(max_sleep=FLOOR, backoff=Backoff(timedelta(milliseconds=1), timedelta(milliseconds=1), 2))
TEXT = "Ваш код 4711, никому его не говорите"
LATER = frozenset({"rate_limit", "slow_mode", "flood_wait", "too_fast"})


@pytest.fixture(params=CHANNELS)
async def served(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Served]:
    async with CHANNELS[request.param](tmp_path) as opened:
        yield opened


def is_waiting(channel: str, fault: Fault) -> bool:
    """Return whether the provider asks this recipient to wait for minutes: flood control of VK, a busy SMS provider."""
    return (channel == "vk" and fault.value == 9) or (channel == "sms" and fault.name == "busy")


async def exchanges(stack: Stack, key: HistoryKey, recipient: str) -> list[Exchange]:
    return await stack.deliveries.exchanges.of_recipient(key, TENANT, recipient)


async def test_whatever_a_provider_answers_its_words_stand_in_the_outcome_and_each_call_in_the_exchange(
    stack: Stack, served: Served
) -> None:
    bad = {address: fault for address, fault in served.bad().items() if fault.name not in SILENT | LATER}
    bad = {address: fault for address, fault in bad.items() if fault.name not in served.paused}
    bad = {address: fault for address, fault in bad.items() if not is_waiting(served.channel, fault)}
    courier = await served.open(LONG)
    runtime = await stack.courier(courier, ONCE)
    people = [Recipient(address, contacts={served.channel: [address]}) for address in bad]
    key = (await stack.deliver(*people, channels=(served.channel,), text=TEXT)).key
    for one in (await stack.finished(key)).recipients:
        outcome = one.outcomes[served.channel]
        said = await exchanges(stack, key, str(one.id))
        if outcome.status in (Status.FAILED, Status.UNKNOWN):
            assert outcome.detail, (bad[str(one.id)], outcome)
            assert said, (bad[str(one.id)], outcome)
            assert said[-1].attempt.detail == outcome.detail
            assert TEXT not in repr(said)
            assert str(one.id) not in repr([each.attempt for each in said])
        for each in said:
            assert each.attempt.calls, (bad[str(one.id)], each)
            assert all(call.method and call.took_ms >= 0 for call in each.attempt.calls)
    await stack.stop(runtime)


# Secrets


@dataclass
class Mirror:
    """A provider that answers each attempt with everything it knows: address, headers, body, token."""

    secrets: Sequence[str]
    settings: Any
    module: Any
    channel: str
    address: str


TOKENS = {
    "vk": "vk1.a.Zx9-_Ab34567890abcdefghijklmnop",
    "telegram-bot": "123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw",
    "max": "f9LHodD0cOJ5BfLGZ81uXgypU1z7PNhJMkmIe_dtEcxfC3V8vxWk65mg",
    "sms": 'p@ss w"ör<d>&1+2%',
    "sms by smsaero": "s3cret/key+of=sms",
    "email": 'gehe:im"ni<s> 7',
}


def _echo(token: str) -> Callable[[web.Request], Any]:
    async def answer(request: web.Request) -> web.Response:
        body = await request.text()
        if request.path.endswith(("/me", "/getMe", "groups.getById")):
            me = {"user_id": 1, "ok": True, "result": {"id": 123456789, "is_bot": True, "first_name": "a"}}
            return web.json_response({**me, "response": {"groups": [{"id": 1}]}})
        if request.path == "/sendsms" and "to" not in request.query:
            return web.Response(status=400, text="Missing receiver number, rejected")
        if "balance" in request.path:
            return web.json_response({"success": True, "data": {"balance": 100}})
        encoded = base64.b64encode(token.encode()).decode()
        said = f"{token} {encoded} {request.url} {request.raw_headers!r} {body} access_token={token}&x=1"
        error = {"error_code": 100, "error_msg": said, "code": 100}
        if "execute" in request.path:
            return web.json_response({"error": error})
        known = {"ok": False, "error_code": 400, "description": said, "code": "proto.payload", "message": said}
        return web.json_response(known, status=400)

    return answer


@asynccontextmanager
async def _mail_mirror(password: str) -> AsyncIterator[int]:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard = ""
        writer.write(b"220 mirror\r\n")
        while line := (await reader.readline()).decode(errors="replace"):
            heard += line.strip() + " "
            verb = line[:4].upper()
            plain = base64.b64encode(password.encode()).decode()
            refusal = f"550 5.1.1 <{line.strip()}> {password} {plain} {heard}\r\n"
            answers = {"EHLO": "250-mirror\r\n250 AUTH PLAIN\r\n", "AUTH": "235 ok\r\n", "RCPT": refusal}
            writer.write(answers.get(verb, "250 ok\r\n").encode())
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    server.close()


@asynccontextmanager
async def _mirror(name: str) -> AsyncIterator[Mirror]:
    token = TOKENS[name]
    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", _echo(token))
    async with serving_app(app) as url, _mail_mirror(token) as port:
        channel = name.split(" ", maxsplit=1)[0]
        quoted = "".join(f"%{byte:02X}" for byte in token.encode())
        found: dict[str, tuple[Any, Any, str]] = {
            "vk": (vk, lambda: vk.Settings(token, f"{url}/method/"), "200001"),
            "telegram-bot": (telegram_bot, lambda: telegram_bot.Settings(token, url), "100001"),
            "max": (max_courier, lambda: max_courier.Settings(token, url), "300001"),
            "sms": (sms, lambda: sms.Settings(f"{url}/sendsms", "ada", token, "Ada"), "+79990000001"),
            "sms by smsaero": (
                sms,
                lambda: sms.Settings(url, "ada", token, "Ada", profile="smsaero"),
                "+79990000001",
            ),
            "email": (
                email,
                lambda: email.Settings(f"smtp://ada:{quoted}@127.0.0.1:{port}?starttls=off"),
                "anna@example.org",
            ),
        }
        module, settings, address = found[name]
        yield Mirror((token,), settings(), module, channel, address)


def forms(secret: str) -> list[str]:
    part = secret.rpartition(":")[2]
    plain = [secret, part if len(part) > 8 else secret, json.dumps(secret)[1:-1]]
    encoded = base64.b64encode(secret.encode()).decode().rstrip("=")
    return [*plain, "".join(f"%{byte:02X}" for byte in secret.encode()), encoded]


@pytest.mark.parametrize("name", TOKENS)
async def test_a_token_in_the_answer_of_a_provider_stands_in_no_key_outcome_exchange_and_log_line(
    stack: Stack, name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with _mirror(name) as mirror:
        courier = await mirror.module.open(mirror.settings, tmp_path)
        options = replace(ONCE, secrets=secrets_of(mirror.settings))
        runtime = await stack.courier(courier, options)
        recipient = Recipient("7", contacts={mirror.channel: [mirror.address]})
        key = (await stack.deliver(recipient, channels=(mirror.channel,), text=TEXT)).key
        (record,) = (await stack.finished(key)).recipients
        said = await exchanges(stack, key, "7")
        await stack.stop(runtime)
    outcome = record.outcomes[mirror.channel]
    assert outcome.status is Status.FAILED
    assert outcome.detail
    assert said
    kept = "\n".join([repr(await stack.dump()), caplog.text, repr(said), repr(outcome)])
    for secret in mirror.secrets:
        assert [form for form in forms(secret) if form in kept] == []
    assert mirror.channel in caplog.text
    shown = "\n".join([caplog.text, repr(said), repr(outcome)])
    assert TEXT not in shown
    assert "4711" not in shown
    assert mirror.address not in shown


SECRETS = st.text(st.characters(min_codepoint=33, max_codepoint=0x2FF, categories=("L", "N", "P", "S")), min_size=8)
PARTS = st.text(st.characters(categories=("L", "N", "P", "S", "Z")), max_size=60)


@given(SECRETS, PARTS, PARTS, st.integers(0, 4))
def test_a_secret_is_hidden_wherever_it_stands(secret: str, before: str, after: str, form: int) -> None:
    written = [*forms(secret)][form]
    words = WordFilter([secret]).clean(f"{before}{written}{after}")
    assert len(words) <= LONGEST_WORDS
    if secret not in f"{before}{after}":
        assert secret not in words


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("Bad Request: chat not found", "Bad Request: chat not found"),
        ("FLOOD_TEST_PHONE_WAIT_120", "FLOOD_TEST_PHONE_WAIT_120"),
        ("error.dialog.suspended", "error.dialog.suspended"),
        (
            "Telegram does not accept the token: check ADA_BOT_TOKEN",
            "Telegram does not accept the token: check ADA_BOT_TOKEN",
        ),
        ("<html><title>502 Bad Gateway</title></html>", "502 Bad Gateway"),
        ("see https://sms.example/send?key=1&text=hello now", "see https://sms.example/send?… now"),
        ("https://ada:secret@mail.example/", "https://…@mail.example/"),
        ('{"access_token": "abc", "n": 1}', '{"access_token": "…", "n": 1}'),
        ("password=abc", "password=…"),
        ("Неверный пароль: qwerty12", "Неверный пароль: …"),
        ("Authorization: Bearer abcdefgh12", "Authorization: Bearer …"),
        ("id 5f4dcc3b5aa765d61d8327deb882cf99 unknown", "id … unknown"),
        ("550 5.1.1 <anna@example.org> user\r\nunknown", "550 5.1.1 <…> user unknown"),
    ],
)
def test_what_a_provider_says_stays_readable(words: str, shown: str) -> None:
    assert WordFilter([]).clean(words, ["anna@example.org"]) == shown


async def test_a_call_is_noted_only_within_an_attempt_and_a_fault_by_its_name() -> None:
    with noted_call("before"):
        pass
    with noting_calls() as calls:
        with pytest.raises(TimeoutError), noted_call("send") as call:
            raise TimeoutError("with a token")
        for number in range(20):
            with noted_call(f"call {number}"):
                pass
    assert (call.status, call.words) == (0, "TimeoutError")
    assert len(calls) == 12
    assert (calls[0].method, calls[-1].method) == ("send", "call 19")


def test_the_secrets_of_all_settings_are_known() -> None:
    known = {
        *secrets_of(telegram_bot.Settings("1:token", webhook_secret="hook")),
        *secrets_of(sms.Settings("https://h/?key=in-url", "ada", "word", "Ada")),
        *secrets_of(email.Settings("smtp://ada:p%40ss@h")),
    }
    assert known >= {"1:token", "hook", "in-url", "word", "ada:word", "p@ss", "ada:p@ss"}
