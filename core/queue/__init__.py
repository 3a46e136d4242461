"""The queue: tasks in tubes, with strict lanes, leases, deferral, retries, cancellation, search and replies.

Guarantees: a put and a settlement happen exactly once, also over broken connections; a task is attempted at least once;
within a tube at most one task of a lane is taken at a time, in the order of the puts; a worker whose lease was lost
changes nothing; no way of ending or returning a task leaves its lane stuck. Every step is one Lua function
(`lua/queue`).

Neighbours: `core.redis` (store, keys, functions) below; `couriers.sending` claims parcels with `Worker`; `delivery` and
`cli` show the queue to operators through `Queue`. Guide for applications: docs/queue.md.
"""

from core.model.clock import Backoff
from core.model.history_key import own_name
from core.queue.client import CallFailed, QueueClient, TaskEnd, connect
from core.queue.executor import AlreadySettled, Attempt, Bury, Done, Failed, Handler, Result, Retry, Suspend
from core.queue.inspector import QueueStats, StateCounts, TubeStats
from core.queue.queue import Queue
from core.queue.task import (
    CancelResult,
    Claim,
    Extension,
    NewTask,
    Settled,
    Settlement,
    SettleResult,
    Task,
    TaskFilter,
    TaskPage,
    TaskView,
)
from core.queue.tubes import Tube, Tubes
from core.queue.workers.worker import Worker, WorkerOptions

__all__ = [
    "AlreadySettled",
    "Attempt",
    "Backoff",
    "Bury",
    "CallFailed",
    "CancelResult",
    "Claim",
    "Done",
    "Extension",
    "Failed",
    "Handler",
    "NewTask",
    "Queue",
    "QueueClient",
    "QueueStats",
    "Result",
    "Retry",
    "SettleResult",
    "Settled",
    "Settlement",
    "StateCounts",
    "Suspend",
    "Task",
    "TaskEnd",
    "TaskFilter",
    "TaskPage",
    "TaskView",
    "Tube",
    "TubeStats",
    "Tubes",
    "Worker",
    "WorkerOptions",
    "connect",
    "own_name",
]
