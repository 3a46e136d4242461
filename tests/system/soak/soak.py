"""A soak: putter and worker processes on a real server, a nemesis that injects faults, and a checker of the journals.

putters ─▶ server ◀─ workers          each writes a journal
             ▲  └─▶ ends of all tasks ─▶ journal
          nemesis                                    journals ─▶ checker
"""

import asyncio
import os
import random
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from core.errors import StoreError
from core.queue import Queue, Tubes
from core.redis.keys import KEYS, Lifetime, kind_of
from core.redis.store import Store
from core.redis.stream_reader import StreamReader
from tests.support.audited import violations_in
from tests.support.paths import ROOT
from tests.support.servers import Server
from tests.support.waiting import until
from tests.system.crash.process import AdaProcess
from tests.system.soak.checker import Verdict, check
from tests.system.soak.journal import Journal, read
from tests.system.soak.nemesis import Log, Nemesis
from tests.system.soak.plan import ENDS_TO, PARKED, STRICT, TUBES

LEASE_MS = 1500
WORKERS, PUTTERS = 3, 2
DRAIN = 40.0
"""Seconds after which a task that has not ended is stuck."""

_CONFIG = "enable-debug-command local\nappendfsync {appendfsync}\n"


@dataclass
class Plan:
    """`per_second`: tasks put by all putters together. `appendfsync`: the setting of the server.

    `before`: a folder with another version of `core` and `lua`, which every second process runs.
    """

    seconds: float
    seed: int
    per_second: float = 60.0
    appendfsync: str = "no"
    before: Path | None = None


@dataclass
class Outcome:
    """`violations`: findings of the audit after the soak. `left`: keys of work that should be gone."""

    verdict: Verdict
    faults: int
    violations: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        return self.verdict.is_good and not self.violations and not self.left

    def __str__(self) -> str:
        after = f"audit: {len(self.violations)} broken, {len(self.left)} keys left"
        return f"{self.verdict}; {self.faults} faults; {after}"

    def findings(self) -> list[str]:
        verdict = self.verdict
        named = {"lost": verdict.lost, "doubled": verdict.doubled, "out of order": verdict.out_of_order}
        named |= {"audit": self.violations, "left": self.left}
        return [f"{name}: {one}" for name, found in named.items() for one in found]


class Soak:
    """One soak in a directory of its own. `scripts`: for each `core` that took part, the hashes of its scripts, or the
    name of its library.
    """

    def __init__(self, directory: Path, plan: Plan, log: Log) -> None:
        self._directory = directory
        self._journals = directory / "journals"
        self._journals.mkdir(parents=True)
        self._plan = plan
        self._log = log
        self._server = Server(directory / "server")
        with self._server.place.config.open("a") as config:
            config.write(_CONFIG.format(appendfsync=plan.appendfsync))
        self._started = 0
        self.scripts: dict[str, set[str]] = {}
        self._workers: list[AdaProcess] = []
        self._putters: list[AdaProcess] = []

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
        self._workers += [self._start_worker() for _ in range(WORKERS)]
        self._putters += [self._putter(number) for number in range(PUTTERS)]
        for program in [*self._workers, *self._putters]:
            facts = await program.ready()
            self.scripts.setdefault(facts["core"], set()).update(facts["scripts"])
        chance = random.Random(self._plan.seed)
        nemesis = Nemesis(
            self._server, self._workers, self._start_worker, LEASE_MS / 1000, chance.randrange(2**32), self._log
        )  # fmt: skip
        await nemesis.run(self._plan.seconds)
        await self._drain(store)
        for task in beside:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        outcome = Outcome(check(read(self._journals), LEASE_MS), nemesis.faults)
        outcome.violations = [str(violation) for violation in await violations_in(store)]
        outcome.left = [key for key in self._server.all_keys() if _is_work(key)]
        return outcome

    # processes

    def _start_worker(self) -> AdaProcess:
        self._started += 1
        return self._program("worker", self._started, str(LEASE_MS))

    def _putter(self, number: int) -> AdaProcess:
        seed = random.Random(f"{self._plan.seed} {number}").randrange(2**32)
        return self._program("putter", number, str(seed), str(self._plan.per_second / PUTTERS))

    def _program(self, module: str, number: int, *words: str) -> AdaProcess:
        name = f"{module}-{number}"
        given = (self._server.url, str(self._journals), name, *words)
        before = self._plan.before if number % 2 else None
        environment = {"PYTHONPATH": f"{before}{os.pathsep}{ROOT}"} if before else {}
        return AdaProcess(given, environment, self._directory / f"{name}.log", module=f"tests.system.soak.{module}")

    # beside

    async def _listen(self) -> None:
        """Writes every end of a task to the journal, as the server reports it in the step that ends the task."""
        journal = Journal(self._journals, "ends")

        def write(_: str, __: str, fields: Mapping[str, str]) -> None:
            journal.write("ended", task=f"0.{fields['task']}", state=fields["state"], answer=fields["answer"])

        await StreamReader(Store(self._server.url), {KEYS["reply"].at(0, ENDS_TO): "0-0"}, write).run()

    async def _kick(self, queue: Queue) -> None:
        """An operator who kicks what was buried."""
        while True:
            with suppress(StoreError):
                for tube in (STRICT, PARKED):
                    await queue.kick_some(tube, 100)
            await asyncio.sleep(0.5)

    async def _drain(self, store: Store) -> None:
        """Stops the putters; then all tasks must end."""
        self._log("no more faults; all tasks must end")
        for putter in self._putters:
            putter.terminate()
        for putter in self._putters:
            if code := await putter.wait(within=DRAIN):
                raise RuntimeError(f"{putter.args[2]} ended with {code}: {putter.output[-2000:]}")
        with suppress(AssertionError):
            await until(lambda: _is_empty(Queue(store)), within=DRAIN, every=0.1)
        for worker in self._workers:
            worker.terminate()
        for worker in self._workers:
            await worker.wait()


async def _is_empty(queue: Queue) -> bool:
    return all(tube.live == 0 for tube in (await queue.inspector.stats()).tubes.values())


def _is_work(key: str) -> bool:
    kind = kind_of(key)
    return kind is None or kind.lifetime is Lifetime.WORK
