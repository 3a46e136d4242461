"""A cache of files in one folder: by key, with a maximum age, bounded in size.

Guarantees: a file appears whole or not at all, also after a crash and with several processes; in one process one call
per key works at a time, and the others get its result. Beyond the limit the files that were not used for the longest
time are deleted, and so is what was not used for the retention time.
"""

import asyncio
import os
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any, Self

import msgspec

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
