"""Updates: what people do in a channel (write, press a button), as tasks of the queue.

    provider ─▶ Updates.put ─▶ tube `updates.<channel>`, lane = the person ─▶ a worker of `bots/`

Guarantees: an update that the provider repeats is put once (for a day); the updates of one person are processed one
after the other in the order of arrival, by any process.

Neighbours: `core.queue` below. `bots/` puts what it polls and processes everything; `delivery/` puts what is posted.
"""

from core.updates.updates import Update, Updates, tube_of

__all__ = ["Update", "Updates", "tube_of"]
