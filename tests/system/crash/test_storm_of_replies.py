"""Thousands of people reply to their teachers at once, some twice with one event, while the processes that pass replies
on are killed, or primaries are lost. The book of the judge has every reply: each is in one thread, once, and its
teacher gets it once; nobody else does (R-34).

The seed is printed. Points at which a process dies are in test_replies.py, one by one.
"""

import asyncio
import logging
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Sequence

import pytest

from core.directory import Directory
from core.model.delivery import Sender
from core.model.people import User
from core.queue import QueueClient
from core.threads import Inbox, Threads
from core.threads.limits import MOST
from core.updates.events import Events
from couriers.sending import Feature
from tests.support.replica_set import ReplicaSet
from tests.support.stack import TENANT, FakeCourier, sent
from tests.support.waiting import until
from tests.system.crash.installation import TELEGRAM_BOT, Channel, Installation, person
from tests.system.crash.process import AdaProcess
from tests.system.crash.test_storm_of_answers import repeated
from tests.system.failover.replica_set_blows import ReplicaSetBlows

log = logging.getLogger(__name__)

AT_ONCE = 200
"""People who write at the same time."""
FIRST_TEACHER = 50_000
WITHIN = 900.0


class ReplyStorm:
    """`seconds`: within which all people write, at random moments; 0 for as fast as they can. `book`: teacher → the
    words that people have written to it.
    """

    def __init__(
        self,
        installation: Installation,
        people: int,
        replies: int,
        seed: int,
        teachers: int,
        channel: Channel = TELEGRAM_BOT,
        seconds: float = 0,
    ) -> None:
        assert replies <= people * MOST, "a person may not write more"
        self._channel = channel
        self._seconds = seconds
        self._installation = installation
        self._random = random.Random(seed)
        self._teachers = [FIRST_TEACHER + number for number in range(teachers)]
        self._events = Events(QueueClient(installation.core.store), TENANT)
        self._courier = FakeCourier(self._channel.name, sent, shows=frozenset({Feature.ANSWER}))
        self._running: list[AdaProcess] = []
        self._of: dict[int, int] = {number: self._random.choice(self._teachers) for number in range(1, people + 1)}
        self._writers = sorted(number % people + 1 for number in range(replies))
        self.written = 0
        self.book: dict[int, set[str]] = defaultdict(set)

    async def start(self, processes: int) -> None:
        """Start processes that pass replies on, and send a message of its teacher to each person."""
        users = Directory(self._installation.core.store).users
        for number in self._teachers:
            address = self._channel.address(number)
            await users.create(
                TENANT, User(number, f"T{number}", role="trainer", contacts={self._channel.name: [address]})
            )
        self._running = [self._installation.start_api() for _ in range(processes)]
        for process in self._running:
            await process.ready()
        await self._installation.core.courier(self._courier)
        for teacher in self._teachers:
            people = [person(number, self._channel) for number, one in self._of.items() if one == teacher]
            if people:
                accepted = await self._installation.deliver(*people, replies="sender", sender=Sender(teacher))
                await self._installation.core.finished(accepted.key, within=WITHIN)

    async def write(self) -> None:
        """Have all people write, each reply of every fourth person twice."""
        limit, numbers = asyncio.Semaphore(AT_ONCE), Counter[int]()
        orders = []
        for writer in self._writers:
            numbers[writer] += 1
            orders.append((writer, numbers[writer]))
        self._random.shuffle(orders)

        async def reply(writer: int, number: int) -> None:
            words, address = f"<{writer}.{number}>", self._channel.address(writer)
            self.book[self._of[writer]].add(words)
            event = {"id": f"{writer}.{number}", "channel": self._channel.name, "kind": "text", "source": TENANT,
                     "user_id": address, "chat_id": address, "event_text": words}  # fmt: skip
            await asyncio.sleep(self._random.uniform(0, self._seconds))
            async with limit:
                for _ in range(1 + (writer % 4 == 0)):
                    await repeated(lambda: self._events.put_reply(event))
            self.written += 1

        await asyncio.gather(*(reply(*order) for order in orders))

    async def rage(self, times: int, strike: Callable[[], Awaitable[None]]) -> None:
        """Strike, each time after some more replies were relayed."""
        total = len(self._writers)
        for number in range(times):
            wanted = total * (number + 1) // (times + 1)
            await until(lambda: len(self._relayed()) >= wanted, within=WITHIN, every=0.05)  # noqa: B023 - awaited at once
            await strike()

    async def kill(self) -> None:
        """Kill a process; another one takes the place at once."""
        self._running.pop(self._random.randrange(len(self._running))).kill()
        self._running.append(self._installation.start_api())
        await self._installation.end_leases()

    def _relayed(self) -> Sequence[tuple[str, str]]:
        """Return account and words of each message that has brought words to somebody. The provider recognises a
        repeat.
        """
        received = {(one.seed, one.recipient): one for one in self._courier.attempted}
        texts = [(one.address, one.text) for one in received.values()]
        return [(address, f"<{text.partition('<')[2].partition('>')[0]}>") for address, text in texts if "<" in text]

    async def judge(self) -> None:
        """See that all is as in the book."""
        await until(lambda: self._installation.is_empty("echo"), within=WITHIN, every=0.05)
        found, threads = Counter(self._relayed()), Threads(self._installation.core.store)
        wanted = {(self._channel.address(teacher), words) for teacher, said in self.book.items() for words in said}
        assert found.keys() == wanted, (wanted - found.keys(), found.keys() - wanted)
        assert not [one for one, times in found.items() if times > 1]
        for teacher, said in self.book.items():
            assert await self._said(threads, Inbox("user", str(teacher))) == Counter(said)
        await self._installation.audit()

    async def _said(self, threads: Threads, inbox: Inbox) -> Counter[str]:
        said, cursor, is_over = Counter[str](), None, False
        while not is_over:
            page, cursor = await threads.page(TENANT, inbox, cursor, 100)
            for thread in page:
                said.update(one.text for one in await threads.messages(thread, 0, 1000))
            is_over = cursor is None
        return said


async def storm(installation: Installation, people: int, replies: int, kills: int, seed: int) -> str:
    """Return what it was like, in a line."""
    one = ReplyStorm(installation, people, replies, seed, teachers=max(2, people // 500))
    return f"{await played(one, kills, one.kill)}, {kills} kills, seed {seed}\n"


async def played(one: ReplyStorm, times: int, strike: Callable[[], Awaitable[None]]) -> str:
    await one.start(processes=2)
    began = time.monotonic()
    await asyncio.gather(one.write(), one.rage(times, strike))
    await one.judge()
    return f"{one.written} replies in {time.monotonic() - began:.0f} s"


async def test_a_hundred_replies_and_a_kill_lose_double_and_confuse_none(installation: Installation) -> None:
    await storm(installation, people=25, replies=100, kills=1, seed=1)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("kills", "seed"), [(0, 1), (20, 2)], indirect=["seed"])
async def test_twenty_thousand_replies_lose_double_and_confuse_none(
    installation: Installation, capfd: pytest.CaptureFixture[str], kills: int, seed: int
) -> None:
    line = await storm(installation, people=5_000, replies=20_000, kills=kills, seed=seed)
    with capfd.disabled():
        sys.stdout.write(line)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", [3, 4], indirect=["seed"])
async def test_twenty_thousand_replies_reach_their_teachers_once_while_primaries_are_lost(
    available_installation: Installation, replica_set: ReplicaSet, capfd: pytest.CaptureFixture[str], seed: int
) -> None:
    one = ReplyStorm(available_installation, people=5_000, replies=20_000, seed=seed, teachers=10)
    blows = ReplicaSetBlows(replica_set, seed, log.info, lambda promotion: None)
    line = await played(one, 10, blows.strike)
    with capfd.disabled():
        sys.stdout.write(f"{line}, {dict(blows.counts)}, seed {seed}\n")
