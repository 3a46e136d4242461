"""What this subsystem asks of the services: the services it is handed, as it sees them.

The classes in `core` fit these by their shape; nothing here knows how they work. Every method raises `core.errors`.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from core.errors import Refused, StoreFull
from core.model.delivery import Accepted, Cancelled, NewDelivery, Repeat
from core.model.history import Change, History
from core.model.history_key import HistoryKey, Id
from core.model.states import DeliveryState, Status
from core.queue.task import TaskFilter


class Key(Protocol):
    """An API key. `id` may be shown, the secret is not kept."""

    @property
    def id(self) -> str: ...
    @property
    def tenant(self) -> str: ...
    @property
    def scopes(self) -> frozenset[str]: ...
    @property
    def name(self) -> str: ...


class Stored(Protocol):
    """The first answer to a write, kept for its repeats."""

    @property
    def status(self) -> int: ...
    @property
    def body(self) -> bytes: ...


class Histories(Protocol):
    """Deliveries and what became of them."""

    async def reserve(self, tenant: str, sender: Id) -> HistoryKey: ...
    async def enqueue(self, order: NewDelivery, repeat: Repeat | None = None) -> Accepted: ...
    async def enqueue_many(
        self, orders: Sequence[tuple[NewDelivery, Repeat | None]]
    ) -> list[Accepted | Refused | StoreFull]: ...
    async def read(self, key: HistoryKey, tenant: str, cursor: str | None = None, limit: int = 100) -> History: ...
    async def list(
        self,
        tenant: str,
        *,
        sender: str | None,
        state: DeliveryState | None,
        since: datetime | None,
        cursor: str | None,
        limit: int,
    ) -> tuple[list[History], str | None]: ...
    async def reschedule(self, key: HistoryKey, tenant: str, deliver_at: datetime) -> Accepted: ...
    async def cancel(self, key: HistoryKey, tenant: str, recipients: Sequence[str] = ()) -> Cancelled: ...
    async def cancel_by(self, tenant: str, field: str, value: str) -> int: ...
    async def retry(self, key: HistoryKey, tenant: str, statuses: Sequence[Status]) -> int: ...
    async def receive(self, receipt: str, report: Status, reference: str) -> bool: ...


class Tracker(Protocol):
    """Waiting for what becomes of a delivery."""

    async def wait(self, key: HistoryKey, tenant: str, touch_count: int, timeout: float) -> tuple[History | None, bool]:
        """(history, timed out); with `touch_count` 0 as soon as the history is there."""
        ...

    def follow(self, key: HistoryKey, tenant: str, after: int = 0) -> AsyncIterator[Change]: ...


class Access(Protocol):
    """API keys; the store has only their hashes."""

    def recall(self, secret: str) -> Key | None: ...
    async def find(self, secret: str) -> Key | None: ...


class Idempotency(Protocol):
    """First answers to writes. `begin` answers None to the first, and to its repeats what `finish` was told."""

    async def begin(self, tenant: str, key: str, fingerprint: str) -> Stored | None: ...
    async def finish(self, tenant: str, key: str, fingerprint: str, status: int, body: bytes) -> None: ...
    async def forget(self, tenant: str, key: str) -> None: ...


class Queue(Protocol):
    """What has to be done, for operators."""

    async def stats(self) -> Mapping[str, Any]: ...
    async def page(
        self, selection: TaskFilter, cursor: str | None, limit: int
    ) -> tuple[list[dict[str, Any]], str | None]: ...
    async def list(
        self, *, tube: str | None, state: str | None, tenant: str | None, cursor: str | None, limit: int
    ) -> tuple[list[dict[str, Any]], str | None]: ...
    async def cancel_by(self, selection: TaskFilter) -> Mapping[str, int]: ...
    async def peek(self, task_id: str) -> Mapping[str, Any]: ...
    async def bury(self, task_id: str) -> Mapping[str, Any]: ...
    async def kick(self, task_id: str) -> Mapping[str, Any]: ...
    async def cancel(self, task_id: str) -> Mapping[str, Any]: ...


class Register(Protocol):
    """The channels that have, or had, a courier."""

    @property
    def names(self) -> Sequence[str]: ...


class Channels(Protocol):
    """Where they are entered. What was read a moment ago is recalled."""

    def recall(self) -> Register | None: ...
    async def read(self) -> Register: ...


class Store(Protocol):
    """The server behind it all."""

    async def ping(self) -> bool:
        """Whether it answers soon. Never raises."""
        ...


@dataclass(frozen=True, slots=True)
class Services:
    """All services, wired by `cli`."""

    deliveries: Histories
    tracker: Tracker
    access: Access
    idempotency: Idempotency
    queue: Queue
    channels: Channels
    store: Store
