"""The interface for callers: the chosen services behind a cache, at most ten calls of a kind at once."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Self, TypeVar

import msgspec

from providers.models.cache import FileCache, digest_of, key_of
from providers.models.interface import (
    AiRefused,
    Completion,
    LanguageModel,
    NotSetUp,
    Prompt,
    SoundFormat,
    Speech,
    Synthesis,
    Transcription,
)
from providers.models.programs import convert, duration_of

T = TypeVar("T")

AT_ONCE = 10
"""Calls of one kind: of the language model, and of both speech services together (C-76)."""

SOUND_TIME_LIMIT = timedelta(seconds=60)
"""For reading a sound file."""


class Models:
    """One per process. `texts` and `sounds` keep answers up to `max_age`, unless a call names another age.

    An age of 0 asks for new work. All methods raise AiError.
    """

    def __init__(
        self,
        language: LanguageModel,
        synthesis: Synthesis,
        transcription: Transcription,
        texts: FileCache,
        sounds: FileCache,
        max_age: timedelta = timedelta(days=1),
    ) -> None:
        self._language, self._synthesis, self._transcription = language, synthesis, transcription
        self._texts, self._sounds, self._max_age = texts, sounds, max_age
        self._language_calls, self._speech_calls = asyncio.Semaphore(AT_ONCE), asyncio.Semaphore(AT_ONCE)

    @classmethod
    def not_set_up(cls) -> Self:
        """Return the models of a process without any service: every call raises AiNotSetUp."""
        none = NotSetUp("AI_NOT_SET_UP", "this process has no language model and no speech service")
        return cls(none, none, none, FileCache.nowhere(), FileCache.nowhere(), timedelta(0))

    @property
    def sound_folder(self) -> Path:
        """Return where the files of `synthesize` are. Nothing else is there, so they may be sent."""
        return self._sounds.folder

    async def complete(self, prompt: Prompt, max_age: timedelta | None = None) -> Completion:
        """Return the answer of the language model."""

        async def ask() -> bytes:
            async with self._language_calls:
                return msgspec.json.encode(await self._language.complete(prompt))

        key = key_of("completion", self._language.identity, prompt)
        return await self._answer(key, max_age, ask, Completion)

    async def synthesize(self, speech: Speech, max_age: timedelta | None = None) -> Path:
        """Return a sound file with this speech. It stays until the cache needs its place; the oldest goes first."""

        async def speak(file: Path) -> None:
            async with self._speech_calls:
                await self._synthesis.synthesize(speech, file)

        if not speech.text.strip():
            raise AiRefused("TEXT_EMPTY", "there is no text to speak")
        self._synthesis.check()
        name = f"{key_of('speech', self._synthesis.identity, speech)}{speech.format.suffix}"
        return await self._sounds.file(name, self._age(max_age), speak)

    async def transcribe(self, file: Path, language: str, longest: timedelta, max_age: timedelta | None = None) -> str:
        """Return the text of a sound file in any usual format. A file that is longer than `longest` is refused."""

        async def listen() -> bytes:
            async with self._speech_calls:
                return msgspec.json.encode(await self._listen(file, language, longest))

        digest = await asyncio.to_thread(digest_of, file)
        key = key_of("transcript", self._transcription.identity, language, longest.total_seconds(), digest)
        return await self._answer(key, max_age, listen, str)

    async def _listen(self, file: Path, language: str, longest: timedelta) -> str:
        """Return the text of a recording. The service gets Ogg Opus, whatever a person has sent: every service takes
        it, and it is small. A file that is longer than it claims is cut.
        """
        duration = await duration_of(file, SOUND_TIME_LIMIT)
        if duration > longest:
            seconds = f"{duration.total_seconds():.0f} s, more than {longest.total_seconds():.0f} s"
            raise AiRefused("SOUND_TOO_LONG", f"the speech takes {seconds}")
        with tempfile.TemporaryDirectory(prefix="ada-speech-") as directory:
            sound = Path(directory) / "speech.ogg"
            await convert(file, sound, SoundFormat.OGG_OPUS, SOUND_TIME_LIMIT, longest)
            return await self._transcription.transcribe(sound, language)

    async def _answer(
        self, key: str, max_age: timedelta | None, make: Callable[[], Awaitable[bytes]], kind: type[T]
    ) -> T:
        """Return a stored answer, or a new one if it cannot be read, as after a power failure."""
        age = self._age(max_age)
        try:
            return msgspec.json.decode(await self._texts.content(f"{key}.json", age, make), type=kind)
        except msgspec.DecodeError:
            return msgspec.json.decode(await self._texts.content(f"{key}.json", timedelta(0), make), type=kind)

    def _age(self, given: timedelta | None) -> timedelta:
        return self._max_age if given is None else given

    async def close(self) -> None:
        """End the connections of the services."""
        for service in (self._language, self._synthesis, self._transcription):
            await service.close()
