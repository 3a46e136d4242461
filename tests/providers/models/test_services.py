"""Services over HTTP, against the sandbox: right answers, refusals, repeats, limits."""

import asyncio
import time
from datetime import timedelta
from pathlib import Path

import pytest
from aiohttp import web

from core.errors import SetupError
from providers.models import (
    AiAnswerInvalid,
    AiError,
    AiRefused,
    AiUnavailable,
    Completion,
    LanguageModel,
    Prompt,
    SoundFormat,
    Speech,
    Synthesis,
    Transcription,
)
from providers.models.http_client import LONGEST_WAIT, ModelHttpClient, ModelRequest, complaint_of
from providers.models.openai import OpenAi
from providers.models.salute import Salute, SaluteTokens
from sandbox.http_listener import HttpListener
from sandbox.models import KEY, MODEL, ModelsServer
from sandbox.models.sounds import TONES, UNDERSTOOD
from sandbox.state import Fault, Rule, SandboxState
from tests.providers.models.conftest import MINUTE, QUICK, probe

LONG = b'{"choices": [{"message": {"content": "' + b"x" * 300_000 + b'"}}]}'
HELLO = Prompt("Hello there", system="Be short.")


async def test_a_prompt_is_answered(openai: LanguageModel) -> None:
    assert await openai.complete(HELLO) == Completion("Answer to: Hello there", MODEL, 8)


async def test_model_temperature_and_length_are_those_of_the_prompt(openai: LanguageModel) -> None:
    answer = await openai.complete(Prompt("one two three", model="other", temperature=0.5, max_tokens=3))
    assert (answer.text, answer.model) == ("Answer to: one", "other")
    with pytest.raises(AiRefused, match="answered 400: temperature must be from 0 to 2") as error:
        await openai.complete(Prompt("x", temperature=3))
    assert error.value.code == "REQUEST_REFUSED"


@pytest.mark.parametrize("name", ["openai", "salute"])
@pytest.mark.parametrize("sound_format", [SoundFormat.OGG_OPUS, SoundFormat.WAV])
async def test_a_service_speaks(
    openai: Synthesis, salute: Synthesis, tmp_path: Path, name: str, sound_format: SoundFormat
) -> None:
    service = openai if name == "openai" else salute
    await service.synthesize(Speech("Привет", format=sound_format), tmp_path / "speech")
    assert (tmp_path / "speech").read_bytes() == TONES["opus" if sound_format is SoundFormat.OGG_OPUS else "wav"]


@pytest.mark.usefixtures("programs")
async def test_mp3_of_salute_is_converted_here(salute: Synthesis, openai: Synthesis, tmp_path: Path) -> None:
    await salute.synthesize(Speech("Привет", format=SoundFormat.MP3), tmp_path / "converted")
    await openai.synthesize(Speech("Привет", format=SoundFormat.MP3), tmp_path / "given")
    assert [probe(tmp_path / name)["codec_name"] for name in ("converted", "given")] == ["mp3", "mp3"]


async def test_ssml_reaches_the_service_that_understands_it(
    salute: Synthesis, openai: Synthesis, tmp_path: Path
) -> None:
    await salute.synthesize(Speech("<speak>Раз</speak>", ssml=True), tmp_path / "speech")
    with pytest.raises(AiRefused, match="SSML must begin with <speak>"):
        await salute.synthesize(Speech("Раз", ssml=True), tmp_path / "speech")
    with pytest.raises(AiRefused, match="does not understand SSML"):
        await openai.synthesize(Speech("<speak>Раз</speak>", ssml=True), tmp_path / "speech")


@pytest.mark.parametrize("name", ["openai", "salute"])
@pytest.mark.parametrize("language", ["ru-RU", "en-US"])
async def test_a_service_understands_speech(
    openai: Transcription, salute: Transcription, tmp_path: Path, name: str, language: str
) -> None:
    service = openai if name == "openai" else salute
    (tmp_path / "speech.ogg").write_bytes(TONES["opus"])
    assert await service.transcribe(tmp_path / "speech.ogg", language) == UNDERSTOOD[language[:2]]


async def test_concurrent_calls_ask_for_one_token(salute: Synthesis, state: SandboxState, tmp_path: Path) -> None:
    await asyncio.gather(*(salute.synthesize(Speech("x"), tmp_path / f"{number}") for number in range(5)))
    assert (state.counter("models", "token"), state.counter("models", "synthesize")) == (1, 5)


async def test_a_token_is_replaced_before_its_end(
    salute: Synthesis, service: ModelsServer, state: SandboxState, tmp_path: Path
) -> None:
    service.tokens.lifetime = 30.0  # less than the minute before its end in which a token is not used
    for _ in range(2):
        await salute.synthesize(Speech("x"), tmp_path / "speech")
    assert state.counter("models", "token") == 2


async def test_a_token_that_the_service_refuses_is_replaced_once(
    salute: Synthesis, service: ModelsServer, state: SandboxState, tmp_path: Path
) -> None:
    await salute.synthesize(Speech("x"), tmp_path / "speech")
    service.tokens.revoke()
    await salute.synthesize(Speech("x"), tmp_path / "speech")
    assert state.counter("models", "token") == 2
    state.add_rule(Rule("models", Fault("unauthorized"), method="synthesize"))
    with pytest.raises(AiRefused, match="refuses the key"):
        await salute.synthesize(Speech("x"), tmp_path / "speech")
    assert state.counter("models", "token") == 3


@pytest.mark.parametrize("fault", ["server_error", "bad_gateway", "cut", "disconnect_before"])
async def test_what_may_succeed_later_is_repeated(openai: LanguageModel, state: SandboxState, fault: str) -> None:
    state.add_rule(Rule("models", Fault(fault), times=3))
    assert (await openai.complete(HELLO)).text == "Answer to: Hello there"
    assert state.counter("models", "completion") == 4


@pytest.mark.parametrize(
    ("fault", "error", "code", "calls"),
    [
        (Fault("server_error"), AiUnavailable, "SERVICE_FAILED", 4),
        (Fault("throttled", 0), AiUnavailable, "SERVICE_THROTTLED", 4),
        (Fault("throttled", LONGEST_WAIT + 1), AiUnavailable, "SERVICE_THROTTLED", 1),
        (Fault("cut"), AiUnavailable, "SERVICE_UNREACHABLE", 4),
        (Fault("disconnect_before"), AiUnavailable, "SERVICE_UNREACHABLE", 4),
        (Fault("unauthorized"), AiRefused, "KEY_REFUSED", 1),
        (Fault("not_json"), AiAnswerInvalid, "ANSWER_INVALID", 1),
        (Fault("empty"), AiAnswerInvalid, "ANSWER_INVALID", 1),
    ],
)
async def test_a_fault_that_stays_is_an_error_with_a_code(
    openai: LanguageModel, state: SandboxState, fault: Fault, error: type[AiError], code: str, calls: int
) -> None:
    state.add_rule(Rule("models", fault))
    with pytest.raises(error) as raised:
        await openai.complete(HELLO)
    assert raised.value.code == code
    assert state.counter("models", "completion") == calls
    assert KEY not in str(raised.value)


async def test_the_pause_that_a_throttled_service_names_is_kept(openai: LanguageModel, state: SandboxState) -> None:
    state.add_rule(Rule("models", Fault("throttled", 1), times=1))
    began = time.monotonic()
    await openai.complete(HELLO)
    assert time.monotonic() - began >= 1


async def test_an_answer_that_does_not_come_in_time_is_not_repeated(service: ModelsServer, state: SandboxState) -> None:
    state.add_rule(Rule("models", Fault("timeout")))
    client = ModelHttpClient("the service", "ADA_KEY", timedelta(seconds=0.2), backoff=QUICK)
    with pytest.raises(AiUnavailable, match="did not answer within"):
        await OpenAi(client, service.url, KEY, MODEL).complete(HELLO)
    await client.close()
    assert state.counter("models", "completion") <= 1


async def test_a_wrong_key_is_named_by_its_setting_and_not_shown(
    client: ModelHttpClient, service: ModelsServer
) -> None:
    with pytest.raises(AiRefused, match="set ADA_KEY") as error:
        await OpenAi(client, service.url, "wrong-secret", MODEL).complete(HELLO)
    assert "wrong-secret" not in str(error.value)
    tokens = SaluteTokens(client, service.token_url, "wrong-secret", "SALUTE_SPEECH_PERS")
    with pytest.raises(AiRefused, match="set ADA_KEY"):
        await Salute(client, tokens, service.salute_url).transcribe(Path(__file__), "ru-RU")


async def test_a_service_that_is_not_there_is_unreachable(client: ModelHttpClient) -> None:
    with pytest.raises(AiUnavailable) as error:
        await OpenAi(client, "http://127.0.0.1:9/v1", KEY, MODEL).complete(HELLO)
    assert error.value.code == "SERVICE_UNREACHABLE"


class OtherServer(HttpListener):
    """Answers each POST with one body, or a redirect."""

    def __init__(self, body: bytes, status: int = 200) -> None:
        app = web.Application()
        app.router.add_post("/{path:.*}", self._answer)
        super().__init__(app, "127.0.0.1", 0, "")
        self._body, self._status, self.calls = body, status, 0

    async def _answer(self, _: web.Request) -> web.Response:
        self.calls += 1
        return web.Response(body=self._body, status=self._status, headers={"Location": "/elsewhere"})


@pytest.mark.parametrize(
    "body",
    [b"[]", b"{}", b'{"choices": []}', b'{"choices": [{"message": {"content": null}}]}', b'{"choices": 5}', b"7",
     b'{"choices": [{"message": {"content": "  "}}]}', LONG],
)  # fmt: skip
async def test_an_answer_that_has_no_message_or_is_too_long_is_an_error(client: ModelHttpClient, body: bytes) -> None:
    server = OtherServer(body)
    await server.start()
    try:
        with pytest.raises(AiAnswerInvalid, match="longer than 262144 bytes" if body == LONG else "cannot be used"):
            await OpenAi(client, server.url, KEY, MODEL).complete(HELLO)
    finally:
        await server.stop()


async def test_a_redirect_is_not_followed_because_it_would_carry_the_key_away(client: ModelHttpClient) -> None:
    server = OtherServer(b"{}", status=307)
    await server.start()
    try:
        with pytest.raises(AiRefused, match="answered 307"):
            await client.post(ModelRequest(server.url, {}, dict))
        assert server.calls == 1
    finally:
        await server.stop()


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (b'{"error": {"message": "too long"}}', ": too long"),
        (b'{"status": 400, "message": "no voice"}', ": no voice"),
        (b'{"error": "plain"}', ": plain"),
        (b"<html>", ""),
        (b"[1]", ""),
        (b'{"error": {"message": "' + b"x" * 1000 + b'"}}', ": " + "x" * 200),
    ],
)
def test_the_complaint_of_a_service_is_shortened(body: bytes, complaint: str) -> None:
    assert complaint_of(body) == complaint


def test_a_file_of_certificates_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"ADA_SPEECH_CA is .*missing"):
        ModelHttpClient("the service", "ADA_KEY", MINUTE, ca=tmp_path / "missing")


def test_a_request_does_not_show_its_key_and_text() -> None:
    request = ModelRequest("http://h", {"Authorization": "secret"}, lambda: {"data": "private"})
    assert "secret" not in repr(request)
    assert "private" not in repr(request)
