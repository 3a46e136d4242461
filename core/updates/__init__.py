"""Events: what people do in a channel (write, press a button, join), as tasks of the queue.

    provider ─▶ its reader ─▶ Ingress.put ─▶ tube `events` ─▶ a worker of `scenarios/`

Guarantees: what the provider repeats is put once (for a day); the events of one person are processed one after the
other in the order of arrival, by any process.

Neighbours: `core.queue` below. `couriers.receiving` puts what it polls, `delivery/` what is posted.
"""

from core.updates.events import Event, Events

__all__ = ["Event", "Events"]
