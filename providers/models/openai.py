"""The interface of OpenAI over HTTP, which many services and local servers have.

`POST /chat/completions`, `POST /audio/speech`, `POST /audio/transcriptions` below one address, with a Bearer key.
"""

import asyncio
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp

from providers.models.http_client import MOST_SOUND, ModelHttpClient, ModelRequest
from providers.models.interface import AiRefused, Completion, Prompt, SoundFormat, Speech

DEFAULT_URL = "https://api.openai.com/v1"
DEFAULT_VOICE = "alloy"
_FORMATS = {SoundFormat.OGG_OPUS: "opus", SoundFormat.WAV: "wav", SoundFormat.MP3: "mp3"}


class OpenAi:
    """Implements LanguageModel, Synthesis and Transcription, with one model each.

    `url` is the address up to `/v1`. Without a key no Authorization is sent, as local servers want it.
    """

    def __init__(self, client: ModelHttpClient, url: str, key: str, model: str, voice: str = "") -> None:
        self._client, self._url, self._model = client, url.rstrip("/"), model
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._voice = voice or DEFAULT_VOICE

    @property
    def identity(self) -> str:
        return f"{self._url} {self._model} {self._voice}"

    def check(self) -> None:
        """Check nothing: whether the service works is seen when it is called."""

    async def complete(self, prompt: Prompt) -> Completion:
        question = {"model": prompt.model or self._model, "messages": messages_of(prompt), **options_of(prompt)}
        answer = await self._client.post_json(self._request("/chat/completions", {"json": question}))
        try:
            text = answer["choices"][0]["message"]["content"]
        except (LookupError, TypeError):
            raise self._client.invalid("it has no message") from None
        if not isinstance(text, str) or not text.strip():
            raise self._client.invalid("the message is empty")
        return Completion(text, str(answer.get("model") or question["model"]), tokens_of(answer))

    async def synthesize(self, speech: Speech, file: Path) -> None:
        if speech.ssml:
            raise AiRefused("SSML_UNSUPPORTED", "this speech service does not understand SSML")
        voice, sound_format = speech.voice or self._voice, _FORMATS[speech.format]
        body = {"model": self._model, "input": speech.text, "voice": voice, "response_format": sound_format}
        sound = await self._client.post(self._request("/audio/speech", {"json": body}, MOST_SOUND))
        if not sound:
            raise self._client.invalid("the sound is empty")
        await asyncio.to_thread(file.write_bytes, sound)

    async def transcribe(self, file: Path, language: str) -> str:
        sound = await asyncio.to_thread(file.read_bytes)
        url = f"{self._url}/audio/transcriptions"
        answer = await self._client.post_json(
            ModelRequest(url, self._headers, lambda: {"data": self._form(sound, language)})
        )
        text = answer.get("text") if isinstance(answer, dict) else None
        if not isinstance(text, str):
            raise self._client.invalid("it has no text")
        return text.strip()

    def _form(self, sound: bytes, language: str) -> aiohttp.FormData:
        form = aiohttp.FormData({"model": self._model, "response_format": "json"})
        if language:
            form.add_field("language", language.partition("-")[0].lower())
        form.add_field("file", sound, filename="speech.ogg", content_type="audio/ogg")
        return form

    def _request(self, path: str, body: Mapping[str, Any], most_bytes: int = 2**18) -> ModelRequest:
        return ModelRequest(f"{self._url}{path}", self._headers, partial(dict, body), most_bytes)

    async def close(self) -> None:
        await self._client.close()


def messages_of(prompt: Prompt) -> list[dict[str, str]]:
    system = [{"role": "system", "content": prompt.system}] if prompt.system else []
    return [*system, {"role": "user", "content": prompt.user}]


def options_of(prompt: Prompt) -> dict[str, float | int]:
    options = {"temperature": prompt.temperature, "max_tokens": prompt.max_tokens}
    return {name: value for name, value in options.items() if value is not None}


def tokens_of(answer: Mapping[str, Any]) -> int:
    """Return the tokens that the answer counts; 0 if it does not."""
    usage = answer.get("usage")
    total = usage.get("total_tokens") if isinstance(usage, dict) else None
    return total if isinstance(total, int) else 0
