"""Values of every type of key as plain data: the commands that read them, and those that write them again. Pure.

Plain data and not the server's DUMP: other servers refuse that, for example every Redis that of Valkey 9. All names and
values are bytes.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct
from redis.exceptions import RedisError

from core.redis.connection import Reply, Word

Command = Sequence[Word]
Value = Any
"""Plain data: bytes, integers, floats, lists of them."""

GONE = "none"
_NO_KEY = -2
_ITEMS = 1000
"""Items that one command writes: others on the server have their turn."""


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
    read again, because it has changed.
    """
    is_gone = any(isinstance(reply, RedisError) for reply in replies) or replies[0] == _NO_KEY or replies[1] is None
    if is_gone:
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
