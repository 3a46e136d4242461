"""Writes a file as a whole, or not at all. Only its owner can read it: it may have personal data and secrets."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from cli.command import WRONG_USAGE, CommandFailed

STDOUT = "-"


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
