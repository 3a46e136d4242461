"""What the bots of one process use of core."""

from dataclasses import dataclass
from datetime import UTC, tzinfo

from core.deliveries.channels import Channels
from core.deliveries.deliveries import Deliveries
from core.deliveries.tracker import Tracker
from core.directory import Directory
from core.directory.linking import Linking
from core.orders import Sending
from core.queue import QueueClient
from core.redis.store import Store


@dataclass(frozen=True)
class Services:
    """A bot belongs to one `tenant`; `timezone`: the tenant's, in which people read and write times."""

    store: Store
    queue: QueueClient
    directory: Directory
    linking: Linking
    sending: Sending
    deliveries: Deliveries
    channels: Channels
    tracker: Tracker
    tenant: str = "default"
    timezone: tzinfo = UTC
