"""Which names of tubes an operator may use."""

from core.deliveries.channels import Channels
from core.jobs.notices import TUBE as NOTICES
from core.orders.series import TUBE as SERIES
from core.queue import Queue, Tubes
from core.redis.store import Store
from core.updates.events import ANSWERS_TUBE, REPLIES_TUBE
from core.updates.events import TUBE as EVENTS
from core.webhooks.webhook import TUBE as WEBHOOKS

_OWN = frozenset({EVENTS, ANSWERS_TUBE, REPLIES_TUBE, WEBHOOKS, SERIES, NOTICES})


async def check_tube(store: Store, name: str) -> None:
    """Check that a tube is Ada's own or that of a channel, has had a task, was created, or is paused. Raises NotFound
    TUBE_UNKNOWN.
    """
    names = {*_OWN, *await Queue(store).inspector.tubes(), *(await Channels(store).read()).names}
    await Tubes(store).check_name(name, names)
