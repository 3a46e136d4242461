"""Users' long-running jobs while everything goes on: each round calls the ledger, which keeps the keys of its calls."""

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress

from aiohttp import ClientError

from core.jobs.states import WORKING
from tests.jobs.ledger import Ledger
from tests.jobs.soak import rounds
from tests.jobs.soak.verdict import round_findings
from tests.support.waiting import until
from tests.system.crash.api_client import ApiClient
from tests.system.crash.installation import Installation
from tests.system.crash.process import AdaProcess

USERS = range(1, 7)
_TRIES = (ClientError, OSError, TimeoutError)
"""End a call that an outage has met; it is made again."""
_PERIOD = 2
_FINISHING = 120.0


class JobRounds:
    """`tickets`: user → how many signals its job was sent."""

    def __init__(self, installation: Installation, api: ApiClient) -> None:
        self._installation = installation
        self._api = api
        self._ledger = Ledger()
        self.tickets: Counter[int] = Counter()

    def start_process(self) -> AdaProcess:
        """Start a process that works on jobs; does not wait until it is ready."""
        own = {"ADA_JOBS": rounds.__file__, "LEDGER_URL": self._ledger.url, "ROUND_PERIOD": str(_PERIOD)}
        return self._installation.start("jobs", **own)

    async def start_all(self) -> AdaProcess:
        """Start the ledger, a process, and a job of each user. Return the process.

        The repeat of a call without a response is refused: the job has started.
        """
        await self._ledger.start()
        process = self.start_process()
        for user in USERS:
            status, body = 0, {"kind": "round", "user": user}
            while status not in (201, 409):
                with suppress(*_TRIES):
                    status, _ = await self._api.request("POST", "/v1/jobs", body)
        return process

    async def send_ticket(self, user: int) -> None:
        """Send a signal; one that was not accepted is sent again by the next call, under its id."""
        number = self.tickets[user] + 1
        signal = {"name": "ticket", "data": number, "id": f"ticket {number}"}
        status, _ = await self._api.request("POST", f"/v1/jobs/round.{user}:signal", signal)
        self.tickets[user] += status < 300

    async def judge(self) -> int:
        """Wait for two more rounds of each user, stop the jobs, see that each round did everything once.

        Nothing of the jobs is under way afterwards. Return how many rounds have ended.
        """
        for user in USERS:
            await self.send_ticket(user)  # perhaps the repeat of one that was accepted without a response
        before = await self._iterations()
        await until(lambda: self._have_gone_on(before), within=_FINISHING, every=0.5)
        for user in USERS:
            status, refusal = await self._api.request("POST", f"/v1/jobs/round.{user}:stop", {})
            assert status < 300, refusal
        await until(self._have_stopped, within=_FINISHING, every=0.5)
        ended = await self._iterations()
        await self._ledger.stop()
        found = round_findings(self._ledger.keys, ended, self.tickets)
        assert not found, found
        return sum(ended.values())

    async def _have_gone_on(self, before: Mapping[int, int]) -> bool:
        return all(count >= before[user] + 2 for user, count in (await self._iterations()).items())

    async def _have_stopped(self) -> bool:
        _, page = await self._api.request("GET", "/v1/jobs?limit=200")
        return not any(job["state"] in WORKING for job in page["jobs"])

    async def _iterations(self) -> dict[int, int]:
        """Return how many rounds of each user have ended."""
        _, page = await self._api.request("GET", "/v1/jobs?kind=round")
        return {int(job["user"]): int(job["iterations"]) for job in page["jobs"]}
