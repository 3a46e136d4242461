"""The settings choose language models and speech services; `up` takes those of the sandbox if there are none."""

from pathlib import Path

import pytest

from cli.commands.start.doctor import check_models
from cli.commands.start.installation import simulated
from cli.services.models import language_model, open_models, synthesis, transcription
from cli.settings.settings import Settings, load
from core.errors import SetupError
from providers.models import AiNotSetUp, NotSetUp, Prompt
from providers.models.openai import OpenAi
from providers.models.programs import Espeak
from providers.models.salute import Salute
from sandbox.sandbox import Sandbox


def settings(directory: Path, **environment: str) -> Settings:
    return load({"ADA_DATA": str(directory / "data"), **environment}, directory).settings


async def test_without_any_setting_espeak_speaks_and_the_rest_is_off(tmp_path: Path) -> None:
    chosen = settings(tmp_path)
    assert isinstance(synthesis(chosen), Espeak)
    assert isinstance(transcription(chosen), NotSetUp)
    async with open_models(chosen) as models:
        with pytest.raises(AiNotSetUp, match="set ADA_MODEL_URL") as error:
            await models.complete(Prompt("x"))
        assert models.sound_folder == tmp_path / "data" / "speech"
    assert error.value.code == "MODEL_NOT_SET_UP"


async def test_a_model_and_a_speech_service_are_chosen_by_settings(tmp_path: Path) -> None:
    environment = {"ADA_MODEL_URL": "http://h/v1/", "ADA_MODEL_NAME": "qwen", "ADA_SPEECH": "openai",
                   "ADA_SPEECH_URL": "http://s/v1", "ADA_SPEECH_VOICE": "nova"}  # fmt: skip
    chosen = settings(tmp_path, **environment)
    assert language_model(chosen).identity == "http://h/v1 qwen alloy"
    assert synthesis(chosen).identity == "http://s/v1 tts-1 nova"
    assert transcription(chosen).identity == "http://s/v1 whisper-1 nova"


async def test_salute_speaks_and_listens(tmp_path: Path) -> None:
    chosen = settings(tmp_path, ADA_SPEECH="salute", ADA_SPEECH_KEY="k")
    assert isinstance(synthesis(chosen), Salute)
    assert transcription(chosen).identity == "https://smartspeech.sber.ru/rest/v1 Nec_24000"


async def test_espeak_may_speak_while_a_service_listens(tmp_path: Path) -> None:
    chosen = settings(tmp_path, ADA_TRANSCRIPTION="openai", ADA_SPEECH_URL="http://s/v1")
    assert isinstance(synthesis(chosen), Espeak)
    assert isinstance(transcription(chosen), OpenAi)


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"ADA_SPEECH": "festival"}, "ADA_SPEECH is 'festival', which is not one of espeak, openai, salute"),
        ({"ADA_TRANSCRIPTION": "espeak"}, "ADA_TRANSCRIPTION is 'espeak', which is not one of openai, salute"),
        ({"ADA_SPEECH": "salute"}, "ADA_SPEECH_KEY must be set"),
        (
            {"ADA_SPEECH": "salute", "ADA_SPEECH_KEY": "k", "ADA_TRANSCRIPTION": "openai"},
            "ADA_SPEECH_URL and its key are those of salute",
        ),
        ({"ADA_SPEECH": "openai", "ADA_SPEECH_CA": "/nonexistent"}, "ADA_SPEECH_CA is /nonexistent"),
    ],
)
async def test_a_wrong_setting_is_named(tmp_path: Path, environment: dict[str, str], message: str) -> None:
    with pytest.raises(SetupError, match=message):
        async with open_models(settings(tmp_path, **environment)):
            pytest.fail("opened with a wrong setting")


def test_keys_are_not_printed(tmp_path: Path) -> None:
    chosen = settings(tmp_path, ADA_MODEL_KEY="geheim", ADA_SPEECH_KEY="geheim")
    assert "geheim" not in f"{chosen}"


def test_doctor_shows_what_is_set_up_and_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    off = [(found.what, found.is_good) for found in check_models(settings(tmp_path))]
    assert off == [("model", None), ("to_speech", None), ("from_speech", None)]
    chosen = settings(tmp_path, ADA_MODEL_URL="http://h/v1", ADA_SPEECH="salute", ADA_TRANSCRIPTION="openai")
    assert [found.is_good for found in check_models(chosen)] == [True, False, False]


def test_up_uses_the_services_of_the_sandbox_unless_others_are_set(tmp_path: Path) -> None:
    offered = Sandbox(tmp_path).environment
    names = {name for name in offered if name.startswith(("ADA_MODEL", "ADA_SPEECH", "ADA_TRANSCRIPTION"))}
    speech = {name for name in names if not name.startswith("ADA_MODEL")}
    assert simulated(offered, {"ADA_HTTP"}) == offered
    assert offered.keys() - simulated(offered, {"ADA_MODEL_URL"}).keys() == names - speech
    assert offered.keys() - simulated(offered, {"ADA_TRANSCRIPTION"}).keys() == speech
