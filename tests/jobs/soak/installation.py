"""What a soak of jobs runs on: a server, the sandbox's service of vacancies and its models, the API, and processes of
`./ada jobs` in two versions.
"""

import asyncio
import time
from dataclasses import dataclass, field
from pathlib import Path

from cli.processes.embedded_valkey import free_port
from sandbox.models import KEY, MODEL, ModelsServer
from sandbox.state import SandboxState
from sandbox.vacancies import VacanciesServer
from tests.jobs.ledger import Ledger
from tests.jobs.soak import rounds
from tests.jobs.soak.plan import Plan, person_of
from tests.jobs.soak.versions import two_versions
from tests.support.servers import Server
from tests.system.crash.api_client import SETTINGS
from tests.system.crash.process import AdaProcess

ENDS_WITHIN = 60.0
"""Seconds that a process has after SIGTERM."""

UNLIMITED = 1_000_000
"""The daily limit of the service between the blows."""


@dataclass
class Worker:
    """A process of `./ada jobs`. `port`: where its calls reach the service. `frozen`: (begin, end) in Unix seconds."""

    name: str
    version: str
    port: int
    process: AdaProcess
    frozen: list[tuple[float, float]] = field(default_factory=list)


class Installation:
    """`running`: the workers at work. `ended`: those that were. `cuts`: the length of the append-only file at each kill
    of the server.
    """

    def __init__(self, directory: Path, plan: Plan) -> None:
        self.server = Server(directory / "server")
        with self.server.place.config.open("a") as config:
            config.write("auto-aof-rewrite-percentage 0\n")  # the file is the history of all jobs
        self.service = VacanciesServer(SandboxState())
        self._models = ModelsServer(self.service.state)
        self.ledger = Ledger()
        self.running: list[Worker] = []
        self.ended: list[Worker] = []
        self.cuts: list[int] = []
        self.api_url = f"http://127.0.0.1:{free_port()}"
        self._plan = plan
        self._directory = directory
        self._versions = two_versions(directory / "second")
        self._api: AdaProcess | None = None

    async def start(self) -> None:
        self.server.start()
        await self.service.start()
        await self.ledger.start()
        await self._models.start()
        (self._directory / "services.yaml").write_text(self.service.sign_in)
        self.service.takes = 0.2  # so that at each moment many applications are in hand
        self.service.daily_limit = UNLIMITED
        self.service.oauth.lifetime = 90.0  # each token is refreshed 30 seconds later
        self._api = self._process("api", ("serve",), {"ADA_HTTP": self.api_url.removeprefix("http://")})
        versions = [list(self._versions)[number % len(self._versions)] for number in range(self._plan.processes)]
        await asyncio.gather(self._api.ready(), *map(self.start_worker, versions))

    async def close(self) -> None:
        for process in [self._api, *(worker.process for worker in self.running)]:
            if process is not None:
                process.kill()
        await self._models.stop()
        await self.service.stop()
        await self.ledger.stop()
        self.server.kill()

    @property
    def workers(self) -> list[Worker]:
        """All that were ever started."""
        return [*self.ended, *self.running]

    @property
    def append_only_file(self) -> Path:
        (file,) = (self.server.place.directory / "appendonlydir").glob("*.incr.aof")
        return file

    async def start_worker(self, version: str) -> Worker:
        """Returns when it is ready."""
        service = self.service
        port = await service.listen_also()
        name = f"jobs-{len(self.workers)}"
        own = {
            "ADA_JOBS": f"{self._versions[version]},{rounds.__file__}",
            "LEDGER_URL": self.ledger.url,
            "ROUND_PERIOD": str(self._plan.period),
            "ADA_LEASE": f"{self._plan.lease:g}s",
            "HUNT_URL": service.url.replace(str(service.port), str(port)),
            "HUNT_PERIOD": str(self._plan.period),
            "HUNT_PAGES": "100",
        }
        worker = Worker(name, version, port, self._process(name, ("jobs",), own))
        self.running.append(worker)
        await worker.process.ready()
        return worker

    async def replace(self, worker: Worker, version: str) -> Worker:
        """Start a worker in the place of an ended one."""
        self.running.remove(worker)
        self.ended.append(worker)
        return await self.start_worker(version)

    def other_version(self, version: str) -> str:
        return next(other for other in self._versions if other != version)

    def freeze(self, worker: Worker) -> None:
        worker.frozen.append((time.time(), float("inf")))
        worker.process.freeze()

    def thaw(self, worker: Worker) -> None:
        begin, _ = worker.frozen.pop()
        worker.frozen.append((begin, time.time()))
        worker.process.resume()

    def kill_server(self) -> None:
        self.server.kill()
        self.cuts.append(self.append_only_file.stat().st_size)

    def revoke(self, user: int) -> None:
        """The service ends the user's sign-in."""
        self.service.oauth.revoke(person_of(user))

    async def stop_workers(self) -> list[str]:
        """End all with SIGTERM. Returns those that did not end well."""
        for worker in self.running:
            worker.process.terminate()
        codes = {worker.name: await worker.process.wait(ENDS_WITHIN) for worker in self.running}
        self.ended, self.running = self.workers, []
        return [f"{name} ended with {code} after SIGTERM" for name, code in codes.items() if code]

    async def audit(self, name: str) -> list[str]:
        """The findings of `./ada audit`."""
        process = self._process(name, ("audit",), {})
        code = await process.wait(ENDS_WITHIN)
        return [f"{name}: {line}" for line in process.output.splitlines()] if code else []

    def _process(self, name: str, command: tuple[str, ...], own: dict[str, str]) -> AdaProcess:
        environment = {
            "ADA_REDIS_URL": self.server.url,
            "ADA_DATA": str(self._directory / "data"),
            "ADA_PUBLIC_URL": self.api_url,
            "ADA_SIGN_IN": str(self._directory / "services.yaml"),
            "ADA_MODEL_URL": self._models.url,
            "ADA_MODEL_KEY": KEY,
            "ADA_MODEL_NAME": MODEL,
            **SETTINGS,
            **own,
        }
        return AdaProcess(command, environment, self._directory / f"{name}.log")
