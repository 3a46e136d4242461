"""Tasks that show a sender the status of a delivery while outcomes arrive, until it has ended.

    begin ─▶ a task of the tube `status.<channel>` ─▶ wait for a change ─▶ show it ─▶ the task again, later

A channel with editing changes one message; one with text alone sends the result once.

Guarantees: any process goes on where another has stopped; a message is changed at most once a second and only if
there is something new, so that the limits of the provider are kept. A delivery that is not due yet costs one read a
minute.
"""

import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Generic, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from core.deliveries.tracker import Tracker
from core.errors import AdaError, NotFound, StoreError
from core.model.clock import Backoff
from core.model.history import History
from core.model.history_key import HistoryKey
from core.model.states import DeliveryState
from core.queue import Attempt, NewTask, QueueClient, Result, Retry, Tube, Worker

log = logging.getLogger(__name__)

_ATTEMPTS = 1_000_000
"""Each look is an attempt: a delivery may be under way for days."""
_BACKOFF = Backoff(timedelta(seconds=1), timedelta(seconds=30))
_LEASE = timedelta(seconds=5)
_EVERY = timedelta(seconds=1)
_RARELY = timedelta(seconds=5)
_SCHEDULED = timedelta(minutes=1)
CONCURRENCY = 200


class SendLater(AdaError):
    """The provider asks for a pause before the next message. Nothing was sent."""

    def __init__(self, after: timedelta) -> None:
        super().__init__(f"the provider asks for a pause of {after}")
        self.after = after


class NotSent(AdaError):
    """The provider could not be reached, or did not answer as expected; whether it has sent the message is unknown."""


class StatusTask(msgspec.Struct, frozen=True, omit_defaults=True):
    """A delivery and where its status is shown. `message`: the id of the message to change; "" in a channel without
    editing. `shown`: its text; `reported`: how many channels had reported then; `checks`: how many since have found
    nothing new. `title`: the addressee as the sender knows it. `name`: of the step that follows it, for the keys of its
    messages; `origin`: where its event came from.
    """

    key: str
    channel: str
    address: str
    message: str
    locale: str
    shown: str = ""
    reported: int = 0
    checks: int = 0
    title: str = ""
    name: str = ""
    origin: str = ""


class StatusMessage(Protocol):
    """The message that shows a delivery."""

    @property
    def text(self) -> str: ...


M = TypeVar("M", bound=StatusMessage)

Show = Callable[[History, StatusTask], M]
"""The message for a history; its text is the one shown before, or "", if there is nothing new to show."""

Edit = Callable[[StatusTask, M], Awaitable[bool]]
"""Shows the message; returns False if it can never be changed again: it was deleted, the bot was blocked, or the
channel has no editing. Raises SendLater, NotSent, StoreError: then it is shown again.
"""


def status_tube(channel: str) -> str:
    """Return the name of the tube of the statuses in a channel, or of the bots of `scenarios`."""
    return f"status.{channel}"


class StatusTasks:
    """Puts the tasks. `channel`: that of the bot, or `scenarios` for bots of all channels."""

    def __init__(self, client: QueueClient, tenant: str, channel: str) -> None:
        self._client = client
        self._tenant = tenant
        self._tube = status_tube(channel)

    async def open(self) -> None:
        """Create the tube. Its tasks do not expire: they end with the delivery, which may be due next month."""
        await self._client.tubes.create(Tube(self._tube, attempts=_ATTEMPTS, backoff=_BACKOFF))

    async def begin(self, followed: StatusTask, cause: str, after: timedelta = timedelta()) -> None:
        """Follow a delivery. `cause`: the id of the event that led to it; repeated, it changes nothing. `after`: how
        long until the first reading.
        """
        body, person = msgspec.json.encode(followed).decode(), f"{followed.channel}:{followed.address}"
        due = datetime.now(UTC) + after if after else None
        task = NewTask(body, self._tenant, lane=followed.key, user=person, due=due)
        await self._client.queue.put_once(self._tube, task, source=self._tube, name=f"{followed.key} {cause}")

    def worker(self, handler: "StatusHandler[M]") -> Worker:
        """Return a worker that follows the deliveries, to `run()` and to `stop()`."""
        return self._client.worker(self._tube, handler.handle, CONCURRENCY, lease=_LEASE)


class StatusHandler(Generic[M]):
    """Handles the tasks of one tenant."""

    def __init__(self, tracker: Tracker, tenant: str, show: Show[M], edit: Edit[M]) -> None:
        self._tracker = tracker
        self._tenant = tenant
        self._show = show
        self._edit = edit

    async def handle(self, attempt: Attempt) -> Result:
        """Look once. Returns when to look again, until the delivery has ended."""
        followed = msgspec.json.decode(attempt.body, type=StatusTask)
        try:
            return await self._look(followed)
        except NotFound:
            return None
        except SendLater as pause:
            return Retry(max(pause.after, _EVERY))
        except (NotSent, StoreError) as fault:
            log.warning("the status of %s is shown later: %s", followed.key, fault)
            return Retry(_RARELY)

    async def _look(self, followed: StatusTask) -> Result:
        history = await self._next(followed)
        reply = self._show(history, followed)
        if reply.text != followed.shown and not await self._edit(followed, reply):
            return None
        if history.finished_at is not None:
            return None
        body = msgspec.json.encode(_seen(followed, history, reply)).decode()
        return Retry(_pause(history), body=body)

    async def _next(self, followed: StatusTask) -> History:
        """Return the history after a channel has reported or the delivery has ended, or after a pause that grows while
        nothing changes.
        """
        key, wait = HistoryKey.parse(followed.key), min(_RARELY, _EVERY * followed.checks)
        history, _ = await self._tracker.wait(key, self._tenant, followed.reported + 1, wait.total_seconds())
        if history is None:
            raise NotFound("HISTORY_NOT_FOUND", "There is no such delivery.")
        return history


def _seen(followed: StatusTask, history: History, reply: StatusMessage) -> StatusTask:
    is_new = reply.text != followed.shown
    return replace(
        followed, shown=reply.text, reported=history.reported, checks=0 if is_new else min(followed.checks + 1, 100)
    )


def _pause(history: History) -> timedelta:
    """Return the time until the next reading: a message is changed once a second; a scheduled one, hardly ever."""
    if history.state is not DeliveryState.SCHEDULED:
        return _EVERY
    return max(_EVERY, min(_SCHEDULED, history.deliver_at - datetime.now(UTC)))
