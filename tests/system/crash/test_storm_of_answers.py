"""Thousands of people press buttons in two channels at once, press again and change their minds; presses are repeated,
and the processes that count them are killed. The book of the judge has every press: each counts once, the last of a
person counts, and the totals are the sum (R-06).

Printed is how long a press takes from its arrival until it counts. The seed is in the name of each test. The short form
is in tests/core/answers/test_answers.py: 60 people in one process.
"""

import asyncio
import json
import random
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from core.answers import AnswerTokens
from core.model.delivery import Accepted
from core.model.history_key import code_of
from core.model.question import AnswerKind, AnswerState, Option, Pressed, Question, row_field
from core.queue import QueueClient
from core.updates.events import Events
from couriers.sending import Feature
from tests.support.stack import TENANT, FakeCourier, sent
from tests.support.waiting import until
from tests.system.crash.installation import TELEGRAM_BOT, VK, Installation, person
from tests.system.crash.process import AdaProcess

QUESTION = Question(
    AnswerKind.CHOICE, [Option("yes", "Приду"), Option("no", "Не приду"), Option("later", "Позже")], "ru"
)
CHANNELS = (TELEGRAM_BOT, VK)
SHOWS = frozenset({Feature.INLINE, Feature.ANSWER})
AT_ONCE = 200
"""People who press at the same time."""
WITHIN = 600.0


class AnswerStorm:
    """`book`: person → channel → the options that it has pressed there, in order."""

    def __init__(self, installation: Installation, people: int, presses: int, seed: int, processes: int) -> None:
        self._processes = processes
        self._installation = installation
        self._random = random.Random(seed)
        self._people = people
        self._store = installation.core.store
        self._events = Events(QueueClient(self._store), TENANT)
        self._tokens = AnswerTokens(self._store)
        self._running: list[AdaProcess] = []
        self._put_at: dict[tuple[int, str], float] = {}
        self.pressed = 0
        self.book: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for number in [*range(1, people + 1), *self._random.choices(range(1, people + 1), k=presses - people)]:
            self.book[number][self._random.choice(CHANNELS).name].append(self._random.randrange(3))

    async def start(self) -> Accepted:
        """Start processes that count answers, and send the question."""
        self._running = [self._installation.start_api() for _ in range(self._processes)]
        for process in self._running:
            await process.ready()
        for channel in CHANNELS:
            await self._installation.core.courier(FakeCourier(channel.name, sent, shows=SHOWS))
        people = [person(number, *CHANNELS) for number in range(1, self._people + 1)]
        names = tuple(channel.name for channel in CHANNELS)
        accepted = await self._installation.core.deliver(*people, channels=names, question=QUESTION)
        await self._installation.core.finished(accepted.key, within=WITHIN)
        return accepted

    async def press(self, accepted: Accepted) -> None:
        """Have all people press; those of one person in one channel one after another, each fourth press twice."""
        limit = asyncio.Semaphore(AT_ONCE)

        async def presses(number: int, channel: str, options: Sequence[int]) -> None:
            async with limit:
                for place, option in enumerate(options):
                    await self._press(accepted, number, channel, place, option)

        orders = [(number, channel, options) for number, by in self.book.items() for channel, options in by.items()]
        self._random.shuffle(orders)
        await asyncio.gather(*(presses(*order) for order in orders))

    async def _press(self, accepted: Accepted, number: int, channel: str, place: int, option: int) -> None:
        address = next(one for one in CHANNELS if one.name == channel).address(number)
        pressed = Pressed(accepted.key.shard, code_of(accepted.key), number - 1, 0, 0, option)
        token = await self._tokens.sign(TENANT, channel, address, pressed)
        event = {"id": f"{number}.{place}", "channel": channel, "kind": "callback", "user_id": address,
                 "chat_id": address, "callback_data": token}  # fmt: skip
        self._put_at[number, channel] = time.time()
        for _ in range(1 + (number % 4 == 0)):
            await self._events.put(TENANT, event)
        self.pressed += 1

    async def rage(self, kills: int) -> None:
        """Kill processes, each after some more presses; another one takes the place at once."""
        total = sum(len(options) for by in self.book.values() for options in by.values())
        for number in range(kills):
            wanted = total * (number + 1) // (kills + 2)
            await until(lambda: self.pressed >= wanted, within=WITHIN)  # noqa: B023 - awaited at once
            self._running.pop(self._random.randrange(len(self._running))).kill()
            self._running.append(self._installation.start_api())

    async def judge(self, accepted: Accepted) -> Sequence[float]:
        """See that all is as in the book; return how many seconds presses have taken, in order."""
        await until(lambda: self._installation.is_empty("echo"), within=WITHIN, every=0.05)
        rows = await self._rows(accepted)
        for number, by_channel in self.book.items():
            row = rows[number]
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
        await self._installation.audit()
        return self._latencies(rows)

    async def _rows(self, accepted: Accepted) -> Mapping[int, Mapping[str, Any]]:
        names = [row_field(number) for number in range(self._people)]
        texts = await self._store.command("HMGET", str(accepted.key), *names)
        assert None not in texts, "an answer was lost"
        return {number: json.loads(text) for number, text in enumerate(texts, 1)}

    def _latencies(self, rows: Mapping[int, Mapping[str, Any]]) -> Sequence[float]:
        """Return how long the presses of people took that have pressed once."""
        once = {number: by for number, by in self.book.items() if sum(map(len, by.values())) == 1}
        return sorted(rows[number]["at"] / 1000 - self._put_at[number, next(iter(by))] for number, by in once.items())


async def storm(
    installation: Installation, people: int, presses: int, kills: int, seed: int, processes: int = 2
) -> str:
    """Return what it was like, in a line."""
    one = AnswerStorm(installation, people, presses, seed, processes)
    accepted = await one.start()
    began = time.monotonic()
    await asyncio.gather(one.press(accepted), one.rage(kills))
    pressed = time.monotonic() - began
    took = await one.judge(accepted)
    p50, p99 = took[len(took) // 2], took[len(took) * 99 // 100]
    spent = f"{one.pressed} presses in {pressed:.0f} s, {kills} kills, seed {seed}"
    return f"{spent}: a press counts after {p50:.3f} s (p50), {p99:.3f} s (p99)\n"


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("kills", "seed"), [(0, 1), (20, 2), (20, 3)])
async def test_twenty_thousand_presses_of_ten_thousand_people_count_once(
    installation: Installation, capfd: pytest.CaptureFixture[str], kills: int, seed: int
) -> None:
    line = await storm(installation, people=10_000, presses=20_000, kills=kills, seed=seed)
    with capfd.disabled():
        sys.stdout.write(line)
