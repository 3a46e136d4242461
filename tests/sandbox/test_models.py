"""The sandbox's language model and speech services refuse what the real ones refuse, and have their faults."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import ClientError, ClientResponse, ClientSession, FormData

from sandbox.faults import FAULTS
from sandbox.models import KEY, ModelsServer
from sandbox.models.server import AUTHORIZATION_KEY
from sandbox.models.sounds import TONES, UNDERSTOOD
from sandbox.state import Fault, Rule, SandboxState
from tests.support.serving import serving

QUESTION = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
SPEECH = {"model": "m", "input": "Hello", "voice": "nova"}
NEVER = 0.3  # seconds; a normal answer takes less than a hundredth of it


@pytest.fixture
async def models(state: SandboxState) -> AsyncIterator[ModelsServer]:
    async with serving(ModelsServer(state)) as server:
        yield server


class Caller:
    """A plain HTTP client of the models."""

    def __init__(self, models: ModelsServer, session: ClientSession) -> None:
        self._models, self._session = models, session

    async def post(self, path: str, key: str = KEY, **body: Any) -> ClientResponse:
        """Of OpenAI's interface."""
        headers = {"Authorization": f"Bearer {key}"}
        return await self._session.post(f"{self._models.url}{path}", headers=headers, **body)

    async def token(self, key: str = AUTHORIZATION_KEY, request_id: str = "", scope: str = "SALUTE_SPEECH_PERS") -> Any:
        headers = {"Authorization": f"Basic {key}", "RqUID": request_id or str(uuid.uuid4())}
        return await self._session.post(self._models.token_url, headers=headers, data={"scope": scope})

    async def salute(self, path: str, token: str, kind: str, data: bytes, **query: str) -> ClientResponse:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": kind}
        return await self._session.post(f"{self._models.salute_url}/{path}", headers=headers, data=data, params=query)


@pytest.fixture
def caller(models: ModelsServer, session: ClientSession) -> Caller:
    return Caller(models, session)


async def test_the_same_question_has_the_same_answer(caller: Caller) -> None:
    first, again = [await (await caller.post("/chat/completions", json=QUESTION)).json() for _ in range(2)]
    assert first == again
    assert first["choices"][0]["message"] == {"role": "assistant", "content": "Answer to: Hello"}
    assert first["usage"]["total_tokens"] == 4


@pytest.mark.parametrize(
    "change",
    [
        {"model": ""},
        {"model": None},
        {"messages": []},
        {"messages": ["Hello"]},
        {"messages": [{"role": "king", "content": "x"}]},
        {"messages": [{"role": "user", "content": ""}]},
        {"temperature": 2.1},
        {"temperature": "1"},
        {"max_tokens": 0},
        {"max_tokens": 1.5},
        {"tempreature": 1},
    ],
)
async def test_a_malformed_question_is_refused(caller: Caller, change: dict[str, Any]) -> None:
    answer = await caller.post("/chat/completions", json={**QUESTION, **change})
    assert answer.status == 400
    assert (await answer.json())["error"]["message"]


async def test_what_is_not_json_is_refused(caller: Caller) -> None:
    bodies: list[dict[str, Any]] = [{"data": b"{"}, {"json": []}, {"data": b"{}"}]
    for body in bodies:
        assert (await caller.post("/chat/completions", **body)).status == 400


async def test_a_wrong_key_is_refused(caller: Caller) -> None:
    for path in ("/chat/completions", "/audio/speech", "/audio/transcriptions"):
        assert (await caller.post(path, "wrong", json=QUESTION)).status == 401
    assert (await caller.token("wrong")).status == 401


@pytest.mark.parametrize(("form", "name"), [({}, "mp3"), ({"response_format": "opus"}, "opus"),
                                            ({"response_format": "wav"}, "wav")])  # fmt: skip
async def test_speech_is_a_sound_of_the_wanted_format(caller: Caller, form: dict[str, str], name: str) -> None:
    assert await (await caller.post("/audio/speech", json={**SPEECH, **form})).read() == TONES[name]


@pytest.mark.parametrize(
    "change", [{"input": ""}, {"input": "x" * 4097}, {"voice": "Bys_24000"}, {"response_format": "wav16"}, {"model": 5}]
)
async def test_malformed_speech_is_refused(caller: Caller, change: dict[str, Any]) -> None:
    assert (await caller.post("/audio/speech", json={**SPEECH, **change})).status == 400


def recording(name: str = "speech.ogg", content: bytes = TONES["opus"], **fields: str) -> FormData:
    form = FormData({"model": "m", **fields})
    form.add_field("file", content, filename=name)
    return form


async def test_a_recording_becomes_text(caller: Caller) -> None:
    answer = await caller.post("/audio/transcriptions", data=recording(language="en"))
    assert await answer.json() == {"text": UNDERSTOOD["en"]}


async def test_a_malformed_recording_is_refused(caller: Caller) -> None:
    forms = [recording("speech.txt"), recording(content=b""), recording(language="ru-RU"), recording(speed="1")]
    for form in forms:
        assert (await caller.post("/audio/transcriptions", data=form)).status == 400
    assert (await caller.post("/audio/transcriptions", json={"model": "m"})).status == 400


async def test_salute_gives_a_token_speaks_and_understands(caller: Caller, models: ModelsServer) -> None:
    token = (await (await caller.token()).json())["access_token"]
    sound = await caller.salute("text:synthesize", token, "application/text", b"x", format="opus", voice="Bys_24000")
    assert await sound.read() == TONES["opus"]
    text = await caller.salute("speech:recognize", token, "audio/ogg;codecs=opus", TONES["opus"], language="en-US")
    assert (await text.json())["result"] == [UNDERSTOOD["en"]]
    models.tokens.revoke()
    assert (await caller.salute("text:synthesize", token, "application/text", b"x")).status == 401


async def test_salute_refuses_malformed_requests(caller: Caller) -> None:
    assert (await caller.token(request_id="5")).status == 400
    assert (await caller.token(scope="GIGACHAT")).status == 400
    token = (await (await caller.token()).json())["access_token"]
    for kind, data, query in (
        ("text/plain", b"x", {}),
        ("application/text", b"", {}),
        ("application/text", b"x" * 4001, {}),
        ("application/text", b"x", {"format": "mp3"}),
        ("application/text", b"x", {"voice": "alloy"}),
        ("application/ssml", b"x", {}),
    ):
        assert (await caller.salute("text:synthesize", token, kind, data, **query)).status == 400
    for kind, data, language in (
        ("audio/midi", b"x", "ru-RU"),
        ("audio/ogg", b"", "ru-RU"),
        ("audio/ogg", b"x" * (2 * 2**20 + 1), "ru-RU"),
        ("audio/ogg", b"x", "ru"),
    ):
        assert (await caller.salute("speech:recognize", token, kind, data, language=language)).status == 400


@pytest.mark.parametrize(
    ("fault", "status"),
    [("throttled", 429), ("unauthorized", 401), ("server_error", 500), ("bad_gateway", 502), ("not_json", 200),
     ("empty", 200)],
)  # fmt: skip
async def test_the_name_of_a_model_brings_its_fault(caller: Caller, fault: str, status: int) -> None:
    answer = await caller.post("/chat/completions", json={**QUESTION, "model": fault.replace("_", "-")})
    assert answer.status == status
    assert (answer.headers.get("Retry-After") == "1") == (fault == "throttled")
    assert (await answer.read() == b"") == (fault == "empty")


@pytest.mark.parametrize("fault", ["cut", "disconnect_before"])
async def test_a_connection_that_is_closed_gives_no_whole_answer(
    caller: Caller, state: SandboxState, fault: str
) -> None:
    state.add_rule(Rule("models", Fault(fault), method="speech"))
    with pytest.raises(ClientError):
        await (await caller.post("/audio/speech", json=SPEECH)).read()


async def test_a_slow_answer_comes_and_another_does_not(caller: Caller, state: SandboxState) -> None:
    state.add_rule(Rule("models", Fault("slow", 1), method="speech"))
    state.add_rule(Rule("models", Fault("timeout"), method="completion"))
    slow = asyncio.create_task(caller.post("/audio/speech", json=SPEECH))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(NEVER):
            await caller.post("/chat/completions", json=QUESTION)
    assert not slow.done()
    assert await (await slow).read() == TONES["mp3"]


def test_every_fault_is_tested_here() -> None:
    tested = "throttled unauthorized server_error bad_gateway not_json empty cut disconnect_before slow timeout"
    assert set(FAULTS["models"]) == {*tested.split()}
