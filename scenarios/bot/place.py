"""Places in the files of a bot."""

from msgspec import Struct


class Place(Struct, frozen=True, gc=False):
    """A place in a file. `file` is relative to the bot's folder; lines and columns count from 1."""

    file: str
    line: int = 1
    column: int = 1
