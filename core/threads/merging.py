"""Moves the threads of a merged person, also if the process that merges two people is killed in between.

    ThreadMerger.plan ─▶ tube `replies`, due in a minute ─▶ ReplyWorker.handle ─▶ ThreadMerger.finish

The task is put before the people are merged, and checks later whether they were: the directory and the threads of a
person are in different shards, so no one step changes both.
"""

import json
from datetime import UTC, datetime, timedelta

from core.directory import Directory
from core.model.history_key import Id
from core.model.json_form import compact_json
from core.queue import Attempt, NewTask, QueueClient, Result, Retry
from core.threads.threads import Threads
from core.updates.events import REPLIES_TUBE, replies_tube

MERGED = "merged"
"""The kind of the tasks."""
_LATER = timedelta(minutes=1)
_MOST_TRIES = 60
"""A merge waits while people are imported."""


class ThreadMerger:
    """One per process. Methods raise StoreError."""

    def __init__(self, client: QueueClient, directory: Directory, threads: Threads, later: timedelta = _LATER) -> None:
        self._client = client
        self._directory = directory
        self._threads = threads
        self._later = later

    async def plan(self, tenant: str, kept: Id, other: Id) -> None:
        """Have the threads moved that `Threads.merge` leaves behind, if the people will be merged."""
        await self._client.tubes.create(replies_tube())
        due = datetime.now(UTC) + self._later
        await self._client.queue.put(REPLIES_TUBE, NewTask(compact_json([kept, other]), tenant, due=due, kind=MERGED))

    async def finish(self, attempt: Attempt) -> Result:
        """Move the threads if the people were merged. If the one that stayed was deleted, they go with it."""
        tenant, (kept, other) = attempt.task.tenant, json.loads(attempt.body)
        heir, merged = await self._directory.users.lookup(tenant, [kept, other])
        if merged is not None:  # the merge was refused, or waits
            return Retry(self._later) if attempt.task.attempts < _MOST_TRIES else None
        if heir is not None:
            await self._threads.merge(tenant, kept, other)
        else:
            await self._threads.forget(tenant, other)
        return None
