"""Real servers for the tests: started, killed, frozen and started again on the same data."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import RedisError

from cli.processes.die_with_parent import tethered
from cli.processes.embedded_valkey import Embedded, bundled, prepare

DEBIAN_REDIS = shutil.which("redis-server")

on_both_servers = pytest.mark.parametrize("server", ["valkey", "redis"], indirect=True)
"""For tests whose subject could differ between Valkey and Debian's Redis: the fixture `server` is each in turn."""


def needs_package(package: str, program: str) -> pytest.MarkDecorator:
    """Skips where the program of a system package is missing; the end of the run names the package."""
    return pytest.mark.skipif(shutil.which(program) is None, reason=lacking(package))


def lacking(package: str) -> str:
    """The reason by which the report recognises a skip for want of a package."""
    return f"needs the system package {package}"


def program_of(kind: str) -> Path:
    """The server program for "valkey" or "redis"; skips the test where Debian's Redis is not installed."""
    if kind == "valkey":
        return bundled()
    if DEBIAN_REDIS is None:
        pytest.skip(lacking("redis-server"))
    return Path(DEBIAN_REDIS)


class Server:
    """One server with users' settings (append-only file on, a port of its own) on a directory that outlives it.

    It ends with the test process, however that ends. Every method returns when its effect is there.
    """

    def __init__(self, directory: Path, program: Path | None = None) -> None:
        self.place: Embedded = prepare(directory)
        self.log = directory / "server.log"
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return self.place.url

    def url_through(self, port: int) -> str:
        """The same server through whatever hands on what comes to another port."""
        return replace(self.place, port=port).tcp_url

    @property
    def pid(self) -> int:
        """Raises RuntimeError when the server is down."""
        if self._process is None:
            raise RuntimeError("the server is down")
        return self._process.pid

    @property
    def is_up(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Comes back when the server answers and has loaded its data."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                tethered(self.place.command(self._program)),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._await_answer()

    def stop(self) -> None:
        """Ends it in good order."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Ends it as a power cut would, but for what the kernel has already taken."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Starts it again on its data; ends it in good order first if it is up."""
        if self.is_up:
            self.stop()
        self.start()

    def pause(self) -> None:
        """Freezes it: connections stay open and nothing is answered."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def empty(self) -> None:
        """No key, no script, the settings of the start; up again if the last test left it down or frozen."""
        if not self.is_up:
            self.start()
        self.resume()
        with Redis.from_url(self.url) as client:
            client.flushall()
            client.script_flush()
            client.config_set("notify-keyspace-events", "Kgx")
            client.config_set("maxmemory", "0")
            client.config_set("maxmemory-policy", "noeviction")

    def all_keys(self) -> list[str]:
        with Redis.from_url(self.url, decode_responses=True) as client:
            return sorted(client.scan_iter(count=1000))

    def _end(self, how: signal.Signals) -> None:
        process = self._process
        if process is None:
            return
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGCONT)
        process.send_signal(how)
        process.wait()
        assert process.stdin is not None
        process.stdin.close()
        self._process = None

    def _await_answer(self) -> None:
        with Redis.from_url(self.url, socket_timeout=5) as client:
            await_sync(lambda: self._answers(client), within=20, what=f"an answer of the server ({self.log})")

    def _answers(self, client: Redis) -> bool:
        if not self.is_up:
            raise RuntimeError(f"the server ended at its start: {self.log.read_text()[-2000:]}")
        try:
            return bool(client.ping())
        except RedisError:
            return False


def await_sync(holds: Callable[[], bool], within: float, what: str) -> None:
    """The plain sister of `until`, for the start of processes outside any event loop."""
    limit = time.monotonic() + within
    while not holds():
        if time.monotonic() > limit:
            raise TimeoutError(f"waited {within} s for {what}")
        time.sleep(0.005)
