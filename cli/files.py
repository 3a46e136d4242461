"""Reads the input of a command, up to a limit: a device or a pipe may have no end. Writes an output as a whole, or not
at all. Only its owner can read it: it may have personal data and secrets.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import BinaryIO

from cli.command import WRONG_USAGE, CommandFailed

MiB = 2**20
STDIN = "-"
_SILENT = 1.0
"""Seconds."""

STDOUT = "-"


def read_input(name: str, most_bytes: int) -> bytes:
    """Return the content of the file, of standard input for "-". Raises CommandFailed if it has more than
    `most_bytes`."""
    try:
        if name == STDIN:
            content = _read_stdin(most_bytes + 1)
        else:
            with Path(name).open("rb") as file:
                content = file.read(most_bytes + 1)
    except OSError as error:
        raise CommandFailed(f"cannot read {name}: {error.strerror}", WRONG_USAGE) from error
    if len(content) > most_bytes:
        raise CommandFailed(f"{_shown(name)} has more than {_size(most_bytes)}, and no more is accepted", WRONG_USAGE)
    return content


def _read_stdin(most_bytes: int) -> bytes:
    """Read standard input. After a second without a byte, a line on the terminal says what the command waits for."""
    hint = Timer(
        _SILENT, print, ["ada: waiting for standard input; Ctrl-D ends it"], {"file": sys.stderr, "flush": True}
    )
    if sys.stderr.isatty():
        hint.start()
    try:
        first = sys.stdin.buffer.read(1)
    finally:
        hint.cancel()
    return first + sys.stdin.buffer.read(most_bytes - 1)


def read_text_input(name: str, most_bytes: int) -> str:
    """Return the content as text in UTF-8. Raises CommandFailed."""
    try:
        return read_input(name, most_bytes).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise CommandFailed(f"{_shown(name)} is not text in UTF-8", WRONG_USAGE) from None


def _shown(name: str) -> str:
    return "standard input" if name == STDIN else name


def _size(size: int) -> str:
    return f"{size // MiB} MiB" if size >= MiB else f"{size // 1024} KiB"


@contextmanager
def written_whole(name: str) -> Iterator[BinaryIO]:
    """Yield a file to write to. It gets its name, and replaces a file that has it, when the block has ended without an
    error and all is on the disk. "-" is standard output. Raises CommandFailed.
    """
    if name == STDOUT:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(name)
    if path.exists() and not path.is_file():
        raise CommandFailed(f"{name} is not a file that can be replaced", WRONG_USAGE)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with _created(unfinished) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except OSError as error:
        raise CommandFailed(f"cannot write {name}: {error.strerror}") from error
    finally:
        unfinished.unlink(missing_ok=True)


def _created(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
