"""What the bots of one process use of core."""

from dataclasses import dataclass
from datetime import UTC, tzinfo

from core.directory import Directory
from core.directory.linking import Linking
from core.history.channels import Channels
from core.history.deliveries import Deliveries
from core.history.tracker import Tracker
from core.queue import QueueClient
from core.redis.store import Store
from core.sending import Sending


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
