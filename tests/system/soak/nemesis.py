"""The faults of a soak: kills, freezes and disconnects the server and the workers, and flushes the functions."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError

from tests.support.servers import Server
from tests.system.crash.process import AdaProcess

Log = Callable[[str], None]
Action = Callable[[], Awaitable[None]]


class ShuffledCycle:
    """Every action once in random order, then again in another order."""

    def __init__(self, actions: Sequence[Action], chance: random.Random) -> None:
        self._actions = actions
        self._chance = chance
        self._left: list[Action] = []

    def next(self) -> Action:
        if not self._left:
            self._left = self._chance.sample(self._actions, len(self._actions))
        return self._left.pop()


class Nemesis:
    """Injects faults into the server and the workers at the same time.

    `start_worker` starts another worker process. `lease` in seconds.
    """

    def __init__(
        self,
        server: Server,
        workers: list[AdaProcess],
        start_worker: Callable[[], AdaProcess],
        lease: float,
        seed: int,
        log: Log,
    ) -> None:
        self._server = server
        self._workers = workers
        self._start_worker = start_worker
        self._lease = lease
        self._chance = random.Random(seed)
        self._log = log
        self.faults = 0

    async def run(self, seconds: float) -> None:
        """Injects faults; returns when the server and all workers run again."""
        at_server = (self._kill_server, self._sleep, self._flush, self._cut_pubsub, self._cut_all, self._rewrite)
        at_workers = (self._freeze_worker, self._kill_worker, self._stop_worker)
        until = asyncio.get_running_loop().time() + seconds
        await asyncio.gather(self._inject(at_server, until), self._inject(at_workers, until))

    async def _inject(self, actions: Sequence[Action], until: float) -> None:
        cycle = ShuffledCycle(actions, self._chance)
        while asyncio.get_running_loop().time() < until:
            self.faults += 1
            await cycle.next()()
            await asyncio.sleep(self._chance.uniform(0.5, 2))

    # the server

    async def _kill_server(self) -> None:
        down = self._chance.choice((0, 0, 1, 2))
        self._log(f"server: kill -9, started again after {down} s")
        await asyncio.to_thread(self._server.kill)
        await asyncio.sleep(down)
        await asyncio.to_thread(self._server.start)

    async def _sleep(self) -> None:
        seconds = round(self._chance.uniform(0.2, self._lease * 1.5), 1)
        self._log(f"server: DEBUG SLEEP {seconds}")
        await self._command("DEBUG", "SLEEP", seconds)

    async def _flush(self) -> None:
        self._log("server: FUNCTION FLUSH")
        await self._command("FUNCTION", "FLUSH")

    async def _cut_pubsub(self) -> None:
        self._log(f"server: CLIENT KILL TYPE pubsub: {await self._command('CLIENT', 'KILL', 'TYPE', 'pubsub')}")

    async def _cut_all(self) -> None:
        self._log(f"server: CLIENT KILL TYPE normal: {await self._command('CLIENT', 'KILL', 'TYPE', 'normal')}")

    async def _rewrite(self) -> None:
        self._log("server: BGREWRITEAOF")
        await self._command("BGREWRITEAOF")

    async def _command(self, *words: str | float) -> Any:
        async with Redis.from_url(self._server.url) as client:
            try:
                return await client.execute_command(*words)  # type: ignore[no-untyped-call]
            except RedisError as fault:
                return fault

    # the workers

    def _pick(self) -> int:
        return self._chance.randrange(len(self._workers))

    async def _freeze_worker(self) -> None:
        worker, seconds = self._workers[self._pick()], round(self._lease * self._chance.uniform(1.2, 2), 1)
        self._log(f"{worker.args[2]}: frozen for {seconds} s")
        worker.freeze()
        await asyncio.sleep(seconds)
        worker.resume()

    async def _kill_worker(self) -> None:
        place = self._pick()
        killed, self._workers[place] = self._workers[place], self._start_worker()
        self._log(f"{killed.args[2]}: kill -9, {self._workers[place].args[2]} takes its place")
        killed.kill()

    async def _stop_worker(self) -> None:
        place = self._pick()
        stopped, self._workers[place] = self._workers[place], self._start_worker()
        self._log(f"{stopped.args[2]}: terminated, {self._workers[place].args[2]} takes its place")
        stopped.terminate()
        await stopped.wait()
        stopped.kill()
