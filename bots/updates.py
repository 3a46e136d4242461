"""Updates: what people do in a channel (write, press a button), as tasks of the queue.

    provider ─▶ Updates.put ─▶ tube `updates.<channel>`, lane = the person ─▶ UpdateWorker ─▶ a conversation

Guarantees: an update that the provider repeats is put once (for a day); the updates of one person are processed one
after the other in the order of arrival, by any process; one that fails is tried again and is buried in the end, and
then the person's next update goes on.
"""

import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta

import msgspec

from core.model.backoff import Backoff
from core.queue import Attempt, NewTask, QueueClient, Tube, Worker

log = logging.getLogger(__name__)

_ATTEMPTS = 5
_EXPIRES = timedelta(hours=1)
_BACKOFF = Backoff(timedelta(milliseconds=500), timedelta(seconds=20))


class Update(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that a person did.

    `id`: the provider's, unique for the bot or gateway. `address`: the person's address in the channel, as in a
    contact. `name`, `locale`: as the provider has them, "" if it does not. `text`: what was written. `button`: the data
    of a pressed button, then `message` is the id of the message with the button and `callback` that of the press.
    """

    id: str
    channel: str
    address: str
    name: str = ""
    locale: str = ""
    text: str = ""
    button: str = ""
    message: str = ""
    callback: str = ""


Handle = Callable[[Update, Attempt], Awaitable[None]]
"""Processes one update. `attempt.checkpoint` holds what an attempt that was interrupted had saved."""


def tube_of(channel: str) -> str:
    """The tube of a channel's updates."""
    return f"updates.{channel}"


class Updates:
    """Puts the updates of one bot or gateway into the queue. `source`: its name, in which ids of updates are unique."""

    def __init__(self, client: QueueClient, tenant: str, channel: str, source: str) -> None:
        self._client = client
        self._tenant = tenant
        self._channel = channel
        self._source = f"{channel}.{source}"

    async def open(self) -> None:
        """Create the tube. A person who waits for an hour no longer expects an answer."""
        tube = Tube(tube_of(self._channel), expires=_EXPIRES, attempts=_ATTEMPTS, backoff=_BACKOFF)
        await self._client.tubes.create(tube)

    async def put(self, update: Update) -> bool:
        """Add an update; returns False for a repeat. Raises StoreError: then the provider must repeat it."""
        person = f"{update.channel}:{update.address}"
        task = NewTask(msgspec.json.encode(update).decode(), self._tenant, lane=person, user=person)
        return await self._client.queue.put_once(tube_of(self._channel), task, source=self._source, name=update.id)


def update_worker(client: QueueClient, channel: str, handle: Handle, concurrency: int = 50) -> Worker:
    """A worker that processes the updates of a channel, to `run()` and to `stop()`. Any number of processes may have
    one.
    """

    async def process(attempt: Attempt) -> None:
        await handle(msgspec.json.decode(attempt.body, type=Update), attempt)

    return client.worker(tube_of(channel), process, concurrency)
