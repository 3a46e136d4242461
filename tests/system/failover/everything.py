"""Everything at once while primaries are lost: the sends of `failover` on six channels whose providers have faults, and
beside them people who answer questions and reply to teachers, a bot, users' jobs, imports, backups that are restored
elsewhere and moved into a cluster and back, open consoles, and kills of couriers, of the bot, of the jobs' process and
of processes of the API. Each part has a book; the memory of the processes stays flat.
"""

import asyncio
import random
import time
import traceback
from collections.abc import Awaitable, Callable
from contextlib import suppress

from aiohttp import ClientError, ClientSession, ClientTimeout

from core.redis.cancel_and_wait import cancel_and_wait
from sandbox.events import Fault, Rule
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
CONSOLES = 3
FAULTS = {
    "telegram": ("flood_wait", "server_error", "stored_then_error", "disconnect_after"),
    "telegram-bot": ("flood_wait", "server_error", "stored_then_error", "disconnect_before"),
    "vk": ("too_fast", "bad_gateway", "stored_then_error", "disconnect_before"),
    "max": ("too_fast", "busy", "stored_then_bad_gateway", "disconnect_after"),
    "sms": ("busy", "queued", "accepted_then_cut", "disconnect_before"),
    "email": ("busy", "shutting_down", "stored_then_cut", "cut_after_data"),
}
"""What meets one call of a channel. After each of them the message still arrives, or nobody knows."""
SPARED = ("telegram", "max")
"""Couriers that are not killed, so that their memory is that of the whole run. So are one process of the bot, one of
the jobs and one of the API.
"""
_WAIT = 1
"""Seconds that a provider asks to wait."""
_TRIES = (ClientError, OSError, TimeoutError)
_PAUSE, _KILL_PAUSE, _SAMPLE_PAUSE, _BACKUP_PAUSE, _FINISHING = 1.0, 8.0, 5.0, 10.0, 120.0


class Everything(Failover):
    """One proof of all parts together. `done`: how much of each part was done."""

    done: dict[str, int]

    async def _begin_beside(self, installation: Installation) -> None:
        self._installation, self._chance = installation, random.Random(self._plan.seed)
        self.done = dict.fromkeys(("pongs", "imports", "signals", "live events", "faults", "kills", "restarts"), 0)
        self._memory = Memory()
        seconds, seed = self._plan.seconds, self._plan.seed
        people, twice = int(seconds), int(2 * seconds)
        self._answers = AnswerStorm(installation, people, twice, seed, 1, channels=QUESTIONS, seconds=seconds)
        self._replies = ReplyStorm(installation, people, twice, seed, 4, REPLIES, seconds)
        self._bot = BotInProcesses(installation, self._directory / "bot").actions(BOT)
        self._backups = Backups(self._servers.url, self._servers.shards, self._directory, self._calm, self._log)
        self._jobs = JobRounds(installation, self._senders.api)
        self._killable: list[tuple[AdaProcess, Callable[[], AdaProcess]]] = [
            (self._bot.start(), self._bot.start),
            (await self._jobs.start_all(), self._jobs.start_process),
            *(
                (one, lambda args=one.args: installation.start(*args))
                for one in self._couriers
                if one.args[-1] not in SPARED
            ),
        ]
        self._bot.start()
        self._jobs.start_process()
        self._accepted = await self._answers.start()
        await self._replies.start(1)
        self._keeping = asyncio.create_task(self._keep_running())

    async def _work_beside(self) -> None:
        quick = (self._ping, self._import, self._signal, self._spoil, *[self._follow] * CONSOLES)
        rare = {self._kill: _KILL_PAUSE, self._weigh: _SAMPLE_PAUSE, self._backups.take: _BACKUP_PAUSE}
        await asyncio.gather(
            self._guard(lambda: self._answers.press(self._accepted)),
            self._guard(self._replies.write),
            *(self._until_over(part, _PAUSE) for part in quick),
            *(self._until_over(part, pause) for part, pause in rare.items()),
        )
        await self._judge_jobs()

    async def _until_over(self, part: Callable[[], Awaitable[None]], pause: float) -> None:
        while not self._senders.is_over:
            with suppress(*_TRIES):
                await self._guard(part)
            await asyncio.sleep(pause)

    async def _guard(self, part: Callable[[], Awaitable[None]]) -> None:
        """Do a part. Whatever ends it but an outage is a finding, and the other parts go on."""
        try:
            await part()
        except _TRIES:
            raise
        except Exception:  # noqa: BLE001 - of any kind
            self._find(traceback.format_exc()[-3000:])

    async def _keep_running(self) -> None:
        """Start again what has ended by itself, as a supervisor does: a courier whose sign-in a fault has met."""
        while True:
            for place, (process, start) in enumerate(self._killable):
                if not process.is_running:
                    self._killable[place] = start(), start
                    self.done["restarts"] += 1
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

    async def _spoil(self) -> None:
        """Let the provider of a channel spoil its next call, unless it is about to: a courier that starts gets in."""
        state, channel = self._sandbox.state, self._chance.choice(self._plan.channels)
        if all(rule.channel != channel for rule in state.rules().values()):
            state.add_rule(Rule(channel, Fault(self._chance.choice(FAULTS[channel]), _WAIT), times=1))
            self.done["faults"] += 1

    async def _kill(self) -> None:
        """Kill a courier, the bot, the jobs' process or one that counts answers; another one takes its place.

        Not during a blow: what only a process and the primary knew, which are lost at once, may be sent twice
        (docs/high-availability.md).
        """
        async with self._calm:
            place = self._chance.randrange(len(self._killable) + 1)
            if place == len(self._killable):
                await self._answers.kill(self._accepted)
            else:
                process, start = self._killable[place]
                self._log(f"kill {' '.join(process.args)} ({process.pid})")
                process.kill()
                self._killable[place] = start(), start
        self.done["kills"] += 1

    async def _weigh(self) -> None:
        """Note the memory of all processes of Ada."""
        self._memory.note(self._installation.running)

    # the verdict

    async def _judge_jobs(self) -> None:
        """Judge and stop the jobs first: the others wait until the queue is empty."""
        try:
            self.done["rounds of jobs"] = await self._jobs.judge()
        except AssertionError as fault:
            self._find(f"jobs: {str(fault)[:500]}")

    async def _judge(self, installation: Installation) -> None:
        self._sandbox.state.clear_rules()
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
                self._find(f"{name}: {str(fault)[:500]}")
        await cancel_and_wait(self._keeping)
        self.done |= {"answers": self._answers.pressed, "replies": self._replies.written}
        self.done |= {"processes weighed": self._memory.judged, "restores": 0, "moves into a cluster and back": 0}
        self.done |= self._backups.done
        self._outcome.findings += [
            f"no {name}" for name, count in self.done.items() if not count and name != "restarts"
        ]
        self._outcome.findings += [*self._backups.findings, *self._memory.grown()]
        self._outcome.beside = self.done
        for line in self._memory.figures():
            self._log(line)

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
