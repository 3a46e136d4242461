"""Opens language models and speech services as the settings name them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from cli.settings.settings import Settings
from core.errors import SetupError
from providers.models import FileCache, LanguageModel, Models, NotSetUp, Synthesis, Transcription, openai, salute
from providers.models.http_client import ModelHttpClient
from providers.models.programs import Espeak

SYNTHESES = ("espeak", "openai", "salute")
TRANSCRIPTIONS = ("openai", "salute")

_NO_MODEL = "no language model is set up: set ADA_MODEL_URL"
_NO_TRANSCRIPTION = "no transcription is set up: set ADA_TRANSCRIPTION, and ADA_SPEECH_URL or ADA_SPEECH_KEY"


@asynccontextmanager
async def open_models(settings: Settings) -> AsyncIterator[Models]:
    """Yield the models. A model that is not set up raises AiNotSetUp when it is called (C-86). Raises SetupError for a
    wrong setting."""
    megabyte, data = 10**6, settings.data.absolute()
    limit = settings.ai_cache_megabytes * megabyte
    texts, sounds = (FileCache(data / name, limit, settings.retention) for name in ("answers", "speech"))
    models = Models(
        language_model(settings), synthesis(settings), transcription(settings), texts, sounds, settings.ai_cache_age
    )
    try:
        yield models
    finally:
        await models.close()


def language_model(settings: Settings) -> LanguageModel:
    if not settings.model_url:
        return NotSetUp("MODEL_NOT_SET_UP", _NO_MODEL)
    client = ModelHttpClient("the language model", "ADA_MODEL_KEY", settings.model_timeout)
    return openai.OpenAi(client, settings.model_url, settings.model_key or "", settings.model_name)


def synthesis(settings: Settings) -> Synthesis:
    """Return what makes speech of texts. Raises SetupError."""
    chosen = choice("ADA_SPEECH", settings.speech, SYNTHESES)
    if chosen == "espeak":
        return Espeak(settings.speech_voice or "", settings.speech_timeout)
    return open_salute(settings) if chosen == "salute" else open_openai(settings, settings.speech_model)


def transcription(settings: Settings) -> Transcription:
    """Return the model that transcribes, by default that of the service that speaks. Raises SetupError."""
    if settings.transcription is None and settings.speech == "espeak":
        return NotSetUp("TRANSCRIPTION_NOT_SET_UP", _NO_TRANSCRIPTION)
    chosen = choice("ADA_TRANSCRIPTION", settings.transcription or settings.speech, TRANSCRIPTIONS)
    if settings.speech not in ("espeak", chosen):
        raise SetupError(
            f"ADA_TRANSCRIPTION is {chosen}, but ADA_SPEECH_URL and its key are those of {settings.speech}"
        )
    return open_salute(settings) if chosen == "salute" else open_openai(settings, settings.transcription_model)


def open_openai(settings: Settings, model: str) -> openai.OpenAi:
    url, voice = settings.speech_url or openai.DEFAULT_URL, settings.speech_voice or ""
    return openai.OpenAi(speech_client(settings), url, settings.speech_key or "", model, voice)


def open_salute(settings: Settings) -> salute.Salute:
    if not settings.speech_key:
        raise SetupError("ADA_SPEECH_KEY must be set: SaluteSpeech needs an authorization key")
    client, token_url = speech_client(settings), settings.speech_token_url or salute.DEFAULT_TOKEN_URL
    tokens = salute.SaluteTokens(client, token_url, settings.speech_key, settings.speech_scope)
    return salute.Salute(client, tokens, settings.speech_url or salute.DEFAULT_URL, settings.speech_voice or "")


def speech_client(settings: Settings) -> ModelHttpClient:
    return ModelHttpClient("the speech service", "ADA_SPEECH_KEY", settings.speech_timeout, settings.speech_ca)


def choice(name: str, value: str, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise SetupError(f"{name} is {value!r}, which is not one of {', '.join(choices)}")
    return value
