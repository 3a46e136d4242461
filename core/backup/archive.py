"""The file of a backup: every key as plain data, in gzip of frames; the first is a header, the last has their number.

    length (4 bytes, big endian) and MessagePack, for the header, each entry, and the end

Plain data and not the server's DUMP: other servers refuse that, for example every Redis that of Valkey 9. All names and
values are bytes. gzip shows every damaged byte by its checksum, the end frame that nothing is cut off. A key may have
several entries: the last one counts.

Here is also what keeps a server from being backed up or restored: its rights, and processes of Ada that use it.
"""

import asyncio
import gzip
import re
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any, NamedTuple

import msgspec
from msgspec import Struct
from redis.exceptions import RedisError

from core.errors import AdaError, SetupError, StoreUnavailable
from core.model.text.characters import counted
from core.redis.connection import NAME, Reply, ServerAddress, StoreConnection, Word
from core.redis.refusals import explained, is_about_rights

Command = Sequence[Word]
Value = Any
"""Plain data: bytes, integers, floats, lists of them."""

GONE = "none"
_NO_KEY = -2
_CHANGED = ("WRONGTYPE ", "ERR no such key")
"""How the error begins of a key that has another type by now, or is gone."""
_ITEMS = 1000
"""Items that one command writes: others on the server have their turn."""
PATIENCE = 60.0
"""Seconds without an answer of the server."""
FORMAT = 1
_LENGTH = struct.Struct(">I")
_PIECE = 2**20
_FAST = 1
"""Of gzip: level 9 takes five times as long for a tenth less."""


class StoredValue(Struct, frozen=True, array_like=True):
    """A key with its value. `kind`: its type on the server, GONE for a key that is no longer there. `expires_at`: ms
    since 1970, 0 if it does not expire.
    """

    key: bytes
    kind: str
    expires_at: int
    value: Value


class _Kind(NamedTuple):
    reads: Callable[[bytes], list[Command]]
    value: Callable[[Sequence[Reply]], Value]
    writes: Callable[[bytes, Value], Iterator[Command]]


def reading(key: bytes, kind: str) -> list[Command]:
    """Return the commands that read a key. Raises KeyError for a type that Ada does not use."""
    return [("PEXPIRETIME", key), *_KINDS[kind].reads(key)]


def read_entry(key: bytes, kind: str, replies: Sequence[Reply]) -> StoredValue:
    """Return the entry of the replies to `reading`. A key that vanishes or changes its type meanwhile is GONE: it is
    read again, because it has changed. Raises RedisError if the server does not read the key.
    """
    faults = [reply for reply in replies if isinstance(reply, RedisError)]
    for fault in faults:
        if not str(fault).startswith(_CHANGED):
            raise fault
    if faults or replies[0] == _NO_KEY or replies[1] is None:
        return StoredValue(key, GONE, 0, None)
    return StoredValue(key, kind, max(replies[0], 0), _KINDS[kind].value(replies[1:]))


def writing(entry: StoredValue) -> Iterator[Command]:
    """Emit the commands that make the key what it is in the entry. Raises KeyError for an unknown type."""
    yield ("DEL", entry.key)
    if entry.kind == GONE:
        return
    yield from _KINDS[entry.kind].writes(entry.key, entry.value)
    if entry.expires_at:
        yield ("PEXPIREAT", entry.key, entry.expires_at)


# the types


def _pairs(reply: Mapping[bytes, bytes]) -> list[list[bytes]]:
    return [[name, value] for name, value in reply.items()]


def _write_items(command: str, items: Callable[[Value], Iterator[Sequence[Word]]]) -> Callable[..., Iterator[Command]]:
    """Write the items of a value, some at a time."""

    def write(key: bytes, value: Value) -> Iterator[Command]:
        words = list(items(value))
        for start in range(0, len(words), _ITEMS):
            yield (command, key, *(word for item in words[start : start + _ITEMS] for word in item))

    return write


def _read_stream(replies: Sequence[Reply]) -> Value:
    """Return the entries, the last id, how many were ever added, the largest id that was deleted."""
    entries, facts = replies
    return [
        [[entry_id, fields] for entry_id, fields in entries],
        facts[b"last-generated-id"],
        facts[b"entries-added"],
        facts[b"max-deleted-entry-id"],
    ]


def _write_stream(key: bytes, value: Value) -> Iterator[Command]:
    entries, last, added, deleted = value
    for entry_id, fields in entries:
        yield ("XADD", key, entry_id, *fields)
    if not entries:
        yield ("XADD", key, "MAXLEN", 0, last, "-", "-")
    yield ("XSETID", key, last, "ENTRIESADDED", added, "MAXDELETEDID", deleted)


_KINDS: Mapping[str, _Kind] = {
    "string": _Kind(
        lambda key: [("GET", key)],
        lambda replies: replies[0],
        lambda key, value: iter([("SET", key, value)]),
    ),
    "hash": _Kind(
        lambda key: [("HGETALL", key)],
        lambda replies: _pairs(replies[0]),
        _write_items("HSET", iter),
    ),
    "list": _Kind(
        lambda key: [("LRANGE", key, 0, -1)],
        lambda replies: replies[0],
        _write_items("RPUSH", lambda value: ((one,) for one in value)),
    ),
    "set": _Kind(
        lambda key: [("SMEMBERS", key)],
        lambda replies: list(replies[0]),
        _write_items("SADD", lambda value: ((one,) for one in value)),
    ),
    "zset": _Kind(
        lambda key: [("ZRANGE", key, 0, -1, "WITHSCORES")],
        lambda replies: [list(pair) for pair in replies[0]],
        _write_items("ZADD", lambda value: ((repr(score), member) for member, score in value)),
    ),
    "stream": _Kind(
        lambda key: [("XRANGE", key, "-", "+"), ("XINFO", "STREAM", key)],
        _read_stream,
        _write_stream,
    ),
}


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
    return dict(re.findall(r"(\S+?)=(\S*)", client))


_decode_entry = msgspec.msgpack.Decoder(StoredValue).decode
_encode = msgspec.msgpack.Encoder().encode


class ArchiveFault(SetupError):
    """The file is no backup, is damaged or cut off, or another version of Ada made it; or it cannot be written."""


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
    """Writes the frames. `close` it at the end. Raises ArchiveFault if the file takes no more, and not OSError, which
    would be taken for a fault of the server.
    """

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
        with _refusals_named():
            self._gzip.close()
        return end

    def _write(self, frame: Struct) -> None:
        content = _encode(frame)
        with _refusals_named():
            self._gzip.write(_LENGTH.pack(len(content)))
            self._gzip.write(content)


@contextmanager
def _refusals_named() -> Iterator[None]:
    try:
        yield
    except OSError as fault:
        raise ArchiveFault(f"the file of the backup cannot be written: {fault.strerror}") from None


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
