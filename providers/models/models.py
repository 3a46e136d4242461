"""The interface for callers: the chosen services behind a cache of files, at most ten calls of a kind at once.

Guarantees of the cache: a file appears whole or not at all, also after a crash and with several processes; in one
process one call per key works at a time, and the others get its result. Beyond the limit the files that were not used
for the longest time are deleted, and so is what was not used for the retention time.
"""

import asyncio
import os
import secrets
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any, Self, TypeVar

import msgspec

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

_UNFINISHED = ".part"
_LONGEST_WORK = 3600.0
"""Seconds after which an unfinished file belongs to a process that has ended."""


@dataclass(frozen=True, slots=True)
class _CacheEntry:
    path: Path
    size: int
    used: float


@dataclass(slots=True)
class _CacheTurn:
    """One name: the task that has the lock works, `tasks` counts it and those that wait."""

    lock: asyncio.Lock
    tasks: int = 0


class FileCache:
    """`limit` in bytes; several processes together may exceed it by a twentieth each."""

    def __init__(self, folder: Path, limit: int, retention: timedelta) -> None:
        self.folder = folder
        self._limit, self._retention = limit, retention.total_seconds()
        self._written = limit  # bytes since the last clean-up; the first file begins with one
        self._turns: dict[str, _CacheTurn] = {}

    @classmethod
    def nowhere(cls) -> Self:
        """Return a cache that has no folder: nothing can be stored in it."""
        return cls(Path("/nonexistent"), 0, timedelta(0))

    async def file(self, name: str, max_age: timedelta, make: Callable[[Path], Awaitable[None]]) -> Path:
        """Return the file with this name; `make` writes it to the path that it gets, unless there is one young
        enough."""
        path = self.folder / name
        async with self._alone(name):
            if not await asyncio.to_thread(_use, path, max_age):
                await self._make(path, make)
        return path

    async def content(self, name: str, max_age: timedelta, make: Callable[[], Awaitable[bytes]]) -> bytes:
        """Return the content of the file with this name; `make` returns it, unless there is one young enough."""
        path = self.folder / name
        async with self._alone(name):
            if await asyncio.to_thread(_use, path, max_age):
                try:
                    return await asyncio.to_thread(path.read_bytes)
                except FileNotFoundError:  # another process has deleted it this moment
                    pass
            made = await make()

            async def write(file: Path) -> None:
                await asyncio.to_thread(file.write_bytes, made)

            await self._make(path, write)
            return made

    @asynccontextmanager
    async def _alone(self, name: str) -> AsyncIterator[None]:
        """Let one task per name run at a time. A lock that no task needs is forgotten."""
        turn = self._turns.setdefault(name, _CacheTurn(asyncio.Lock()))
        turn.tasks += 1
        try:
            async with turn.lock:
                yield
        finally:
            turn.tasks -= 1
            if not turn.tasks:
                del self._turns[name]

    async def _make(self, path: Path, make: Callable[[Path], Awaitable[None]]) -> None:
        """Write beside the file, then rename: no reader sees half a file."""
        await asyncio.to_thread(self.folder.mkdir, mode=0o700, parents=True, exist_ok=True)
        unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}{_UNFINISHED}")
        try:
            await make(unfinished)
            published = await asyncio.to_thread(_publish, unfinished, path)
            self._written += published  # not in one line: others write while it is awaited
        finally:
            unfinished.unlink(missing_ok=True)
        if self._written > self._limit // 20:
            self._written = 0
            await asyncio.to_thread(self._clean_up)

    def _clean_up(self) -> None:
        """Delete what was not used for the retention time, and the oldest beyond the limit."""
        now, total = time.time(), 0
        for entry in sorted(self._entries(now), key=lambda entry: entry.used, reverse=True):
            total += entry.size
            if total > self._limit or entry.used < now - self._retention:
                entry.path.unlink(missing_ok=True)

    def _entries(self, now: float) -> Iterator[_CacheEntry]:
        """Emit the finished files. Deletes what a process has left unfinished."""
        for found in os.scandir(self.folder):
            try:
                status = found.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            path, used = Path(found.path), max(status.st_atime, status.st_mtime)
            if path.suffix != _UNFINISHED:
                yield _CacheEntry(path, status.st_size, used)
            elif used < now - _LONGEST_WORK:
                path.unlink(missing_ok=True)


def key_of(*parts: Any) -> str:
    """Return a name for work with these parameters; other parameters have another name."""
    return sha256(msgspec.json.encode(parts)).hexdigest()


def digest_of(file: Path) -> str:
    """Return a name for the content of a file."""
    with file.open("rb") as opened:
        return file_digest(opened, "sha256").hexdigest()


def _use(path: Path, max_age: timedelta) -> bool:
    """Return whether there is a file that is young enough. Its access time becomes the time of its last use."""
    try:
        status = path.stat()
        age = time.time() - status.st_mtime
        if not status.st_size or age >= max_age.total_seconds():
            return False
        os.utime(path, (time.time(), status.st_mtime))
    except FileNotFoundError:
        return False
    return True


def _publish(unfinished: Path, path: Path) -> int:
    """Give the file its name when its content is on the disk. Returns its size."""
    descriptor = os.open(unfinished, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        size = os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)
    unfinished.chmod(0o600)
    unfinished.replace(path)
    return size


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
