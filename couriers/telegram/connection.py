"""The one connection to Telegram of a courier, shared by all attempts, and the session files behind it.

Telethon's client, with a plain handling of updates. The only use of private parts of Telethon.

Telethon's own reconnection repeats unanswered requests without end. A request on which the connection breaks would then
break it again and again, for all messages. So the connection simply ends here, its unanswered requests raise
ConnectionError, and the next attempt connects again, once for all waiting attempts.

A session file holds an account's authorization key and the peers it has seen: it is full access to the account, so only
its owner can read it. A session has one connection at a time, so a file is locked by one process; the lock ends with
the process. A bot may have many sessions: each process takes the first free file. A user has one session.
"""

import asyncio
import fcntl
import hashlib
import struct
from collections.abc import Awaitable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import IO, Any

from telethon import TelegramClient
from telethon.errors import AuthKeyNotFound, RPCError
from telethon.sessions import SQLiteSession, StringSession
from telethon.tl import types

from couriers.provider_calls import noted_call
from couriers.sending import ReadMark, ReceivedText, SetupError
from couriers.telegram.outcomes import full_name

MAX_PROCESSES = 64  # of one bot on one machine
_MOST_PRESSES = 1000  # that wait; if another channel gets them, none is taken out
_DATA_CENTRE = 2  # Telethon's default for a session without one
SERVICE_ACCOUNTS = frozenset({777000, 42777})
"""Telegram's own accounts: what they write, such as codes of sign-ins, is no message of a person."""


class _NoWaits(dict[int, float]):
    """Keeps none: the runtime throttles a bot's methods. Telethon would refuse a request by its own clock."""

    def __setitem__(self, method: int, until: float) -> None:
        pass


class AccountClient(TelegramClient):  # type: ignore[misc] # Telethon has no types
    """A TelegramClient that keeps only read marks and messages of private chats and discards all other updates.

    `is_bot`: it keeps presses of buttons, and of messages only the signal `news`: `couriers.telegram.receive` reads
    them.
    """

    def __init__(self, *args: Any, is_bot: bool, **options: Any) -> None:
        super().__init__(*args, **options)
        self._is_bot = is_bot
        if is_bot:
            self._flood_waited_requests = _NoWaits()
        self.news = asyncio.Event()
        self.presses: asyncio.Queue[Any] = asyncio.Queue(_MOST_PRESSES)
        self.read_marks: asyncio.Queue[ReadMark] = asyncio.Queue()
        self.received: asyncio.Queue[ReceivedText] = asyncio.Queue()

    async def _update_loop(self) -> None:
        """Keep read marks, presses and what people write, discard the rest.

        Telethon treats each message that it sends as an update and looks for gaps in their numbers. If another process
        of the same bot sends as well, there are gaps, and each process then downloads through updates.getDifference
        what all the others sent. Telethon 1.45 has no public option against this: `receive_updates=False` concerns only
        the updates that Telegram sends unasked. A read mark needs no order: it covers all messages before it.
        Test: test_processes_of_one_bot_do_not_download_what_the_others_sent.
        """
        while True:
            for update in _updates_in(await self._updates_queue.get()):
                if self._is_bot:
                    self._signal(update)
                elif isinstance(update, types.UpdateReadHistoryOutbox) and isinstance(update.peer, types.PeerUser):
                    self.read_marks.put_nowait(ReadMark(str(update.peer.user_id), update.max_id))
                elif text := _received(update):
                    self.received.put_nowait(text)

    def _signal(self, update: Any) -> None:
        if isinstance(update, types.UpdateBotCallbackQuery):
            if self.presses.full():
                self.presses.get_nowait()
            self.presses.put_nowait(update)
        elif isinstance(update, types.UpdatesTooLong) or (
            isinstance(update, types.UpdateShortMessage | types.UpdateNewMessage | types.UpdateEditMessage)
            and not getattr(getattr(update, "message", None), "out", getattr(update, "out", False))
        ):
            self.news.set()


def _received(update: Any) -> ReceivedText | None:
    """Return a private message of a person; None for any other update."""
    if isinstance(update, types.UpdateShortMessage):
        user, message = update.user_id, update
    elif isinstance(update, types.UpdateNewMessage) and isinstance(update.message, types.Message):
        user, message = getattr(update.message.peer_id, "user_id", None), update.message
    else:
        return None
    if user is None or user in SERVICE_ACCOUNTS or message.out:
        return None
    media = getattr(message, "media", None)
    files = int(media is not None and not isinstance(media, types.MessageMediaWebPage))
    quoted = getattr(message.reply_to, "reply_to_msg_id", None) or ""
    return ReceivedText(str(user), f"{user}.{message.id}", message.message or "", str(quoted), files, message.date)


def _updates_in(received: Any) -> Iterable[Any]:
    """Return the updates of what Telegram sent: one, several, or itself."""
    if isinstance(received, types.UpdateShort):
        return (received.update,)
    return getattr(received, "updates", None) or (received,)


FAILURES = (RPCError, OSError, AuthKeyNotFound)  # raised by `connect` and `request`; a TimeoutError is an OSError


class TelegramConnection:
    """Call `connect` before `request`: if `connect` fails, nothing was sent; if `request` fails, it may have been.
    While a connection is being made requests wait for it.
    """

    def __init__(self, client: TelegramClient, timeout: timedelta) -> None:
        self._client = client
        self._timeout = timeout.total_seconds()
        self._connecting: asyncio.Task[None] | None = None
        self._answers = 0
        self._is_dead = False  # no answer during a whole timeout: the connection was cut without notice

    async def connect(self) -> None:
        """Connect unless connected. Raises one of FAILURES."""
        if self._connecting is None:
            if self._client.is_connected() and not self._is_dead:
                return
            self._connecting = asyncio.create_task(self._reconnect())
            self._connecting.add_done_callback(self._connect_ended)
        with _noted("connect"):
            await asyncio.shield(self._connecting)

    async def _reconnect(self) -> None:
        await self._disconnect()  # ends what Telethon still runs for the previous connection
        try:
            async with asyncio.timeout(self._timeout):
                await _raising_connection_errors(self._client.connect())
            self._is_dead = False
        except BaseException:  # also a cancellation: Telethon counts as connected before its first answer
            await self._disconnect()
            raise

    async def _disconnect(self) -> None:
        await self._client.disconnect()
        _retrieve_exception(self._client.disconnected)

    def _connect_ended(self, task: asyncio.Task[None]) -> None:
        self._connecting = None
        _retrieve_exception(task)  # the attempts that waited for it may all be cancelled

    async def request(self, request: Any) -> Any:
        """Return Telegram's answer to one request. Raises RPCError for a refusal, OSError if there was no answer."""
        with _noted(type(request).__name__.removesuffix("Request")):
            return await self.call(self._client(request))

    async def call(self, call: Awaitable[Any], timeout: float | None = None) -> Any:
        """Call a method of Telethon that makes requests itself, in the same way. `timeout`: seconds, None for those of
        one request.
        """
        answers = self._answers
        if self._connecting is not None:  # one that breaks each connection would break this one before it is usable
            await self.connect()
        try:
            async with asyncio.timeout(timeout or self._timeout):
                answer = await _raising_connection_errors(self._while_connected(call))
        except TimeoutError:
            self._is_dead = answers == self._answers
            raise
        except RPCError:
            self._answers += 1
            raise
        self._answers += 1
        return answer

    async def _while_connected(self, call: Awaitable[Any]) -> Any:
        """Wait for a call at most until the connection ends.

        Telethon forgets a request that is made while it closes the connection, and its answer would never come.
        """
        calling, ended = asyncio.ensure_future(call), self._client.disconnected
        try:
            await asyncio.wait({calling, ended}, return_when=asyncio.FIRST_COMPLETED)
            if not calling.done():
                raise ConnectionError("the connection ended before the answer")
            return calling.result()
        finally:
            calling.cancel()
            ended.cancel()
            _retrieve_exception(ended)

    async def close(self) -> None:
        if self._connecting is not None:
            self._connecting.cancel()
        await self._disconnect()


@contextmanager
def _noted(method: str) -> Iterator[None]:
    """Note a call, with the name that Telegram gives an error."""
    with noted_call(method) as call:
        try:
            yield
        except RPCError as error:
            call.answered(abs(error.code or 0), full_name(error))
            raise


def _retrieve_exception(future: asyncio.Future[None]) -> None:
    """Mark the exception as retrieved; otherwise asyncio logs it as lost."""
    if future.done() and not future.cancelled():
        future.exception()


async def _raising_connection_errors(call: Awaitable[Any]) -> Any:
    """Raise ConnectionError if the connection ends. Telethon cancels the waiting request instead."""
    try:
        return await call
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise ConnectionError("the connection ended before the answer") from None
    except (EOFError, BufferError) as error:  # asyncio.IncompleteReadError; an answer that is not MTProto
        raise ConnectionError(type(error).__name__) from error


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
        raise SetupError(  # without its text: it may be a mistyped session string, which is a secret
            f"ADA_TELEGRAM_SESSION is no session string, and {directory} has no session of this name: sign in first"
        )
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
    except (ValueError, ArithmeticError, struct.error):  # the last of one that was cut off
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
