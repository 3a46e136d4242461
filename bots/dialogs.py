"""Dialogs: runs a conversation for each event, saves the new state of the dialog, and sends the replies.

    event ─▶ state ─▶ conversation ─▶ turn and new state, saved in one step ─▶ replies, one by one

Guarantees: a process that is killed at any point loses nothing: the next attempt continues with the saved turn, so that
the conversation does not run again and a reply that was sent is not sent again (except a reply that was sent in the
moment of the death, or whose provider did not answer). A reply that cannot be sent is tried until the event expires. If
it is lost even so, the dialog stands where the person has brought it. The state is kept for a day after the last event.
"""

import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta

import msgspec
from msgspec.structs import replace

from bots.catalogue import text
from bots.conversation.state import State, Turn
from bots.dialog_event import DialogEvent
from bots.replies import Reply
from core.errors import StoreError
from core.orders.following import NotSent, SendLater
from core.queue import Attempt, Bury, Result, Retry
from core.redis.keys import KEYS
from core.redis.store import Store

log = logging.getLogger(__name__)

LIFETIME = timedelta(days=1)
_GIVES_UP = 3
"""Failures of our own, of a conversation or of a reply, after which an event is given up. What the provider or the
store refuses is none.
"""

Converse = Callable[[DialogEvent, State], Awaitable[Turn]]
"""Answers an event. If it runs again for the same event, it must have no further effect."""

Send = Callable[[DialogEvent, Reply], Awaitable[None]]
"""Sends one reply. Raises SendLater, NotSent, StoreError: then it is sent again."""


class _Progress(msgspec.Struct, frozen=True, omit_defaults=True):
    """The checkpoint of an attempt: a turn, how many of its replies were sent, and how often one could not be."""

    turn: Turn
    sent: int = 0
    failures: int = 0

    @property
    def is_over(self) -> bool:
        return self.sent == len(self.turn.replies)

    def encoded(self) -> str:
        return msgspec.json.encode(self).decode()


class Dialogs:
    """The dialogs of one tenant in all channels. Methods raise StoreError."""

    def __init__(self, store: Store, tenant: str) -> None:
        self._store = store
        self._tenant = tenant

    async def load(self, event: DialogEvent) -> State:
        """Return the state of the dialog with the sender of the event."""
        stored = await self._store.command("GET", KEYS["dialog"].at(self._shard(event), *self._of(event)))
        return msgspec.json.decode(stored, type=State) if stored else State()

    async def save(self, event: DialogEvent, attempt: Attempt, checkpoint: str, state: State) -> bool:
        """Store the checkpoint of the attempt and the state in one step; a state without content is removed. Returns
        False if the attempt must stop; then nothing is stored.
        """
        task, stored = attempt.task, "" if state == State() else msgspec.json.encode(state).decode()
        kept_ms = LIFETIME // timedelta(milliseconds=1)
        words = (task.id, task.token, checkpoint, *self._of(event), stored, kept_ms)
        return bool(await self._store.run("save_turn", self._shard(event), *words))

    def _shard(self, event: DialogEvent) -> int:
        """Return where the dialog is: with the task of its event, which has the lane of the person."""
        return self._store.shard_of_person(*self._of(event))

    def _of(self, event: DialogEvent) -> tuple[str, str, str]:
        return self._tenant, event.channel, event.address


class Answering:
    """Processes events: its `handle` is for `bots.event_worker.event_worker`."""

    def __init__(self, dialogs: Dialogs, converse: Converse, send: Send) -> None:
        self._dialogs = dialogs
        self._converse = converse
        self._send = send

    async def handle(self, event: DialogEvent, attempt: Attempt) -> Result:
        """Answer one event. Returns when to try again if a reply cannot be sent now. What `converse` raises leads to
        another attempt.
        """
        try:
            return await self._answer(event, attempt)
        except SendLater as pause:
            return Retry(pause.after)
        except (NotSent, StoreError) as fault:
            log.warning("event %s is answered later: %s", event.id, fault)
            return Retry(error=str(fault))

    async def _answer(self, event: DialogEvent, attempt: Attempt) -> Result:
        progress = await self._begin(event, attempt)
        while progress and not progress.is_over:
            try:
                await self._send(event, progress.turn.replies[progress.sent])
            except (SendLater, NotSent, StoreError):
                raise
            except Exception as fault:  # a reply that can never be sent must not hold up the person's next events
                log.exception("event %s: its reply %s cannot be sent", event.id, progress.sent + 1)
                return _after_failure(progress, f"{type(fault).__name__}: {fault}")
            progress = replace(progress, sent=progress.sent + 1)
            if not await attempt.save(progress.encoded()):
                break
        return None

    async def _begin(self, event: DialogEvent, attempt: Attempt) -> _Progress | None:
        """Return the saved progress of an interrupted attempt, or a new turn; None if the attempt must stop."""
        if attempt.checkpoint:
            return msgspec.json.decode(attempt.checkpoint, type=_Progress)
        progress = _Progress(await self._turn(event, attempt))
        is_saved = await self._dialogs.save(event, attempt, progress.encoded(), progress.turn.state)
        return progress if is_saved else None

    async def _turn(self, event: DialogEvent, attempt: Attempt) -> Turn:
        state = await self._dialogs.load(event)
        try:
            return await self._converse(event, state)
        except StoreError:
            raise
        except Exception:  # the person gets an answer, whatever it is
            if attempt.task.attempts < _GIVES_UP:
                raise
            log.exception("event %s failed %s times", event.id, _GIVES_UP)
            return Turn([Reply(text("failed", event.locale))], state)


def _after_failure(progress: _Progress, error: str) -> Result:
    """Try again; bury the event after too many failures."""
    progress = replace(progress, failures=progress.failures + 1)
    if progress.failures == _GIVES_UP:
        return Bury(error)
    return Retry(checkpoint=progress.encoded(), error=error)
