"""Updates and events: what people do in a channel (write, press a button, join), as tasks of the queue.

    provider ─▶ Updates.put ─▶ tube `updates.<channel>`, lane = the person ─▶ a worker of `bots/`, the dialogs
    provider ─▶ Events.put  ─▶ tube `events`, lane = the person ─▶ a worker of `scenarios/`, with a bot in ADA_SCENARIOS

Guarantees: what the provider repeats is put once (for a day); the updates of one person are processed one
after the other in the order of arrival, by any process.

Neighbours: `core.queue` below. `bots/` puts what it polls and processes updates; `delivery/` puts what is posted;
`scenarios/` processes events.
"""

from core.updates.events import Event, Events
from core.updates.updates import Update, Updates, tube_of

__all__ = ["Event", "Events", "Update", "Updates", "tube_of"]
