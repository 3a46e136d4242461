"""What callers use: services behind the cache, ten calls at once, what is not set up."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from providers.models import AiNotSetUp, AiRefused, Prompt, SoundFormat, Speech
from providers.models.models import AT_ONCE
from providers.models.openai import OpenAi
from sandbox.models.sounds import TONES, UNDERSTOOD
from sandbox.state import Fault, Rule, SandboxState
from tests.providers.models.conftest import NONE, models_in
from tests.support.waiting import until

LONGEST = timedelta(minutes=1)


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    """Any sound file of a person."""
    file = tmp_path / "recording"
    file.write_bytes(TONES["mp3"])
    return file


async def test_the_same_question_is_asked_once(openai: OpenAi, state: SandboxState, tmp_path: Path) -> None:
    first = await models_in(tmp_path, openai).complete(Prompt("x"))
    assert await models_in(tmp_path, openai).complete(Prompt("x")) == first  # another process
    assert state.counter("models", "completion") == 1


@pytest.mark.parametrize(
    "other", [Prompt("y"), Prompt("x", system="s"), Prompt("x", model="m"), Prompt("x", temperature=0.5),
              Prompt("x", max_tokens=5)],
)  # fmt: skip
async def test_another_question_is_asked(openai: OpenAi, state: SandboxState, tmp_path: Path, other: Prompt) -> None:
    models = models_in(tmp_path, openai)
    await models.complete(Prompt("x"))
    await models.complete(other)
    assert state.counter("models", "completion") == 2


async def test_the_same_speech_is_made_once_and_other_speech_anew(
    openai: OpenAi, state: SandboxState, tmp_path: Path
) -> None:
    models = models_in(tmp_path, synthesis=openai)
    same = [await models.synthesize(Speech("x")) for _ in range(2)]
    assert same[0] == same[1]
    assert same[0].read_bytes() == TONES["opus"]
    others = [Speech("y"), Speech("x", "nova"), Speech("x", format=SoundFormat.WAV)]
    assert len({same[0], *[await models.synthesize(speech) for speech in others]}) == 4
    assert state.counter("models", "speech") == 4
    await models.synthesize(Speech("x"), timedelta(0))
    assert state.counter("models", "speech") == 5


@pytest.mark.usefixtures("programs")
async def test_the_same_recording_is_listened_to_once(
    openai: OpenAi, state: SandboxState, tmp_path: Path, sound: Path
) -> None:
    models = models_in(tmp_path, transcription=openai)
    copy = tmp_path / "copy"
    copy.write_bytes(sound.read_bytes())
    assert [await models.transcribe(file, "ru-RU", LONGEST) for file in (sound, copy)] == [UNDERSTOOD["ru"]] * 2
    assert state.counter("models", "transcription") == 1
    assert await models.transcribe(sound, "en-US", LONGEST) == UNDERSTOOD["en"]
    assert state.counter("models", "transcription") == 2


@pytest.mark.usefixtures("programs")
async def test_speech_that_is_too_long_is_refused_before_it_is_sent(
    openai: OpenAi, state: SandboxState, tmp_path: Path, sound: Path
) -> None:
    with pytest.raises(AiRefused, match="the speech takes 1 s, more than 0 s") as error:
        await models_in(tmp_path, transcription=openai).transcribe(sound, "ru-RU", timedelta(milliseconds=400))
    assert error.value.code == "SOUND_TOO_LONG"
    assert state.counter("models", "transcription") == 0


async def test_at_most_ten_calls_of_a_kind_run_at_once_and_a_stored_answer_waits_for_none(
    openai: OpenAi, state: SandboxState, tmp_path: Path
) -> None:
    models = models_in(tmp_path, openai, openai)
    await models.complete(Prompt("stored"))
    state.add_rule(Rule("models", Fault("slow", 60), method="completion"))
    calls = [asyncio.create_task(models.complete(Prompt(f"{number}"))) for number in range(AT_ONCE + 5)]
    await until(lambda: state.counter("models", "waiting") == AT_ONCE)
    assert (await models.complete(Prompt("stored"))).text == "Answer to: stored"
    await models.synthesize(Speech("x"))  # another kind
    assert state.counter("models", "completion") == 1 + AT_ONCE
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    await until(lambda: state.counter("models", "waiting") == 0)


async def test_what_is_not_set_up_is_an_error_of_the_call(tmp_path: Path, sound: Path) -> None:
    models = models_in(tmp_path)
    with pytest.raises(AiNotSetUp, match="nothing is set up"):
        await models.complete(Prompt("x"))
    with pytest.raises(AiNotSetUp):
        await models.synthesize(Speech("x"))
    with pytest.raises(AiNotSetUp):
        await NONE.transcribe(sound, "ru-RU")
    await models.close()


async def test_a_stored_answer_that_cannot_be_read_is_asked_for_again(
    openai: OpenAi, state: SandboxState, tmp_path: Path
) -> None:
    models = models_in(tmp_path, openai)
    first = await models.complete(Prompt("x"))
    (stored,) = (tmp_path / "answers").iterdir()
    stored.write_bytes(b'{"text": "Ans')
    assert await models.complete(Prompt("x")) == first
    assert state.counter("models", "completion") == 2


async def test_an_empty_text_is_not_spoken(openai: OpenAi, tmp_path: Path) -> None:
    with pytest.raises(AiRefused, match="no text to speak"):
        await models_in(tmp_path, synthesis=openai).synthesize(Speech(" \n"))
