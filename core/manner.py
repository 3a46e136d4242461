"""How a courier process works, and what a parcel needs of it."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol

from core.hands import Hands
from core.port import Courier
from core.queue import Queue, Task
from core.receipts import Receipts
from core.retry import Backoff
from core.store import Store


@dataclass(frozen=True, slots=True)
class Manner:
    """How a courier process works. `report_url`: where the provider is to report to, "" if nowhere.

    `side_by_side`: messages under way at once for couriers that send one by one.
    """

    lease: timedelta = timedelta(seconds=30)
    floor: timedelta = timedelta(seconds=3)
    backoff: Backoff = field(default_factory=Backoff)
    report_url: str = ""
    side_by_side: int = 32


class Process(Protocol):
    """What a parcel needs of the courier process it is in (`core.runtime.Runtime`)."""

    store: Store
    courier: Courier
    manner: Manner
    queue: Queue
    receipts: Receipts
    hands: Hands

    @property
    def stopping(self) -> bool: ...

    def lighten(self, task: Task, entries: int) -> None: ...

    async def halt(self, detail: str) -> None: ...
