"""Brings the embedded server's append-only file to the disk, from beside the server (docs/decisions/0021).

    server ── write ──▶ kernel, before it answers      we ── fsync, once a second ──▶ disk

Guarantee: what the server acknowledged survives its kill -9 at any moment. A power cut takes what came after the last
sync had begun: a second's work, on a slow disk as many as a sync lasts more.
"""

import asyncio
import logging
import os
from pathlib import Path

log = logging.getLogger(__name__)

_EVERY = 1.0


async def keep_synced(directory: Path) -> None:
    """Until it is cancelled. `directory`: the server's. A disk that fails is told once, and tried again."""
    syncing, fault = Syncing(directory), ""
    while True:
        await asyncio.sleep(_EVERY)
        try:
            await asyncio.to_thread(syncing.sync)
            fault = ""
        except OSError as failed:
            if str(failed) != fault:
                log.error("the append-only file cannot be brought to the disk: %s", failed)
            fault = str(failed)


class Syncing:
    """Knows how much of each file is on the disk."""

    def __init__(self, directory: Path) -> None:
        self._place = directory / "appendonlydir"
        self._synced: dict[Path, int] = {}

    def sync(self) -> int:
        """Bring to the disk what has been written since. How many files that was. Raises OSError."""
        grown = [(file, size) for file, size in self._sizes().items() if size != self._synced.get(file)]
        for file, size in grown:
            self._bring(file)
            self._synced[file] = size
        return len(grown)

    def _sizes(self) -> dict[Path, int]:
        """Of the files that there are; a rewrite makes new ones and takes old ones away."""
        try:
            sizes = {Path(entry.path): entry.stat().st_size for entry in os.scandir(self._place)}
        except FileNotFoundError:  # before the server has made its folder, or a file that just went
            return {}
        self._synced = {file: size for file, size in self._synced.items() if file in sizes}
        return sizes

    def _bring(self, file: Path) -> None:
        try:
            number = os.open(file, os.O_RDONLY)
        except FileNotFoundError:
            return
        try:
            os.fsync(number)
        finally:
            os.close(number)
