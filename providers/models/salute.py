"""SaluteSpeech over HTTP: a token by OAuth, `text:synthesize` and `speech:recognize`.

A token is valid for 30 minutes and is used until a minute before its end; a token that the service refuses earlier is
replaced once. A text has at most 4,000 characters, a sound at most one minute and 2 MB. The service makes no MP3, so
that is converted here.
"""

import asyncio
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

from providers.models.http_client import MOST_JSON, MOST_SOUND, ModelHttpClient, ModelRequest
from providers.models.interface import AiRefused, SoundFormat, Speech
from providers.models.programs import convert

DEFAULT_URL = "https://smartspeech.sber.ru/rest/v1"
DEFAULT_TOKEN_URL = "https://ngw.devices.sberbank.ru:9443/api/v2/oauth"
DEFAULT_VOICE = "Nec_24000"

_FORMATS = {SoundFormat.OGG_OPUS: "opus", SoundFormat.WAV: "wav16", SoundFormat.MP3: "wav16"}
_EARLY = 60.0
"""Seconds before its end in which a token is not used any more."""

_CONVERSION = timedelta(seconds=60)

T = TypeVar("T")


class SaluteTokens:
    """The token of one account. `key` is the authorization key: id and secret in Base64."""

    def __init__(self, client: ModelHttpClient, url: str, key: str, scope: str) -> None:
        self._client, self._url, self._key, self._scope = client, url, key, scope
        self._token, self._ends_at = "", 0.0
        self._asking = asyncio.Lock()

    async def token(self) -> str:
        """Return a token that is valid. Concurrent calls ask for it once. Raises AiError."""
        async with self._asking:
            if time.time() > self._ends_at - _EARLY:
                await self._ask()
            return self._token

    def forget(self, token: str) -> None:
        """Forget a token that the service refuses."""
        if token == self._token:
            self._ends_at = 0.0

    async def _ask(self) -> None:
        headers = {"Authorization": f"Basic {self._key}", "RqUID": str(uuid.uuid4()), "Accept": "application/json"}
        answer = await self._client.post_json(
            ModelRequest(self._url, headers, lambda: {"data": {"scope": self._scope}})
        )
        try:
            self._token, self._ends_at = str(answer["access_token"]), int(answer["expires_at"]) / 1000
        except (LookupError, TypeError, ValueError):
            raise self._client.invalid("it has no token") from None


class Salute:
    """Implements Synthesis and Transcription. `url` is the address up to `/rest/v1`."""

    def __init__(self, client: ModelHttpClient, tokens: SaluteTokens, url: str, voice: str = "") -> None:
        self._client, self._tokens = client, tokens
        self._url, self._voice = url.rstrip("/"), voice or DEFAULT_VOICE

    @property
    def identity(self) -> str:
        return f"{self._url} {self._voice}"

    def check(self) -> None:
        """Check nothing: whether the service works is seen when it is called."""

    async def synthesize(self, speech: Speech, file: Path) -> None:
        sound = await self._with_token(lambda token: self._client.post(self._synthesis(speech, token)))
        if not sound:
            raise self._client.invalid("the sound is empty")
        if speech.format is not SoundFormat.MP3:
            await asyncio.to_thread(file.write_bytes, sound)
            return
        with tempfile.TemporaryDirectory(prefix="ada-speech-") as directory:
            wav = Path(directory) / "speech.wav"
            await asyncio.to_thread(wav.write_bytes, sound)
            await convert(wav, file, SoundFormat.MP3, _CONVERSION)

    def _synthesis(self, speech: Speech, token: str) -> ModelRequest:
        kind = "application/ssml" if speech.ssml else "application/text"
        query = {"format": _FORMATS[speech.format], "voice": speech.voice or self._voice}
        headers = {"Authorization": f"Bearer {token}", "Content-Type": kind}
        body = {"data": speech.text.encode()}
        return ModelRequest(f"{self._url}/text:synthesize", headers, lambda: body, MOST_SOUND, query)

    async def transcribe(self, file: Path, language: str) -> str:
        body = {"data": await asyncio.to_thread(file.read_bytes)}
        query = {"language": language} if language else {}

        def request(token: str) -> ModelRequest:
            headers = {"Authorization": f"Bearer {token}", "Content-Type": "audio/ogg;codecs=opus"}
            return ModelRequest(f"{self._url}/speech:recognize", headers, lambda: body, MOST_JSON, query)

        answer = await self._with_token(lambda token: self._client.post_json(request(token)))
        parts = answer.get("result") if isinstance(answer, dict) else None
        if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
            raise self._client.invalid("it has no result")
        return " ".join(parts).strip()

    async def _with_token(self, call: Callable[[str], Awaitable[T]]) -> T:
        """Call with a token; if the service refuses it, once more with a new one."""
        token = await self._tokens.token()
        try:
            return await call(token)
        except AiRefused as refusal:
            if refusal.code != "KEY_REFUSED":
                raise
            self._tokens.forget(token)
            return await call(await self._tokens.token())

    async def close(self) -> None:
        await self._client.close()
