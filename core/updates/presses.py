"""Presses of buttons that must be answered to the provider, so that the button no longer shows that it waits.

    an event with `callback_id` ─▶ its scenario ─▶ tube `presses.<channel>` ─▶ the bot's process, which has the token

Guarantee: a press is answered once, at most half a minute after it was put, or not at all: later the person does not
see it.
"""

from collections.abc import Awaitable, Callable
from datetime import timedelta

import msgspec

from core.model.backoff import Backoff
from core.queue import Attempt, NewTask, QueueClient, Result, Retry, Tube, Worker
from core.updates.events import Event, person_of

_EXPIRES = timedelta(seconds=30)
_LEASE = timedelta(seconds=5)
_ATTEMPTS = 3
_BACKOFF = Backoff(timedelta(milliseconds=500), timedelta(seconds=5))
_CONCURRENCY = 50


class Press(msgspec.Struct, frozen=True):
    """A press. `id`: the provider's, of the press itself. `text`: the answer that the person sees, "" for none; with
    `alert` in a window, without it as a note that disappears.
    """

    id: str
    user_id: int | str
    chat_id: int | str
    text: str = ""
    alert: bool = False


Acknowledge = Callable[[Press], Awaitable[bool]]
"""Acknowledges a press at the provider; returns False if another attempt is to be made."""


class Presses:
    """The presses in one channel of one tenant."""

    def __init__(self, client: QueueClient, tenant: str, channel: str) -> None:
        self._client = client
        self._tenant = tenant
        self._tube = f"presses.{channel}"

    async def open(self) -> None:
        """Create the tube."""
        await self._client.tubes.create(Tube(self._tube, expires=_EXPIRES, attempts=_ATTEMPTS, backoff=_BACKOFF))

    async def put(self, event: Event, text: str = "", *, alert: bool = False) -> bool:
        """Have the press of an event answered. Returns False if this press has an answer already, which stays. Raises
        StoreError.
        """
        person = event["user_id"]
        press = Press(str(event["callback_id"]), person, event.get("chat_id") or person, text, alert)
        task = NewTask(msgspec.json.encode(press).decode(), self._tenant, user=person_of(event))
        return await self._client.queue.put_once(self._tube, task, source=self._tube, name=press.id)

    def worker(self, acknowledge: Acknowledge) -> Worker:
        """Return a worker that acknowledges, to `run()` and to `stop()`."""

        async def handle(attempt: Attempt) -> Result:
            is_done = await acknowledge(msgspec.json.decode(attempt.body, type=Press))
            return None if is_done else Retry()

        return self._client.worker(self._tube, handle, _CONCURRENCY, lease=_LEASE)
