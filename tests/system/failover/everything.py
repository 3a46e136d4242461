"""Everything at once while primaries are lost: the sends of `failover` on six channels, and beside them people who
answer questions and reply to teachers, a bot, imports, backups, an open console, and kills of couriers, of the bot and
of processes of the API. Each part has a book; the memory of the processes stays flat.
"""

import asyncio
import io
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from statistics import median

from aiohttp import ClientError, ClientSession, ClientTimeout

from core.backup import check_archive
from tests.support.forked import run_ada
from tests.system.crash.api_client import KEY
from tests.system.crash.bot import BotInProcesses
from tests.system.crash.installation import Channel, Installation
from tests.system.crash.process import AdaProcess
from tests.system.crash.test_storm_of_answers import AnswerStorm, repeated
from tests.system.crash.test_storm_of_replies import ReplyStorm
from tests.system.failover.failover import Failover

QUESTIONS = tuple(Channel(name, "500000", "", deduplicates=True) for name in ("questions", "polls"))
REPLIES = Channel("letters", "600000", "", deduplicates=True)
"""Played by couriers of the test, which keep a book of their own."""
BOT = '  - {type: send, text: "pong {event_text}"}\n'
ROWS = 200
_PAUSE, _KILL_PAUSE, _SAMPLE_PAUSE, _FINISHING = 1.0, 8.0, 5.0, 120.0
_GROWTH, _SLACK_MB = 1.3, 15
_TRIES = (ClientError, OSError, TimeoutError)


class Everything(Failover):
    """One proof of all parts together. `done`: how much of each part was done."""

    done: dict[str, int]

    async def _begin_beside(self, installation: Installation) -> None:
        self._installation, self._chance = installation, random.Random(self._plan.seed)
        self.done = dict.fromkeys(("answers", "replies", "pongs", "imports", "backups", "live events", "kills"), 0)
        self._memory: dict[str, list[float]] = {}
        seconds, seed = self._plan.seconds, self._plan.seed
        self._answers = AnswerStorm(installation, int(seconds), int(2 * seconds), seed, 1, channels=QUESTIONS)
        self._replies = ReplyStorm(installation, int(seconds), int(2 * seconds), seed, 4, REPLIES)
        self._bot = BotInProcesses(installation, self._directory / "bot").actions(BOT)
        self._killable: list[tuple[AdaProcess, Callable[[], AdaProcess]]] = [
            (one, self._again(one)) for one in (*self._couriers, self._bot.start())
        ]
        self._accepted = await self._answers.start()
        await self._replies.start(1)

    async def _work_beside(self) -> None:
        parts = (self._ping, self._import, self._back_up, self._follow, self._kill, self._weigh)
        await asyncio.gather(
            self._answers.press(self._accepted), self._replies.write(), *(self._until_over(part) for part in parts)
        )

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

    async def _back_up(self) -> None:
        """Write a backup. One during which the primary is lost ends with an error."""
        file = self._directory / f"{self.done['backups']}.backup"
        environment = {"ADA_REDIS_URL": self._servers.url, "ADA_DATA": str(self._directory / "data")}
        file.unlink(missing_ok=True)
        done = await asyncio.to_thread(run_ada, ["backup", str(file)], environment, self._directory)
        if done.returncode == 0:
            await asyncio.to_thread(check_archive, io.BytesIO(file.read_bytes()), 1)
            self.done["backups"] += 1
        else:
            self._log(f"no backup: {done.stderr.strip().splitlines()[-1:]}")

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
        """Kill a courier, the bot or a process that counts answers; another one takes its place."""
        await asyncio.sleep(_KILL_PAUSE)
        place = self._chance.randrange(len(self._killable) + 1)
        if place == len(self._killable):
            await self._answers.kill(self._accepted)
        else:
            process, start = self._killable[place]
            process.kill()
            self._killable[place] = start(), start
        self.done["kills"] += 1

    def _again(self, process: AdaProcess) -> Callable[[], AdaProcess]:
        if process.args[0] == "scenarios":
            return self._bot.start
        return lambda: self._installation.start(*process.args)

    async def _weigh(self) -> None:
        """Note the memory of the API's process, which nobody kills, and of the primary's data."""
        await asyncio.sleep(_SAMPLE_PAUSE)
        self._memory.setdefault("api", []).append(_megabytes(self._api.pid))

    # the verdict

    async def _judge(self, installation: Installation) -> None:
        await super()._judge(installation)
        for name, judged in {
            "answers": self._answers.judge(self._accepted),
            "replies": self._replies.judge(),
            "bot": self._judge_bot(),
            "imports": self._judge_imports(),
        }.items():
            try:
                await judged
            except AssertionError as fault:
                self._outcome.findings.append(f"{name}: {str(fault)[:500]}")
        self.done |= {"answers": self._answers.pressed, "replies": self._replies.written}
        self._outcome.findings += [f"no {name}" for name, count in self.done.items() if not count]
        for name, sizes in self._memory.items():
            third = max(1, len(sizes) // 3)
            before, after = median(sizes[third : 2 * third] or sizes), median(sizes[-third:])
            self._log(f"memory of {name}: {sizes[0]:.0f}, {before:.0f}, {after:.0f} MB")
            if after > before * _GROWTH + _SLACK_MB:
                self._outcome.findings.append(f"the memory of {name} grew from {before:.0f} to {after:.0f} MB")
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


def _megabytes(pid: int) -> float:
    """Return the resident memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / 1e6
