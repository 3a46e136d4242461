"""Backups while everything goes on, each restored into a second installation and audited there. Each tenth of them, and
the last one, is moved into a cluster and back.
"""

import asyncio
import shutil
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path

from tests.support.cluster import Cluster
from tests.support.forked import run_ada
from tests.system.soak.nemesis import Log

_MOVED = 10
_REST = 4
"""How many times as long as a backup blows may fall before the next one without blows."""


class Backups:
    """`calm`: held while no blow falls. `done`: how many were restored, met by a blow, and moved."""

    def __init__(self, url: str, shards: int, directory: Path, calm: asyncio.Lock, log: Log) -> None:
        self._url, self._shards, self._directory = url, str(shards), directory
        self._calm, self._log = calm, log
        self._calm_from = time.monotonic()
        self.done: Counter[str] = Counter()
        self.findings: list[str] = []

    async def take(self) -> None:
        """Write a backup, now and then without blows, and restore it. One that a blow has met ends with an error."""
        is_calm = time.monotonic() >= self._calm_from
        async with self._calm if is_calm else nullcontext():
            began = time.monotonic()
            error = await self._back_up(self._url)
            if is_calm:
                self._calm_from = time.monotonic() + _REST * (time.monotonic() - began)
        if not error:
            await self._restore("second")
            self.done["restores"] += 1
            if self.done["restores"] % _MOVED == 0:
                await self.move()
        elif is_calm or "Traceback" in error:
            self.findings.append(error)
        else:
            self.done["met by a blow"] += 1

    async def move(self) -> None:
        """Move what was restored last into a cluster, and a backup of that back to one server. `migrate` compares every
        key, and each verb audits what it has written.
        """
        directory = self._directory / "target"
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
        cluster = Cluster(directory, replicas=0)
        try:
            await asyncio.to_thread(cluster.start)
            environment = {"ADA_DATA": self._data("second")}
            if error := await self._ada(environment, "migrate", "--to", cluster.url) or await self._back_up(
                cluster.url
            ):
                self.findings.append(error)
            else:
                await self._restore("third")
                self.done["moves into a cluster and back"] += 1
        finally:
            cluster.close()

    async def _back_up(self, url: str) -> str:
        return await self._ada({"ADA_REDIS_URL": url, "ADA_DATA": self._data("none")}, "backup", self._file)

    async def _restore(self, name: str) -> None:
        if error := await self._ada({"ADA_DATA": self._data(name)}, "restore", self._file, "--replace"):
            self.findings.append(error)

    async def _ada(self, environment: Mapping[str, str], *words: str) -> str:
        """Run a verb. Return "" if it has ended well, else the end of what it has printed."""
        began = time.monotonic()
        done = await asyncio.to_thread(run_ada, words, {"ADA_SHARDS": self._shards, **environment}, self._directory)
        if done.returncode == 0:
            self._log(f"{words[0]} took {time.monotonic() - began:.1f} s")
            return ""
        error = f"{words[0]} ended with {done.returncode}: {(done.stdout + done.stderr).strip()[-3000:]}"
        self._log(error)
        return error

    @property
    def _file(self) -> str:
        return str(self._directory / "all.backup")

    def _data(self, name: str) -> str:
        return str(self._directory / f"data-{name}")
