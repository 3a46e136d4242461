"""What is raised for bytes that no client of the protocol would send."""

import struct
import zlib

from telethon.errors import TypeNotFoundError


class MalformedError(Exception):
    """The bytes do not follow the protocol; the connection they came by is closed."""


# Everything that Telethon's reader and the standard library raise while reading bytes that somebody made up.
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
