"""How a courier process works, and what a parcel needs of it."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol

from core.courier.attempt_pool import AttemptPool
from core.courier.interface import Courier
from core.history.delivery_reports import DeliveryReports
from core.model.backoff import Backoff
from core.queue.queue import Queue, Task
from core.redis.store import Store


@dataclass(frozen=True, slots=True)
class CourierOptions:
    """How a courier process works. `report_url`: where the provider is to report to, "" if nowhere.

    `side_by_side`: messages under way at once for couriers that send one by one.
    """

    lease: timedelta = timedelta(seconds=30)
    floor: timedelta = timedelta(seconds=3)
    backoff: Backoff = field(default_factory=Backoff)
    report_url: str = ""
    side_by_side: int = 32


class Process(Protocol):
    """What a parcel needs of the courier process it is in (`core.courier.runtime.Runtime`)."""

    store: Store
    courier: Courier
    options: CourierOptions
    queue: Queue
    delivery_reports: DeliveryReports
    attempt_pool: AttemptPool

    @property
    def stopping(self) -> bool: ...

    def release_capacity(self, task: Task, entries: int) -> None: ...

    async def halt(self, detail: str) -> None: ...
