"""One update, and the way of a channel's updates into the queue."""

from datetime import timedelta

import msgspec

from core.model.backoff import Backoff
from core.queue import NewTask, QueueClient, Tube
from core.updates.events import encode

_ATTEMPTS = 10_000
"""More than fit into the time before the expiry: a pause of the provider, of at least a second, is an attempt, too."""
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
        """Add an update; returns False for a repeat. Raises Invalid EVENT_TOO_LARGE, EVENT_MALFORMED; StoreError: then
        the provider must repeat it.
        """
        person = f"{update.channel}:{update.address}"
        task = NewTask(encode(update), self._tenant, lane=person, user=person)
        return await self._client.queue.put_once(tube_of(self._channel), task, source=self._source, name=update.id)
