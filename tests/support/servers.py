"""Real servers for tests: they can be started, killed, paused, and started again on the same data."""

import os
import shutil
import signal
import subprocess
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import RedisError

from cli.processes.die_with_parent import die_with_parent
from cli.processes.embedded_valkey import EmbeddedValkey, prepare, server_program
from tests.support.limits import REPLY
from tests.support.waiting import await_sync

DEBIAN_REDIS = shutil.which("redis-server")

on_both_servers = pytest.mark.parametrize("server", ["valkey", "redis"], indirect=True)
"""Runs a test on Valkey and on Debian's Redis, for subjects that could differ (Lua, expiry, persistence)."""


@pytest.fixture(name="shards")
def several_shards() -> int:
    """Five shards for the tests of a file that imports it: what they show stands in the shard of its tenant or person,
    which is not the first one. A single shard differs in nothing, and all other files have it.
    """
    return 5


def needs_package(package: str, program: str) -> pytest.MarkDecorator:
    """Skips the test if the program of a system package is missing; the summary names the package."""
    return pytest.mark.skipif(shutil.which(program) is None, reason=lacking(package))


def lacking(package: str) -> str:
    """Return the reason of a skip because of a missing package."""
    return f"needs the system package {package}"


def program_of(kind: str) -> Path:
    """Return the server program for "valkey" or "redis". Skips the test if Debian's Redis is not installed."""
    if kind == "valkey":
        return server_program()
    if DEBIAN_REDIS is None:
        pytest.skip(lacking("redis-server"))
    return Path(DEBIAN_REDIS)


class Server:
    """One server with the settings of the embedded one, on a directory that survives it.

    It ends with the test process. Every method returns after its effect.
    """

    def __init__(self, directory: Path, program: Path | None = None) -> None:
        self.place: EmbeddedValkey = prepare(directory)
        self.log = directory / "server.log"
        self.program = program
        self._process: subprocess.Popen[bytes] | None = None
        # Kept for all tests: opening a connection takes longer than most tests. It connects again by itself.
        self._client = Redis.from_url(self.url, decode_responses=True, driver_info=None, socket_timeout=REPLY)

    @property
    def url(self) -> str:
        return self.place.url

    def url_through(self, port: int) -> str:
        """Return the address of this server through a relay on another port."""
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
        """Returns when the server has loaded its data and replies."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                die_with_parent(self.place.command(self.program)),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._await_reply()

    def stop(self) -> None:
        """Ends it with SIGTERM."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Ends it with SIGKILL. What it wrote to the kernel survives, unlike in a power cut."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Starts it again on its data; stops it first if it is up."""
        if self.is_up:
            self.stop()
        self.start()

    def pause(self) -> None:
        """Freezes it: connections stay open, and it does not reply."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def empty(self) -> None:
        """Removes all keys and resets the settings; starts it if the last test left it down or paused.

        Functions stay loaded: their names have a hash, so one of another test is never run by mistake.
        """
        if not self.is_up:
            self.start()
        self.resume()
        with self._client.pipeline(transaction=False) as calls:
            calls.flushall()
            calls.config_set("notify-keyspace-events", "Kgx")
            calls.config_set("maxmemory", "0")
            calls.config_set("maxmemory-policy", "noeviction")
            calls.execute()

    def all_keys(self) -> list[str]:
        return sorted(self._client.scan_iter(count=1000))

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
        self._client.close()
        self._process = None

    def _await_reply(self) -> None:
        with Redis.from_url(self.url, socket_timeout=5) as client:
            await_sync(lambda: self._replies(client), what=f"a reply of the server ({self.log})")

    def _replies(self, client: Redis) -> bool:
        if not self.is_up:
            raise RuntimeError(f"the server ended during its start: {self.log.read_text()[-2000:]}")
        try:
            return bool(client.ping())
        except RedisError:
            return False
