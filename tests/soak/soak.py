"""A soak: putters and workers in processes of their own on a real server, a nemesis, and a checker with its own eyes.

putters ─▶ server ◀─ workers          each writes a journal
             ▲  └─▶ ends of all tasks ─▶ journal
          nemesis                                    journals ─▶ checker
"""

import asyncio
import os
import random
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from redis.asyncio import Redis
from redis.exceptions import RedisError

from core.errors import StoreError
from core.queue.queue import Queue
from core.queue.tubes import Tubes
from core.redis.keys import KEYS, Lifetime, kind_of
from core.redis.store import Store
from core.redis.stream_reader import entries
from tests.crash.program import ROOT, Program
from tests.soak.checker import Verdict, judge
from tests.soak.journal import Journal, read
from tests.soak.nemesis import Nemesis, Say
from tests.soak.plan import ENDS_TO, PARKED, STRICT, TUBES
from tests.support.audited import broken
from tests.support.servers import Server
from tests.support.waiting import until

LEASE_MS = 1500
WORKERS, PUTTERS = 3, 2
DRAIN = 40.0
"""Seconds after which what has not ended is stuck."""

_CONFIG = "enable-debug-command local\nappendfsync {appendfsync}\n"


@dataclass
class Plan:
    """`per_second`: tasks put by all putters together. `appendfsync`: as the embedded server has it. `before`: a folder
    with another `core` and `lua`, which every second process runs.
    """

    seconds: float
    seed: int
    per_second: float = 60.0
    appendfsync: str = "no"
    before: Path | None = None


@dataclass
class Outcome:
    """`violations`: what the audit found afterwards; `left`: keys that should have gone with the work."""

    verdict: Verdict
    troubles: int
    violations: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        return self.verdict.is_good and not self.violations and not self.left

    def __str__(self) -> str:
        after = f"audit: {len(self.violations)} broken, {len(self.left)} keys left"
        return f"{self.verdict}; {self.troubles} troubles; {after}"

    def findings(self) -> list[str]:
        told = self.verdict
        named = {"lost": told.lost, "doubled": told.doubled, "out of order": told.out_of_order}
        named |= {"audit": self.violations, "left": self.left}
        return [f"{name}: {one}" for name, found in named.items() for one in found]


class Soak:
    """One run in a directory of its own. `scripts`: of each `core` that took part, the names its scripts go by."""

    def __init__(self, directory: Path, plan: Plan, say: Say) -> None:
        self._directory = directory
        self._journals = directory / "journals"
        self._journals.mkdir(parents=True)
        self._plan = plan
        self._say = say
        self._server = Server(directory / "server")
        with self._server.place.config.open("a") as config:
            config.write(_CONFIG.format(appendfsync=plan.appendfsync))
        self._hired = 0
        self.scripts: dict[str, set[str]] = {}
        self._workers: list[Program] = []
        self._putters: list[Program] = []

    async def run(self) -> Outcome:
        self._server.start()
        store = await Store.open(self._server.url, patience=60)
        try:
            return await self._run(store)
        finally:
            await store.close()
            for program in [*self._workers, *self._putters]:
                program.kill()
            self._server.kill()

    async def _run(self, store: Store) -> Outcome:
        for tube in TUBES:
            await Tubes(store).create(tube)
        beside = [asyncio.create_task(self._listen()), asyncio.create_task(self._kick(Queue(store)))]
        self._workers += [self._hire() for _ in range(WORKERS)]
        self._putters += [self._putter(number) for number in range(PUTTERS)]
        for program in [*self._workers, *self._putters]:
            facts = await program.ready()
            self.scripts.setdefault(facts["core"], set()).update(facts["scripts"])
        chance = random.Random(self._plan.seed)
        nemesis = Nemesis(
            self._server, self._workers, self._hire, LEASE_MS / 1000, chance.randrange(2**32), self._say
        )  # fmt: skip
        await nemesis.run(self._plan.seconds)
        await self._drain(store)
        for task in beside:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        outcome = Outcome(judge(read(self._journals), LEASE_MS), nemesis.troubles)
        outcome.violations = [str(violation) for violation in await broken(store)]
        outcome.left = [key for key in self._server.all_keys() if _goes_with_work(key)]
        return outcome

    # processes

    def _hire(self) -> Program:
        self._hired += 1
        return self._program("worker", self._hired, str(LEASE_MS))

    def _putter(self, number: int) -> Program:
        seed = random.Random(f"{self._plan.seed} {number}").randrange(2**32)
        return self._program("putter", number, str(seed), str(self._plan.per_second / PUTTERS))

    def _program(self, module: str, number: int, *words: str) -> Program:
        name = f"{module}-{number}"
        given = (self._server.url, str(self._journals), name, *words)
        before = self._plan.before if number % 2 else None
        environment = {"PYTHONPATH": f"{before}{os.pathsep}{ROOT}"} if before else {}
        return Program(given, environment, self._directory / f"{name}.log", module=f"tests.soak.{module}")

    # beside

    async def _listen(self) -> None:
        """Every end of a task, as the server told it in the step that ended it."""
        journal, last = Journal(self._journals, "ends"), "0-0"
        name = KEYS["reply"].at(0, ENDS_TO)
        async with Redis.from_url(self._server.url, decode_responses=True) as client:
            while True:
                try:
                    found = entries(await client.xread({name: last}, count=500, block=500))
                except (RedisError, OSError):
                    await asyncio.sleep(0.1)
                    continue
                for entry, fields in found:
                    last = entry
                    journal.write("ended", task=f"0.{fields['task']}", state=fields["state"], answer=fields["answer"])

    async def _kick(self, queue: Queue) -> None:
        """The person who looks at what was buried."""
        while True:
            with suppress(StoreError):
                for tube in (STRICT, PARKED):
                    await queue.kick_some(tube, 100)
            await asyncio.sleep(0.5)

    async def _drain(self, store: Store) -> None:
        """Nothing more is put; whatever is there ends, unless something is stuck."""
        self._say("the nemesis rests; what is there must end")
        for putter in self._putters:
            putter.ask_to_end()
        for putter in self._putters:
            if code := await putter.ended(within=DRAIN):
                raise RuntimeError(f"{putter.words[2]} ended with {code}: {putter.said[-2000:]}")
        with suppress(AssertionError):
            await until(lambda: _is_empty(Queue(store)), within=DRAIN, every=0.1)
        for worker in self._workers:
            worker.ask_to_end()
        for worker in self._workers:
            await worker.ended()


async def _is_empty(queue: Queue) -> bool:
    return all(told["live"] == 0 for told in (await queue.stats())["tubes"].values())


def _goes_with_work(key: str) -> bool:
    kind = kind_of(key)
    return kind is None or kind.lifetime is Lifetime.WORK
