"""The session files of the courier, which hold an account's key to Telegram and whom it has met.

A session has one live connection at a time, so a file belongs to one process, by a lock that ends with it. A bot may
have many sessions: each process takes the first free file. A user's session is one. Whoever reads a session file is
the account, so nobody else can.
"""

import fcntl
import hashlib
from pathlib import Path
from typing import IO

from telethon.sessions import SQLiteSession, StringSession

from core.courier import SetupError

MOST_PROCESSES = 64  # of one bot on one machine
_DATA_CENTRE = 2  # Telethon's own choice where a session has none


class Held:
    """A session file and the lock that makes it ours."""

    def __init__(self, path: Path, lock: IO[str]) -> None:
        self._lock = lock
        self.path = path
        self.session = SQLiteSession(str(path))

    def release(self) -> None:
        self._lock.close()


def of_bot(directory: Path, token: str) -> Held:
    """A session of the bot that no other process uses. Raises SetupError when all are taken."""
    for number in range(MOST_PROCESSES):
        if held := _hold(directory / f"bot-{token.partition(':')[0]}-{number}.session"):
            return held
    raise SetupError(f"{MOST_PROCESSES} processes of this bot run on this machine already: stop some")


def of_user(directory: Path, session: str) -> Held:
    """The session of a user's account: a string as StringSession gives it, or the name of a file in `directory`.

    Raises SetupError when it is neither, or when another process uses it.
    """
    kept = _parsed(session)
    name = f"user-{hashlib.blake2b(session.encode(), digest_size=8).hexdigest()}" if kept else Path(session).stem
    path = directory / f"{name}.session"
    if kept is None and not path.exists():
        raise SetupError(f"there is no session {path}, and ADA_TELEGRAM_SESSION is no session string: sign in first")
    held = _hold(path)
    if held is None:
        raise SetupError(f"another process uses {path}: a user's session has one connection, run one courier for it")
    if kept is not None:
        held.session.set_dc(kept.dc_id, kept.server_address, kept.port)
        held.session.auth_key = kept.auth_key
    return held


def _parsed(session: str) -> StringSession | None:
    try:
        return StringSession(session)
    except (ValueError, ArithmeticError):
        return None


def _hold(path: Path) -> Held | None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.touch(mode=0o600)
    lock = path.with_suffix(".lock").open("w", encoding="utf-8")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    return Held(path, lock)


def at_server(session: SQLiteSession, host: str, port: int) -> None:
    """Lead the session to a test server instead of Telegram's own."""
    if (session.server_address, session.port) != (host, port):
        session.set_dc(session.dc_id or _DATA_CENTRE, host, port)
