"""Where something is written."""

from msgspec import Struct


class Place(Struct, frozen=True, gc=False):
    """Where something is written. `file` is relative to the bot's folder; lines and columns count from 1."""

    file: str
    line: int = 1
    column: int = 1
