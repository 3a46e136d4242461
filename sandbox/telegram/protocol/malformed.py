"""Errors raised for bytes that do not follow the protocol."""

import struct
import zlib

from telethon.errors import TypeNotFoundError


class MalformedError(Exception):
    """The bytes do not follow the protocol; their connection is closed."""


# All errors that Telethon's reader and the standard library raise for arbitrary bytes.
UNREADABLE = (
    MalformedError,
    TypeNotFoundError,
    struct.error,
    zlib.error,
    ArithmeticError,
    AssertionError,
    AttributeError,
    BufferError,
    LookupError,
    MemoryError,
    OSError,
    EOFError,
    RecursionError,
    RuntimeError,
    TypeError,
    ValueError,
)
