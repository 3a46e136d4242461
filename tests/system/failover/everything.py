"""Everything at once while primaries are lost: the sends of `failover` on six channels, and beside them people who
answer questions and reply to teachers, a bot, users' jobs, imports, backups that are restored elsewhere, an open
console, and kills of couriers, of the bot, of the jobs' process and of processes of the API. Each part has a book; the
memory of the processes stays flat.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from aiohttp import ClientError, ClientSession, ClientTimeout

from tests.system.crash.api_client import KEY
from tests.system.crash.bot import BotInProcesses
from tests.system.crash.installation import Channel, Installation
from tests.system.crash.process import AdaProcess
from tests.system.crash.test_storm_of_answers import AnswerStorm, repeated
from tests.system.crash.test_storm_of_replies import ReplyStorm
from tests.system.failover.backups import Backups
from tests.system.failover.failover import Failover
from tests.system.failover.job_rounds import USERS, JobRounds
from tests.system.failover.memory import Memory

QUESTIONS = tuple(Channel(name, "500000", "", deduplicates=True) for name in ("questions", "polls"))
REPLIES = Channel("letters", "600000", "", deduplicates=True)
"""Played by couriers of the test, which keep a book of their own."""
BOT = '  - {type: send, text: "pong {event_text}"}\n'
ROWS = 200
_TRIES = (ClientError, OSError, TimeoutError)
_PAUSE, _KILL_PAUSE, _SAMPLE_PAUSE, _FINISHING = 1.0, 8.0, 5.0, 120.0


class Everything(Failover):
    """One proof of all parts together. `done`: how much of each part was done."""

    done: dict[str, int]

    async def _begin_beside(self, installation: Installation) -> None:
        self._installation, self._chance = installation, random.Random(self._plan.seed)
        self.done = dict.fromkeys(("pongs", "imports", "signals", "live events", "kills"), 0)
        self._memory = Memory()
        seconds, seed = self._plan.seconds, self._plan.seed
        self._answers = AnswerStorm(installation, int(seconds), int(2 * seconds), seed, 1, channels=QUESTIONS)
        self._replies = ReplyStorm(installation, int(seconds), int(2 * seconds), seed, 4, REPLIES)
        self._bot = BotInProcesses(installation, self._directory / "bot").actions(BOT)
        self._backups = Backups(self._servers.url, self._servers.shards, self._directory, self._calm, self._log)
        self._jobs = JobRounds(installation, self._senders.api)
        self._killable: list[tuple[AdaProcess, Callable[[], AdaProcess]]] = [
            (self._bot.start(), self._bot.start),
            (await self._jobs.start_all(), self._jobs.start_process),
            *((one, lambda args=one.args: installation.start(*args)) for one in self._couriers),
        ]
        self._accepted = await self._answers.start()
        await self._replies.start(1)

    async def _work_beside(self) -> None:
        parts = (self._ping, self._import, self._signal, self._backups.take, self._follow, self._kill, self._weigh)
        await asyncio.gather(
            self._answers.press(self._accepted), self._replies.write(), *(self._until_over(part) for part in parts)
        )
        await self._judge_jobs()

    async def _until_over(self, part: Callable[[], Awaitable[None]]) -> None:
        while not self._senders.is_over:
            with suppress(*_TRIES):
                await part()
            await asyncio.sleep(_PAUSE)

    # the parts

    async def _ping(self) -> None:
        """A person writes to the bot. Even numbers: those of the odd ones stand in lanes."""
        number = 2 * (self.done["pongs"] + 1)
        await repeated(lambda: self._bot.says(900, str(number)))
        self.done["pongs"] += 1

    async def _import(self) -> None:
        """Give all people of a file a new name."""
        turn = self.done["imports"] + 1
        rows = "".join(f"p{number},Round {turn}\n" for number in range(ROWS))
        status, _ = await self._senders.api.import_csv("users", f"id,name\n{rows}", f"import {turn}")
        self.done["imports"] += status < 300

    async def _signal(self) -> None:
        """Send the job of one of its users a signal."""
        await self._jobs.send_ticket(self._chance.choice(USERS))
        self.done["signals"] = self._jobs.tickets.total()

    async def _follow(self) -> None:
        """An open console."""
        headers = {"Authorization": f"Bearer {KEY}"}
        url, within = f"{self._senders.api.url}/v1/live?topics=deliveries", ClientTimeout(total=20)
        async with ClientSession() as session, session.get(url, headers=headers, timeout=within) as live:
            async for line in live.content:
                self.done["live events"] += line.startswith(b"event:")
                if self._senders.is_over:
                    return

    async def _kill(self) -> None:
        """Kill a courier, the bot, the jobs' process or one that counts answers; another one takes its place.

        Not during a blow: what only a process and the primary knew, which are lost at once, may be sent twice
        (docs/high-availability.md).
        """
        await asyncio.sleep(_KILL_PAUSE)
        async with self._calm:
            place = self._chance.randrange(len(self._killable) + 1)
            if place == len(self._killable):
                await self._answers.kill(self._accepted)
            else:
                process, start = self._killable[place]
                process.kill()
                self._killable[place] = start(), start
        self.done["kills"] += 1

    async def _weigh(self) -> None:
        """Note the memory of all processes of Ada."""
        await asyncio.sleep(_SAMPLE_PAUSE)
        self._memory.note(self._installation.running)

    # the verdict

    async def _judge_jobs(self) -> None:
        """Judge and stop the jobs first: the others wait until the queue is empty."""
        try:
            self.done["rounds of jobs"] = await self._jobs.judge()
        except AssertionError as fault:
            self._outcome.findings.append(f"jobs: {str(fault)[:500]}")

    async def _judge(self, installation: Installation) -> None:
        await super()._judge(installation)
        judges: dict[str, Awaitable[object]] = {
            "answers": self._answers.judge(self._accepted),
            "replies": self._replies.judge(),
            "bot": self._judge_bot(),
            "imports": self._judge_imports(),
            "backups": self._backups.move(),
        }
        for name, judged in judges.items():
            try:
                await judged
            except AssertionError as fault:
                self._outcome.findings.append(f"{name}: {str(fault)[:500]}")
        self.done |= {"answers": self._answers.pressed, "replies": self._replies.written}
        self.done |= {"processes weighed": self._memory.judged, "restores": 0, "moves into a cluster and back": 0}
        self.done |= self._backups.done
        self._outcome.findings += [f"no {name}" for name, count in self.done.items() if not count]
        self._outcome.findings += [*self._backups.findings, *self._memory.grown()]
        self._log(f"done: {self.done}")

    async def _judge_bot(self) -> None:
        wanted = {f"pong {2 * number}" for number in range(1, self.done["pongs"] + 1)}
        end = time.monotonic() + _FINISHING
        while missing := wanted - set(self._bot.texts(900)):
            assert time.monotonic() < end, f"the bot has not answered {sorted(missing)[:5]}"
            await asyncio.sleep(_PAUSE)

    async def _judge_imports(self) -> None:
        """See that all have the name of one of the last rounds: one that was answered with an error may have begun."""
        _, page = await self._senders.api.request("GET", "/v1/users?limit=200&sort=id")
        names = {one["name"] for one in page["users"] if str(one["id"]).startswith("p")}
        last = self.done["imports"]
        assert names <= {f"Round {last}", f"Round {last + 1}"}, (last, names)
