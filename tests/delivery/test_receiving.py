"""Compressed bodies: unpacked a piece at a time, however they arrive."""

import gzip
import random

import pytest

from core.errors import Refused
from delivery.http.receiving import Unpacker

PIECE = 2**16
BODY = random.Random(7).randbytes(PIECE) + bytes(3 * PIECE)
"""Several pieces, of which the last ones are much smaller when they are packed."""


@pytest.mark.parametrize("size", [1, 1000, 2**20])
def test_a_packed_body_is_the_same_however_it_is_cut_into_chunks(size: int) -> None:
    packed, unpacker = gzip.compress(BODY), Unpacker()
    chunks = (packed[start : start + size] for start in range(0, len(packed), size))
    pieces = [piece for chunk in chunks for piece in unpacker.feed(chunk)]
    unpacker.end()
    assert b"".join(pieces) == BODY
    assert max(map(len, pieces)) <= PIECE


@pytest.mark.parametrize(
    "broken",
    [gzip.compress(BODY)[:-1], gzip.compress(BODY) + b"x", gzip.compress(b"a") + b"x", b"", b"\0"],
    ids=["its end is missing", "more behind it", "more behind a small one", "empty", "not gzip"],
)
def test_a_body_that_is_not_one_complete_gzip_is_refused(broken: bytes) -> None:
    """Regression: bytes after the end of a body of several pieces kept the process busy for ever."""
    with pytest.raises(Refused, match="complete gzip"):
        unpack(broken)


def unpack(packed: bytes) -> bytes:
    unpacker = Unpacker()
    body = b"".join(unpacker.feed(packed))
    unpacker.end()
    return body
