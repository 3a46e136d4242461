"""What goes wrong in a soak: the server and the workers are killed, frozen, cut off, made to forget."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError

from tests.crash.program import Program
from tests.support.servers import Server

Say = Callable[[str], None]
Action = Callable[[], Awaitable[None]]


class Deck:
    """Every action once, in a chance order, then again."""

    def __init__(self, actions: Sequence[Action], chance: random.Random) -> None:
        self._actions = actions
        self._chance = chance
        self._left: list[Action] = []

    def draw(self) -> Action:
        if not self._left:
            self._left = self._chance.sample(self._actions, len(self._actions))
        return self._left.pop()


class Nemesis:
    """Two hands: one at the server, one at the workers, so that troubles meet. `hire` starts another worker process.
    `lease` in seconds.
    """

    def __init__(
        self, server: Server, workers: list[Program], hire: Callable[[], Program], lease: float, seed: int, say: Say
    ) -> None:
        self._server = server
        self._workers = workers
        self._hire = hire
        self._lease = lease
        self._chance = random.Random(seed)
        self._say = say
        self.troubles = 0

    async def run(self, seconds: float) -> None:
        """Comes back when everything is whole again."""
        at_server = (self._kill_server, self._sleep, self._flush, self._cut_pubsub, self._cut_all, self._rewrite)
        at_workers = (self._freeze_worker, self._kill_worker, self._stop_worker)
        until = asyncio.get_running_loop().time() + seconds
        await asyncio.gather(self._hand(at_server, until), self._hand(at_workers, until))

    async def _hand(self, actions: Sequence[Action], until: float) -> None:
        deck = Deck(actions, self._chance)
        while asyncio.get_running_loop().time() < until:
            self.troubles += 1
            await deck.draw()()
            await asyncio.sleep(self._chance.uniform(0.5, 2))

    # the server

    async def _kill_server(self) -> None:
        down = self._chance.choice((0, 0, 1, 2))
        self._say(f"server: kill -9, started again after {down} s")
        await asyncio.to_thread(self._server.kill)
        await asyncio.sleep(down)
        await asyncio.to_thread(self._server.start)

    async def _sleep(self) -> None:
        seconds = round(self._chance.uniform(0.2, self._lease * 1.5), 1)
        self._say(f"server: DEBUG SLEEP {seconds}")
        await self._command("DEBUG", "SLEEP", seconds)

    async def _flush(self) -> None:
        self._say("server: SCRIPT FLUSH")
        await self._command("SCRIPT", "FLUSH")

    async def _cut_pubsub(self) -> None:
        self._say(f"server: CLIENT KILL TYPE pubsub: {await self._command('CLIENT', 'KILL', 'TYPE', 'pubsub')}")

    async def _cut_all(self) -> None:
        self._say(f"server: CLIENT KILL TYPE normal: {await self._command('CLIENT', 'KILL', 'TYPE', 'normal')}")

    async def _rewrite(self) -> None:
        self._say("server: BGREWRITEAOF")
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
        self._say(f"{worker.words[2]}: frozen for {seconds} s")
        worker.freeze()
        await asyncio.sleep(seconds)
        worker.resume()

    async def _kill_worker(self) -> None:
        place = self._pick()
        killed, self._workers[place] = self._workers[place], self._hire()
        self._say(f"{killed.words[2]}: kill -9, {self._workers[place].words[2]} takes its place")
        killed.kill()

    async def _stop_worker(self) -> None:
        place = self._pick()
        stopped, self._workers[place] = self._workers[place], self._hire()
        self._say(f"{stopped.words[2]}: asked to end, {self._workers[place].words[2]} takes its place")
        stopped.ask_to_end()
        await stopped.ended()
        stopped.kill()
