"""Dialogs: runs a conversation for each update, sends its replies and stores the state of the dialog in Redis.

    update ─▶ state ─▶ conversation ─▶ turn, saved with the task ─▶ replies, one by one ─▶ new state

Guarantees: a process that is killed at any point loses nothing: the next attempt continues with the saved turn, so that
the conversation does not run again and a reply that was sent is not sent again (except one that was sent in the moment
of the death). The state is kept for a day after the last update.
"""

import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta

import msgspec

from bots.catalogue import text
from bots.conversation.state import State, Turn
from bots.replies import Reply
from bots.updates import Update
from core.errors import AdaError
from core.queue import Attempt, Result, Retry
from core.redis.keys import KEYS
from core.redis.store import Store

log = logging.getLogger(__name__)

LIFETIME = timedelta(days=1)
_GIVES_UP = 3
"""Attempts after which the person is asked to try again later."""


class SendLater(AdaError):
    """The provider asks for a pause before the next message. Nothing was sent."""

    def __init__(self, after: timedelta) -> None:
        super().__init__(f"the provider asks for a pause of {after}")
        self.after = after


Converse = Callable[[Update, State], Awaitable[Turn]]
"""Answers an update. If it runs again for the same update, it must have no further effect."""

Send = Callable[[Update, Reply], Awaitable[None]]
"""Sends one reply. Raises SendLater if the provider asks for a pause."""


class _Progress(msgspec.Struct, frozen=True):
    """The checkpoint of an attempt: a turn, and how many of its replies were sent."""

    turn: Turn
    sent: int = 0


class Dialogs:
    """The dialogs of one tenant in all channels."""

    def __init__(self, store: Store, tenant: str) -> None:
        self._store = store
        self._tenant = tenant

    async def load(self, update: Update) -> State:
        """The state of the dialog with the sender of the update."""
        stored = await self._store.command("GET", self._key(update))
        return msgspec.json.decode(stored, type=State) if stored else State()

    async def save(self, update: Update, state: State) -> None:
        """Store the state; one without content is removed."""
        if state == State():
            await self._store.command("DEL", self._key(update))
        else:
            text = msgspec.json.encode(state).decode()
            await self._store.command("SET", self._key(update), text, "EX", LIFETIME // timedelta(seconds=1))

    def _key(self, update: Update) -> str:
        return KEYS["dialog"].at(0, self._tenant, update.channel, update.address)


class Answering:
    """Processes updates: its `handle` is for `bots.updates.update_worker`."""

    def __init__(self, dialogs: Dialogs, converse: Converse, send: Send) -> None:
        self._dialogs = dialogs
        self._converse = converse
        self._send = send

    async def handle(self, update: Update, attempt: Attempt) -> Result:
        """Answer one update. What `converse` and `send` raise leads to another attempt."""
        progress = await self._begin(update, attempt)
        while progress and progress.sent < len(progress.turn.replies):
            try:
                await self._send(update, progress.turn.replies[progress.sent])
            except SendLater as pause:
                return Retry(pause.after)
            progress = await self._saved(attempt, _Progress(progress.turn, progress.sent + 1))
        if progress:
            await self._dialogs.save(update, progress.turn.state)
        return None

    async def _begin(self, update: Update, attempt: Attempt) -> _Progress | None:
        """The saved progress of an interrupted attempt, or a new turn; None if the attempt must stop."""
        if attempt.checkpoint:
            return msgspec.json.decode(attempt.checkpoint, type=_Progress)
        state = await self._dialogs.load(update)
        try:
            turn = await self._converse(update, state)
        except Exception:  # the person gets an answer, whatever it is
            if attempt.task.attempts < _GIVES_UP:
                raise
            log.exception("update %s failed %s times", update.id, _GIVES_UP)
            turn = Turn([Reply(text("failed", update.locale))], state)
        return await self._saved(attempt, _Progress(turn))

    async def _saved(self, attempt: Attempt, progress: _Progress) -> _Progress | None:
        """Save the progress, unless there is nothing to repeat."""
        if not progress.turn.replies:
            return progress
        return progress if await attempt.save(msgspec.json.encode(progress).decode()) else None
