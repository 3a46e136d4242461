"""The blows of a soak of jobs, in random order: at the processes, and at the same time at the server and service."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

from sandbox.events import Fault, Rule
from sandbox.faults import VACANCIES
from tests.jobs.soak.installation import ENDS_WITHIN, UNLIMITED, Installation, Worker
from tests.jobs.soak.plan import Plan, person_of
from tests.system.soak.nemesis import Log, ShuffledCycle

_METHODS = ("profile", "search", "apply", "apply", "applied")
Blow = Callable[[], Awaitable[None]]


class Blows:
    """`counts`: by kind."""

    def __init__(self, installation: Installation, plan: Plan, log: Log) -> None:
        self._installation = installation
        self._service = installation.service
        self._plan = plan
        self._chance = random.Random(f"blows {plan.seed}")
        self._log = log
        self.counts: Counter[str] = Counter()

    async def run(self, seconds: float) -> None:
        """Each kind at least once. Returns when the server and all processes run again, and the service has no faults
        any more.
        """
        until = asyncio.get_running_loop().time() + seconds
        at_processes = (self._terminate, self._kill, self._freeze)
        at_others = (self._kill_server, self._disturb, self._revoke, self._limit)
        await asyncio.gather(self._strike(at_processes, until), self._strike(at_others, until))
        self._service.state.clear_rules()

    async def _strike(self, blows: Sequence[Blow], until: float) -> None:
        cycle = ShuffledCycle(blows, self._chance)
        struck = 0
        while struck < len(blows) or asyncio.get_running_loop().time() < until:
            await cycle.next()()
            struck += 1
            await asyncio.sleep(self._chance.uniform(0.2, 1.2))

    def _struck(self, kind: str, what: str) -> None:
        self.counts[kind] += 1
        self._log(f"{kind}: {what}")

    # the processes

    def _pick(self) -> Worker:
        return self._chance.choice(self._installation.running)

    async def _terminate(self) -> None:
        """A deploy: the other version takes the place."""
        worker = self._pick()
        version = self._installation.other_version(worker.version)
        self._struck("SIGTERM", f"{worker.name} ({worker.version} version)")
        worker.process.terminate()
        if code := await worker.process.wait(ENDS_WITHIN):
            raise RuntimeError(f"{worker.name} ended with {code} after SIGTERM: {worker.process.output[-2000:]}")
        await self._installation.replace(worker, version)

    async def _kill(self) -> None:
        worker = self._pick()
        self._struck("SIGKILL", worker.name)
        worker.process.kill()
        await self._installation.replace(worker, worker.version)

    async def _freeze(self) -> None:
        worker, seconds = self._pick(), self._plan.lease * self._chance.uniform(1.2, 4)
        self._struck("SIGSTOP", f"{worker.name} for {seconds:.1f} s")
        self._installation.freeze(worker)
        await asyncio.sleep(seconds)
        self._installation.thaw(worker)

    # the server and the service

    async def _kill_server(self) -> None:
        down = self._chance.choice((0.0, 0.5, self._plan.lease * 1.3))
        self._struck("server killed", f"down for {down:.1f} s")
        await asyncio.to_thread(self._installation.kill_server)
        await asyncio.sleep(down)
        await asyncio.to_thread(self._installation.server.start)

    async def _disturb(self) -> None:
        """Some next calls fail: 401, 429, 5xx, lost answers, …"""
        some = -(-self._plan.jobs // 8)
        self._struck("faults of the service", f"{some} calls")
        for user in self._chance.sample(self._plan.users, some):
            fault = Fault(self._chance.choice(list(VACANCIES)))
            method = self._chance.choice(_METHODS)
            self._service.state.add_rule(Rule("vacancies", fault, person_of(user), method, times=1))

    async def _revoke(self) -> None:
        users = self._chance.sample(self._plan.users, -(-self._plan.jobs // 50))
        self._struck("sign-in revoked", f"of {len(users)} users")
        for user in users:
            self._installation.revoke(user)

    async def _limit(self) -> None:
        """For a moment the service takes no applications."""
        self._struck("daily limit", "for 0.3 s")
        self._service.daily_limit = 0
        await asyncio.sleep(0.3)
        self._service.daily_limit = UNLIMITED
