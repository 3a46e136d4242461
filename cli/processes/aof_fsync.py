"""Calls fsync on the append-only file of the embedded server, from a process beside it (docs/decisions/0021).

    server: write() to the kernel, then reply          this module: fsync() once a second

Guarantee: what the server acknowledged survives kill -9 of the server. A power cut loses at most what was written after
the last fsync began: about one second, plus the duration of one fsync on a slow disk.
"""

import asyncio
import logging
import os
from pathlib import Path

log = logging.getLogger(__name__)

_INTERVAL = 1.0
"""Seconds between two rounds."""


async def fsync_periodically(directory: Path) -> None:
    """Run until it is cancelled. `directory` is the server's. Logs a disk error once and keeps trying."""
    files, last_error = AppendOnlyFiles(directory), ""
    while True:
        await asyncio.sleep(_INTERVAL)
        try:
            await asyncio.to_thread(files.fsync)
            last_error = ""
        except OSError as error:
            if str(error) != last_error:
                log.error("fsync of the append-only file failed: %s", error)
            last_error = str(error)


class AppendOnlyFiles:
    """The append-only files of one server. Remembers the size of each file at its last fsync."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory / "appendonlydir"
        self._synced_sizes: dict[Path, int] = {}

    def fsync(self) -> int:
        """Call fsync on every file whose size has changed; return their number. Raises OSError."""
        changed = [(file, size) for file, size in self._sizes().items() if size != self._synced_sizes.get(file)]
        for file, size in changed:
            self._fsync(file)
            self._synced_sizes[file] = size
        return len(changed)

    def _sizes(self) -> dict[Path, int]:
        """Return the files that exist now. An AOF rewrite creates files and removes others."""
        try:
            sizes = {Path(entry.path): entry.stat().st_size for entry in os.scandir(self._directory)}
        except FileNotFoundError:  # the server has not created its directory yet, or has just removed a file
            return {}
        self._synced_sizes = {file: size for file, size in self._synced_sizes.items() if file in sizes}
        return sizes

    def _fsync(self, file: Path) -> None:
        try:
            descriptor = os.open(file, os.O_RDONLY)
        except FileNotFoundError:
            return
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
