"""Thousands of people press buttons in two channels at once, press again and change their minds; presses are repeated,
and the processes that count them are killed, or primaries are lost. The book of the judge has every press: each counts
once, the last of a person counts, and the totals are the sum (R-06). A reminder reaches all who are silent, once, and
nobody who has answered before it was made.

Printed is how long a press takes from its arrival until it counts, and the seed. The short form
is in tests/core/answers/test_answers.py: 60 people in one process.
"""

import asyncio
import json
import logging
import random
import sys
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

import pytest

from core.answers import Answers, AnswerTokens, OpenQuestions
from core.errors import StoreError
from core.model.delivery import Accepted
from core.model.history_key import code_of
from core.model.question import MOST_REMINDERS_BY_HAND, AnswerKind, AnswerState, Option, Pressed, Question, row_field
from core.model.states import Status
from core.queue import QueueClient
from core.updates.events import Events
from couriers.sending import Feature
from tests.support.replica_set import ReplicaSet
from tests.support.stack import TENANT, FakeCourier, sent
from tests.support.waiting import until
from tests.system.crash.installation import TELEGRAM_BOT, VK, Channel, Installation, person
from tests.system.crash.process import AdaProcess
from tests.system.failover.replica_set_blows import ReplicaSetBlows

log = logging.getLogger(__name__)

QUESTION = Question(
    AnswerKind.CHOICE, [Option("yes", "Приду"), Option("no", "Не приду"), Option("later", "Позже")], "ru"
)
CHANNELS = (TELEGRAM_BOT, VK)
SHOWS = frozenset({Feature.INLINE, Feature.ANSWER})
AT_ONCE = 200
"""People who press at the same time."""
WITHIN = 600.0


class AnswerStorm:
    """`seconds`: within which all people press, at random moments; 0 for as fast as they can.
    `book`: person → channel → the options that it has pressed there, in order. `silent`: people who press nothing.
    `reminded`: who had answered before each wave of reminders.
    """

    def __init__(
        self,
        installation: Installation,
        people: int,
        presses: int,
        seed: int,
        processes: int,
        silent: int = 0,
        channels: Sequence[Channel] = CHANNELS,
        seconds: float = 0,
    ) -> None:
        self._channels = channels
        self._processes = processes
        self._installation = installation
        self._random = random.Random(seed)
        self._people = people
        self._silent = silent
        self._seconds = seconds
        self._store = installation.core.store
        self._events = Events(QueueClient(self._store), TENANT)
        self._tokens = AnswerTokens(self._store)
        self._answers = Answers(self._store)
        self._questions = OpenQuestions(self._store)
        self.reminded: list[set[int]] = []
        self._running: list[AdaProcess] = []
        self._put_at: dict[tuple[int, str], float] = {}
        self.pressed = 0
        self.book: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for number in [*range(1, people + 1), *self._random.choices(range(1, people + 1), k=presses - people)]:
            self.book[number][self._random.choice(channels).name].append(self._random.randrange(3))

    async def start(self) -> Accepted:
        """Start processes that count answers, and send the question."""
        self._running = [self._installation.start_api() for _ in range(self._processes)]
        for process in self._running:
            await process.ready()
        for channel in self._channels:
            await self._installation.core.courier(FakeCourier(channel.name, sent, shows=SHOWS))
        people = [person(number, *self._channels) for number in range(1, self._people + self._silent + 1)]
        names = tuple(channel.name for channel in self._channels)
        accepted = await self._installation.core.deliver(*people, channels=names, question=QUESTION)
        await self._installation.core.finished(accepted.key, within=WITHIN)
        return accepted

    async def press(self, accepted: Accepted) -> None:
        """Have all people press; those of one person in one channel one after another, each fourth press twice."""
        limit = asyncio.Semaphore(AT_ONCE)

        async def presses(number: int, channel: str, options: Sequence[int]) -> None:
            await asyncio.sleep(self._random.uniform(0, self._seconds))
            async with limit:
                for place, option in enumerate(options):
                    await self._press(accepted, number, channel, place, option)

        orders = [(number, channel, options) for number, by in self.book.items() for channel, options in by.items()]
        self._random.shuffle(orders)
        await asyncio.gather(*(presses(*order) for order in orders))

    async def _press(self, accepted: Accepted, number: int, channel: str, place: int, option: int) -> None:
        address = next(one for one in self._channels if one.name == channel).address(number)
        pressed = Pressed(accepted.key.shard, code_of(accepted.key), number - 1, 0, 0, option)
        token = await self._tokens.sign(TENANT, channel, address, pressed)
        event = {"id": f"{number}.{place}", "channel": channel, "kind": "callback", "user_id": address,
                 "chat_id": address, "callback_data": token}  # fmt: skip
        self._put_at[number, channel] = time.time()
        for _ in range(1 + (number % 4 == 0)):
            await repeated(lambda: self._events.put(TENANT, event))
        self.pressed += 1

    async def rage(self, times: int, strike: Callable[[], Awaitable[None]]) -> None:
        """Strike, each time after some more presses."""
        total = sum(len(options) for by in self.book.values() for options in by.values())
        for number in range(times):
            wanted = total * (number + 1) // (times + 2)
            await until(lambda: self.pressed >= wanted, within=WITHIN)  # noqa: B023 - awaited at once
            await strike()

    async def kill(self, _accepted: Accepted) -> None:
        """Kill a process; another one takes the place at once."""
        self._running.pop(self._random.randrange(len(self._running))).kill()
        self._running.append(self._installation.start_api())

    async def remind(self, accepted: Accepted) -> None:
        """Remind those who have not answered, as often as may be."""
        if len(self.reminded) < MOST_REMINDERS_BY_HAND:
            self.reminded.append({number for number, row in (await self._rows(accepted)).items() if row})
            wave = len(self.reminded)
            await repeated(lambda: self._questions.remind(accepted.key, TENANT, wave, "anna"))

    async def judge(self, accepted: Accepted) -> Sequence[float]:
        """See that all is as in the book; return how many seconds presses have taken, in order."""
        await until(lambda: self._installation.is_empty("echo"), within=WITHIN, every=0.05)
        rows = await self._rows(accepted)
        for number, by_channel in self.book.items():
            row = rows[number]
            assert row, f"the answer of {number} was lost"
            last = {QUESTION.options[options[-1]].key for options in by_channel.values()}
            assert row["value"] in last, (number, by_channel, row)
            handled = [line.split()[0] for line in row["events"]]
            presses = sum(map(len, by_channel.values()))
            assert len(set(handled)) == len(handled) == min(presses, 20), (number, by_channel, row)
        history = await self._installation.core.history(accepted.key)
        assert history.answers
        values = [row["value"] for row in rows.values()]
        assert history.answers.options == {one.key: values.count(one.key) for one in QUESTION.options}
        assert history.answers.states[AnswerState.ANSWERED] == self._people
        await self._judge_reminders(accepted)
        await self._installation.audit()
        return self._latencies(rows)

    async def _judge_reminders(self, accepted: Accepted) -> None:
        history = await self._installation.core.history(accepted.key, limit=self._people + self._silent)
        assert len(history.reminders.sent) == len(self.reminded)
        for number, recipient in enumerate(history.recipients, 1):
            waves = [one.wave for one in recipient.reminders]
            assert len(set(waves)) == len(waves), (number, waves)
            assert not [wave for wave in waves if number in self.reminded[wave - 1]], (number, waves)
            if number > self._people:
                assert [one.outcome.status for one in recipient.reminders] == [Status.SENT] * len(self.reminded)

    async def _rows(self, accepted: Accepted) -> Mapping[int, Mapping[str, Any]]:
        """Return the answers of those who press, {} for who has not yet."""
        names = [row_field(number) for number in range(self._people)]
        texts = await repeated(lambda: self._store.command("HMGET", str(accepted.key), *names))
        return {number: json.loads(text) if text else {} for number, text in enumerate(texts, 1)}

    def _latencies(self, rows: Mapping[int, Mapping[str, Any]]) -> Sequence[float]:
        """Return how long the presses of people took that have pressed once."""
        once = {number: by for number, by in self.book.items() if sum(map(len, by.values())) == 1}
        return sorted(rows[number]["at"] / 1000 - self._put_at[number, next(iter(by))] for number, by in once.items())


async def repeated(call: Callable[[], Awaitable[Any]]) -> Any:
    """Call until the store takes it, as callers do that are told to try again."""
    while True:
        try:
            return await call()
        except StoreError as fault:
            log.info("again: %s", fault)


async def storm(
    installation: Installation, people: int, presses: int, kills: int, seed: int, seconds: float = 0
) -> str:
    """Return what it was like, in a line."""
    one = AnswerStorm(installation, people, presses, seed, processes=2, seconds=seconds)
    return f"{await played(one, kills, one.kill)}, {kills} kills, seed {seed}\n"


async def storm_of_lost_primaries(
    installation: Installation, servers: ReplicaSet, people: int, presses: int, lost: int, seed: int
) -> str:
    """Return what it was like, in a line. Before each loss those who have not answered are reminded."""
    one = AnswerStorm(installation, people, presses, seed, processes=2, silent=people // 10)
    blows = ReplicaSetBlows(servers, seed, log.info, lambda promotion: None)

    async def strike(accepted: Accepted) -> None:
        await asyncio.gather(one.remind(accepted), blows.strike())

    line = await played(one, lost, strike)
    return f"{line}, {dict(blows.counts)}, seed {seed}\n"


async def played(one: AnswerStorm, times: int, strike: Callable[[Accepted], Awaitable[None]]) -> str:
    accepted = await one.start()
    began = time.monotonic()
    await asyncio.gather(one.press(accepted), one.rage(times, partial(strike, accepted)))
    pressed = time.monotonic() - began
    took = await one.judge(accepted)
    p50, p99 = took[len(took) // 2], took[len(took) * 99 // 100]
    spent = f"{one.pressed} presses in {pressed:.0f} s"
    return f"{spent}: a press counts after {p50:.3f} s (p50), {p99:.3f} s (p99)"


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("kills", "seed", "seconds"), [(0, 1, 0), (20, 2, 0), (20, 3, 0), (0, 6, 60)], indirect=["seed"]
)
async def test_twenty_thousand_presses_of_ten_thousand_people_count_once(
    installation: Installation, capfd: pytest.CaptureFixture[str], kills: int, seed: int, seconds: float
) -> None:
    line = await storm(installation, people=10_000, presses=20_000, kills=kills, seed=seed, seconds=seconds)
    with capfd.disabled():
        sys.stdout.write(line)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", [4, 5], indirect=["seed"])
async def test_twenty_thousand_presses_count_once_while_primaries_are_lost(
    available_installation: Installation, replica_set: ReplicaSet, capfd: pytest.CaptureFixture[str], seed: int
) -> None:
    size = {"people": 10_000, "presses": 20_000, "lost": 10}
    line = await storm_of_lost_primaries(available_installation, replica_set, seed=seed, **size)
    with capfd.disabled():
        sys.stdout.write(line)
