"""The file of a backup: gzip of frames; the first is a header, the last has their number.

    length (4 bytes, big endian) and MessagePack, for the header, each entry, and the end

gzip shows every damaged byte by its checksum, the end frame that nothing is cut off. A key may have several entries:
the last one counts. Also why a server cannot be backed up or restored, and that processes of Ada use it.
"""

import asyncio
import gzip
import re
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import msgspec
from msgspec import Struct
from redis.exceptions import RedisError

from core.backup.values import StoredValue
from core.errors import AdaError, SetupError, StoreUnavailable
from core.model.text.characters import counted
from core.redis.connection import NAME, ServerAddress, StoreConnection
from core.redis.refusals import explained, is_about_rights

PATIENCE = 60.0
"""Seconds without an answer of the server."""


def explain(fault: RedisError | OSError | TimeoutError, address: ServerAddress, work: str, rights: str) -> AdaError:
    """Return the error for a fault of `work`, which needs `rights` beside the usual ones."""
    if is_about_rights(fault):
        return SetupError(
            f"the Redis user {address.username!r} lacks a right that a {work} needs. Grant it as an administrator:"
            f" redis-cli ACL SETUSER {address.username} {rights}"
        )
    if isinstance(fault, TimeoutError):
        return StoreUnavailable(f"Redis at {address} did not answer within {PATIENCE:.0f} s.")
    return explained(fault, address)


async def check_unused(connection: StoreConnection, database: int) -> None:
    """Check that no other connection of Ada uses the database. Raises SetupError, RedisError, TimeoutError."""
    async with asyncio.timeout(PATIENCE):
        own = await connection.request("CLIENT", "ID")
        clients = (await connection.request("CLIENT", "LIST")).decode(errors="replace").splitlines()
    users = [client for client in map(_fields, clients) if client["name"] == NAME and client["db"] == str(database)]
    others = len([client for client in users if client["id"] != str(own)])
    if others:
        raise SetupError(f"Ada uses this database over {counted(others, 'connection')}; stop all its processes first")


def _fields(client: str) -> dict[str, str]:
    """Return the fields of a line of CLIENT LIST."""
    return dict(re.findall(r"(\S+?)=(\S*)", client))


FORMAT = 1
_LENGTH = struct.Struct(">I")
_PIECE = 2**20
_FAST = 1
"""Of gzip: level 9 takes five times as long for a tenth less."""

_decode_entry = msgspec.msgpack.Decoder(StoredValue).decode
_encode = msgspec.msgpack.Encoder().encode


class ArchiveFault(SetupError):
    """The file is no backup, is damaged or cut off, or another version of Ada made it."""


class ArchiveHeader(Struct, frozen=True):
    """The first record of a backup: its origin. `began_at`: ms since 1970."""

    ada_backup: int
    layout: int
    shards: int
    began_at: int


class End(Struct, frozen=True):
    """The end of a file. `entries`: how many it has; `keys`: how many keys there were at the moment `at` (ms)."""

    entries: int
    keys: int
    at: int


class ArchiveWriter:
    """Writes the frames. `close` it at the end."""

    def __init__(self, file: IO[bytes], header: ArchiveHeader) -> None:
        self._gzip = gzip.GzipFile(fileobj=file, mode="wb", compresslevel=_FAST, filename="", mtime=0)
        self.entries = 0
        self._write(header)

    def add(self, entry: StoredValue) -> None:
        self._write(entry)
        self.entries += 1

    def close(self, keys: int, at: int) -> End:
        end = End(self.entries, keys, at)
        self._write(end)
        self._gzip.close()
        return end

    def _write(self, frame: Struct) -> None:
        content = _encode(frame)
        self._gzip.write(_LENGTH.pack(len(content)))
        self._gzip.write(content)


def check_bytes(file: IO[bytes]) -> None:
    """Read the whole file, against its checksum. Raises ArchiveFault if it is damaged or cut off."""
    with _faults_named():
        unpacked = gzip.GzipFile(fileobj=file, mode="rb")
        while unpacked.read(_PIECE):
            pass


class ArchiveReader:
    """Reads a file from its start. `header` is there at once, `end` when all entries were read. `entries`: how many
    were read until now. Raises ArchiveFault.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._gzip = gzip.GzipFile(fileobj=file, mode="rb")
        self.end: End | None = None
        self.entries = 0
        self.header = self._header()

    def _header(self) -> ArchiveHeader:
        try:
            header = msgspec.msgpack.decode(self._frame(), type=ArchiveHeader)
        except (ArchiveFault, msgspec.MsgspecError):
            raise ArchiveFault("the file is not a backup of Ada") from None
        if header.ada_backup != FORMAT:
            raise ArchiveFault(f"the backup has format {header.ada_backup}, this version of Ada reads {FORMAT}")
        return header

    def __iter__(self) -> Iterator[StoredValue]:
        """Emit the entries. Raises ArchiveFault as soon as the file is found to be damaged, at its end at the
        latest."""
        while True:
            found = _entry_or_end(self._frame())
            if isinstance(found, End):
                break
            self.entries += 1
            yield found
        if found.entries != self.entries or self._read(1):
            raise _damaged()
        self.end = found

    def _frame(self) -> bytes:
        (size,) = _LENGTH.unpack(self._exactly(_LENGTH.size))
        return self._exactly(size)

    def _exactly(self, size: int) -> bytes:
        found = self._read(size)
        if len(found) < size:
            raise _damaged()
        return found

    def _read(self, size: int) -> bytes:
        with _faults_named():
            return self._gzip.read(size)


@contextmanager
def _faults_named() -> Iterator[None]:
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise _damaged() from None


def _entry_or_end(frame: bytes) -> StoredValue | End:
    try:
        return _decode_entry(frame)
    except msgspec.MsgspecError:
        pass
    try:
        return msgspec.msgpack.decode(frame, type=End)
    except msgspec.MsgspecError:
        raise _damaged() from None


def _damaged() -> ArchiveFault:
    return ArchiveFault("the file is damaged or cut off")
