"""Fixtures of the tests of models and speech: the sandbox's services, and the programs that make speech."""

import json
import shutil
import subprocess
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from core.model.clock import Backoff
from providers.models import FileCache, LanguageModel, Models, NotSetUp, Synthesis, Transcription
from providers.models.http_client import ModelHttpClient
from providers.models.openai import OpenAi
from providers.models.salute import Salute, SaluteTokens
from sandbox.models import KEY, MODEL, ModelsServer
from sandbox.models.server import AUTHORIZATION_KEY
from sandbox.state import SandboxState
from tests.support.serving import serving

MINUTE = timedelta(minutes=1)
QUICK = Backoff(timedelta(milliseconds=5), timedelta(milliseconds=20), attempts=4)
NONE = NotSetUp("NOT_SET_UP", "nothing is set up")


@pytest.fixture
def programs() -> None:
    """Skips the test if espeak-ng or ffmpeg is not installed."""
    missing = [program for program in ("espeak-ng", "ffmpeg", "ffprobe") if shutil.which(program) is None]
    if missing:
        pytest.skip(f"needs the packages espeak-ng and ffmpeg: {', '.join(missing)} not found")


@pytest.fixture
def state() -> SandboxState:
    return SandboxState()


@pytest.fixture
async def service(state: SandboxState) -> AsyncIterator[ModelsServer]:
    async with serving(ModelsServer(state)) as server:
        yield server


@pytest.fixture
async def client() -> AsyncIterator[ModelHttpClient]:
    """A client whose pauses are short."""
    opened = ModelHttpClient("the service", "ADA_KEY", MINUTE, backoff=QUICK)
    yield opened
    await opened.close()


@pytest.fixture
def openai(client: ModelHttpClient, service: ModelsServer) -> OpenAi:
    return OpenAi(client, service.url, KEY, MODEL)


@pytest.fixture
def salute(client: ModelHttpClient, service: ModelsServer) -> Salute:
    tokens = SaluteTokens(client, service.token_url, AUTHORIZATION_KEY, "SALUTE_SPEECH_PERS")
    return Salute(client, tokens, service.salute_url)


def models_in(
    folder: Path,
    language: LanguageModel = NONE,
    synthesis: Synthesis = NONE,
    transcription: Transcription = NONE,
) -> Models:
    """Models with caches in a folder; what is not given is not set up."""
    texts, sounds = (FileCache(folder / name, 10**8, timedelta(days=1)) for name in ("answers", "speech"))
    return Models(language, synthesis, transcription, texts, sounds)


def probe(file: Path) -> dict[str, Any]:
    """What ffprobe shows of the only stream of a file: codec_name, channels, duration."""
    command = ["ffprobe", "-v", "error", "-show_streams", "-show_format", "-of", "json", str(file)]
    shown = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    (stream,) = shown["streams"]
    return {**stream, "duration": float(shown["format"]["duration"])}
