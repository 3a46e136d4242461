"""The courier's session files. Each holds an account's authorization key and the peers it has seen.

A session has one connection at a time, so a file is locked by one process; the lock ends with the process. A bot may
have many sessions: each process takes the first free file. A user has one session. A session file is full access to
the account, so only its owner can read it.
"""

import fcntl
import hashlib
from pathlib import Path
from typing import IO

from telethon.sessions import SQLiteSession, StringSession

from couriers.sending import SetupError

MAX_PROCESSES = 64  # of one bot on one machine
_DATA_CENTRE = 2  # Telethon's default for a session without one


class LockedSession:
    """A session file and the lock on it."""

    def __init__(self, path: Path, lock: IO[str]) -> None:
        self._lock = lock
        self.path = path
        self.session = SQLiteSession(str(path))

    def release(self) -> None:
        self._lock.close()


def bot_session(directory: Path, token: str) -> LockedSession:
    """Return a session of the bot that no other process uses. Raises SetupError if all are in use."""
    for number in range(MAX_PROCESSES):
        if session := _lock(directory / f"bot-{token.partition(':')[0]}-{number}.session"):
            return session
    raise SetupError(f"{MAX_PROCESSES} processes of this bot run on this machine already: stop some")


def user_session(directory: Path, session: str) -> LockedSession:
    """Return the session of a user: `session` is a StringSession's string, or the name of a file in `directory`.

    Raises SetupError if it is neither, or if another process uses it.
    """
    parsed = _parse(session)
    name = f"user-{hashlib.blake2b(session.encode(), digest_size=8).hexdigest()}" if parsed else Path(session).stem
    path = directory / f"{name}.session"
    if parsed is None and not path.exists():
        raise SetupError(f"there is no session {path}, and ADA_TELEGRAM_SESSION is no session string: sign in first")
    locked = _lock(path)
    if locked is None:
        raise SetupError(f"another process uses {path}: a user's session has one connection, run one courier for it")
    if parsed is not None:
        locked.session.set_dc(parsed.dc_id, parsed.server_address, parsed.port)
        locked.session.auth_key = parsed.auth_key
    return locked


def _parse(session: str) -> StringSession | None:
    try:
        return StringSession(session)
    except (ValueError, ArithmeticError):
        return None


def _lock(path: Path) -> LockedSession | None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.touch(mode=0o600)
    lock = path.with_suffix(".lock").open("w", encoding="utf-8")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    return LockedSession(path, lock)


def use_server(session: SQLiteSession, host: str, port: int) -> None:
    """Point the session to a test server instead of Telegram's own."""
    if (session.server_address, session.port) != (host, port):
        session.set_dc(session.dc_id or _DATA_CENTRE, host, port)
