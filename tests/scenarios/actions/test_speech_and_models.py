"""The actions to_speech, from_speech and completion, with real programs and the sandbox's services."""

from collections.abc import AsyncIterator, Awaitable, Mapping
from pathlib import Path
from typing import Any

import pytest

from core.errors import Refused
from couriers.telegram_bot.client import NamedCalls
from couriers.telegram_bot.library import types
from providers.models import AiError, Models
from providers.models.openai import OpenAi
from providers.models.programs import Espeak
from sandbox.bot_api import BotApiServer
from sandbox.models import MODEL
from sandbox.models.sounds import TONES, UNDERSTOOD
from sandbox.state import Fault, Rule, SandboxState
from scenarios.actions import models as actions_of_models
from scenarios.actions import own_actions
from scenarios.actions.models import COMPLETION, FROM_SPEECH, TO_SPEECH
from scenarios.engine import Ending, State
from tests.providers.models.conftest import MINUTE, client, models_in, openai, probe, programs, salute, service, state
from tests.scenarios.actions.contexts import EVENT, context_of, executed
from tests.support.serving import serving

__all__ = ["client", "openai", "programs", "salute", "service", "state"]


@pytest.fixture
def models(openai: OpenAi, tmp_path: Path) -> Models:
    """The language model and the transcription of the sandbox, and speech by espeak-ng."""
    return models_in(tmp_path / "data", openai, Espeak("", MINUTE), openai)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The bot's folder, with a sound file."""
    (tmp_path / "bot" / "speech").mkdir(parents=True)
    (tmp_path / "bot" / "speech" / "hello.mp3").write_bytes(TONES["mp3"])
    return tmp_path / "bot"


def results(ending: Ending) -> Mapping[str, Any]:
    assert (ending.state, ending.error) == (State.COMPLETED, "")
    return ending.returned.results


async def error(execution: Awaitable[Ending]) -> str:
    """The error of an action that fails, as later actions see it."""
    with pytest.raises((AiError, Refused)) as raised:
        await execution
    assert isinstance(raised.value, AiError | Refused)
    return f"{raised.value.code}: {raised.value}"


@pytest.mark.parametrize("name", ["completion", "gigachat"])
async def test_an_answer_in_markdown_is_ready_for_both_parse_modes(models: Models, folder: Path, name: str) -> None:
    ending = await executed(own_actions()[name], context_of(folder, models, {"user_message": "**1.5** <b>"}))
    texts = {name: text for name, text in results(ending).items() if name.startswith("response_text")}
    assert texts == {
        "response_text": "Answer to: **1.5** <b>",
        "response_text_html": "Answer to: <b>1.5</b> &lt;b&gt;",
        "response_text_md2": "Answer to: *1\\.5* <b\\>",
    }
    assert ending.returned.from_person == texts.keys()


@pytest.mark.usefixtures("programs")
async def test_to_speech_gives_a_file_that_the_next_send_may_attach(models: Models, folder: Path) -> None:
    written = {"text_to_speech": "Привет, {name}!", "voice": "Bys_24000", "placeholder": True}
    context = context_of(folder, models, written, results={"name": "Анна"})
    file = Path(results(await executed(TO_SPEECH, context))["file_path"])
    assert file.is_absolute()
    assert any(file.is_relative_to(allowed) for allowed in context.folders)
    assert (probe(file)["codec_name"], file.suffix) == ("opus", ".ogg")


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize(
    ("written", "codec"), [("opus", "opus"), ("oggopus", "opus"), ("wav", "pcm_s16le"), ("mp3", "mp3")]
)
async def test_to_speech_speaks_a_text_of_the_chain_in_the_wanted_format(
    models: Models, folder: Path, written: str, codec: str
) -> None:
    context = context_of(folder, models, {"format": written}, results={"text_to_speech": "Привет"})
    assert probe(Path(results(await executed(TO_SPEECH, context))["file_path"]))["codec_name"] == codec


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ({"text_to_speech": "x" * 4001}, "TEXT_TOO_LONG: the text has 4001 characters, more than 4000"),
        ({"text_to_speech": "xxx", "max_text_length": 2}, "TEXT_TOO_LONG"),
        ({"text_to_speech": ""}, "TEXT_EMPTY"),
        ({}, "TEXT_EMPTY"),
        ({"text_to_speech": "x", "format": "flac"}, "FIELD_INVALID: format: 'flac' is not oggopus, wav or mp3"),
        ({"text_to_speech": "x", "max_text_length": 0}, "FIELD_INVALID: max_text_length"),
        ({"text_to_speech": "x", "cache_max_age": "soon"}, "FIELD_INVALID: cache_max_age: 'soon' is not a duration"),
    ],
)
async def test_to_speech_fails_with_a_complaint(
    models: Models, folder: Path, written: Mapping[str, Any], complaint: str
) -> None:
    assert (await error(executed(TO_SPEECH, context_of(folder, models, written)))).startswith(complaint)


async def test_without_espeak_only_to_speech_fails(
    models: Models, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    execution = executed(TO_SPEECH, context_of(folder, models, {"text_to_speech": "x"}))
    assert await error(execution) == "PROGRAM_MISSING: espeak-ng is not installed; install the package espeak-ng"
    answer = await executed(COMPLETION, context_of(folder, models, {"user_message": "x"}))
    assert results(answer)["response_text"] == "Answer to: x"


@pytest.mark.usefixtures("programs")
async def test_the_same_speech_is_the_same_file_unless_a_new_one_is_wanted(models: Models, folder: Path) -> None:
    context = context_of(folder, models, {"text_to_speech": "Привет"})
    first, again = [Path(results(await executed(TO_SPEECH, context))["file_path"]) for _ in range(2)]
    made = first.stat().st_ino
    assert first == again
    assert again.stat().st_ino == made
    await executed(TO_SPEECH, context_of(folder, models, {"text_to_speech": "Привет", "cache_max_age": "0s"}))
    assert first.stat().st_ino != made


# from_speech


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize(("language", "text"), [({}, UNDERSTOOD["ru"]), ({"language": "en-US"}, UNDERSTOOD["en"])])
async def test_from_speech_reads_a_file_of_the_bot(
    models: Models, folder: Path, language: Mapping[str, Any], text: str
) -> None:
    context = context_of(folder, models, {"audio_file": "speech/hello.mp3", **language})
    ending = await executed(FROM_SPEECH, context)
    assert results(ending) == {"speech_to_text": text}
    assert ending.returned.from_person == {"speech_to_text"}


@pytest.mark.usefixtures("programs")
async def test_from_speech_reads_what_to_speech_made(models: Models, folder: Path) -> None:
    file = results(await executed(TO_SPEECH, context_of(folder, models, {"text_to_speech": "Привет"})))["file_path"]
    ending = await executed(FROM_SPEECH, context_of(folder, models, {"audio_file": file}))
    assert results(ending) == {"speech_to_text": UNDERSTOOD["ru"]}


@pytest.fixture
async def bot_api(state: SandboxState) -> AsyncIterator[BotApiServer]:
    async with serving(BotApiServer(state)) as server:
        yield server


@pytest.fixture
async def telegram(bot_api: BotApiServer) -> AsyncIterator[NamedCalls]:
    client = NamedCalls(bot_api.token, bot_api.url)
    yield client
    await client.close()


async def uploaded(telegram: NamedCalls, folder: Path, content: bytes) -> str:
    """The id of a voice message in Telegram."""
    file = folder / "voice.ogg"
    file.write_bytes(content)
    message = await telegram.call("sendVoice", chat_id=7, voice=types.FSInputFile(file))
    return str(message["voice"]["file_id"])


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("kind", ["voice", "audio", "document", "audio_file_id"])
async def test_from_speech_reads_a_voice_message_of_telegram(
    models: Models, folder: Path, telegram: NamedCalls, kind: str
) -> None:
    file_id = await uploaded(telegram, folder, TONES["opus"])
    attachment = {"type": kind, "file_id": file_id, **({"mime_type": "audio/ogg"} if kind == "document" else {})}
    photo = {"type": "photo", "file_id": "a"}
    by_id = kind == "audio_file_id"
    event = EVENT if by_id else {**EVENT, "attachments": [photo, attachment]}
    written = {"audio_file_id": file_id} if by_id else {}
    context = context_of(folder, models, written, event=event, telegram=telegram)
    assert results(await executed(FROM_SPEECH, context)) == {"speech_to_text": UNDERSTOOD["ru"]}


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ({"audio_file": "../secret.mp3"}, "AUDIO_FILE_OUTSIDE"),
        ({"audio_file": "/etc/passwd"}, "AUDIO_FILE_OUTSIDE"),
        ({"audio_file": "speech/none.mp3"}, "AUDIO_FILE_NOT_FOUND"),
        ({"audio_file": "bot.yaml"}, "PROGRAM_FAILED: ffprobe"),
        ({"audio_file": "speech/hello.mp3", "max_audio_duration": "soon"}, "FIELD_INVALID: max_audio_duration"),
        ({"audio_file": "speech/hello.mp3", "cache_max_age": "x"}, "FIELD_INVALID: cache_max_age"),
        ({"audio_file_id": "unknown"}, "AUDIO_FILE_NOT_FOUND"),
        ({}, "AUDIO_MISSING"),
        ({"attachments": [{"type": "voice"}]}, "AUDIO_MISSING"),
        ({"attachments": "x"}, "AUDIO_MISSING"),
    ],
)
async def test_from_speech_fails_with_a_complaint(
    models: Models, folder: Path, telegram: NamedCalls, written: Mapping[str, Any], complaint: str
) -> None:
    (folder / "bot.yaml").write_text("roles: {}")
    (folder.parent / "secret.mp3").write_bytes(TONES["mp3"])
    execution = executed(FROM_SPEECH, context_of(folder, models, written, telegram=telegram))
    assert (await error(execution)).startswith(complaint)


async def test_a_file_of_telegram_that_is_too_large_is_not_downloaded(
    models: Models, folder: Path, telegram: NamedCalls, monkeypatch: pytest.MonkeyPatch
) -> None:
    file_id = await uploaded(telegram, folder, TONES["opus"])
    monkeypatch.setattr(actions_of_models, "MOST_BYTES", 1000)
    context = context_of(folder, models, {"audio_file_id": file_id}, telegram=telegram)
    assert (await error(executed(FROM_SPEECH, context))).startswith("AUDIO_TOO_LARGE")


async def test_a_failure_of_telegram_does_not_show_the_token(
    models: Models, folder: Path, telegram: NamedCalls, state: SandboxState
) -> None:
    state.add_rule(Rule("telegram-bot", Fault("not_json"), method="getFile"))
    context = context_of(folder, models, {"audio_file_id": "x"}, telegram=telegram)
    assert await error(executed(FROM_SPEECH, context)) == "AUDIO_UNAVAILABLE: Telegram did not send the file"


async def test_without_a_service_from_speech_fails_and_says_so(folder: Path, tmp_path: Path) -> None:
    context = context_of(folder, models_in(tmp_path), {"audio_file": "speech/hello.mp3"})
    assert await error(executed(FROM_SPEECH, context)) == "NOT_SET_UP: nothing is set up"


async def test_a_voice_message_of_another_channel_cannot_be_fetched(models: Models, folder: Path) -> None:
    event = {**EVENT, "channel": "vk", "attachments": [{"type": "voice", "file_id": "1"}]}
    execution = executed(FROM_SPEECH, context_of(folder, models, {}, event=event))
    assert (await error(execution)).startswith("AUDIO_NOT_FETCHABLE")


# completion


async def test_a_completion_answers_the_message(models: Models, folder: Path) -> None:
    written = {"system_prompt": "Be short.", "user_message": "{event_text}", "placeholder": True}
    ending = await executed(COMPLETION, context_of(folder, models, written))
    answer = {"response_text": "Answer to: Привет", "model_used": MODEL, "tokens_used": 6}
    assert answer.items() <= results(ending).items()


async def test_the_options_of_a_completion_may_be_texts(models: Models, folder: Path) -> None:
    written = {"user_message": "one two", "model": "big", "temperature": "0.5", "max_tokens": "3"}
    ending = await executed(COMPLETION, context_of(folder, models, written))
    answer = {"response_text": "Answer to: one", "model_used": "big", "tokens_used": 5}
    assert answer.items() <= results(ending).items()


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ({}, "TEXT_EMPTY: user_message is empty"),
        ({"user_message": "x", "temperature": "warm"}, "FIELD_INVALID: temperature"),
        ({"user_message": "x", "temperature": "nan"}, "FIELD_INVALID: temperature"),
        ({"user_message": "x", "temperature": 9}, "REQUEST_REFUSED: the service answered 400"),
        ({"user_message": "x", "max_tokens": 1.5}, "FIELD_INVALID: max_tokens"),
        ({"user_message": "x", "model": "unauthorized"}, "KEY_REFUSED: the service refuses the key; set ADA_KEY"),
        ({"user_message": "x", "model": "bad-gateway"}, "SERVICE_FAILED: the service answered 502"),
    ],
)
async def test_a_completion_fails_with_a_complaint(
    models: Models, folder: Path, written: Mapping[str, Any], complaint: str
) -> None:
    assert (await error(executed(COMPLETION, context_of(folder, models, written)))).startswith(complaint)


async def test_the_same_question_of_a_bot_is_asked_once_unless_a_new_answer_is_wanted(
    models: Models, folder: Path, state: SandboxState
) -> None:
    for _ in range(3):
        await executed(COMPLETION, context_of(folder, models, {"user_message": "x"}))
    assert state.counter("models", "completion") == 1
    await executed(COMPLETION, context_of(folder, models, {"user_message": "x", "cache_max_age": 0}))
    assert state.counter("models", "completion") == 2


def test_the_slow_actions_have_tubes_of_their_own() -> None:
    tubes = [kind.tube for kind in (TO_SPEECH, FROM_SPEECH, COMPLETION)]
    assert tubes == ["scenarios.speech", "scenarios.speech", "scenarios.models"]
