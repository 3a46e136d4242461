"""Two bots of two tenants, with the same names in them, answer the same people over the Bot API while the processes of
both are killed. They ask, post to a service, answer presses, and write by themselves each minute.

The book of the service, the chats and the histories are compared: nothing is lost, nothing is doubled, no request is
repeated that must not be, no moment of a schedule starts twice, and nothing of one tenant is at the other one. A
message of which the history does not know the outcome may be missing: the Bot API recognises no repeat. A question of
that outcome takes no answer (C-107), unless the answer came before the outcome.
"""

import asyncio
import logging
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from core.model.history import History
from sandbox.bot_api.people_actions import PeopleActions
from scenarios.stores.forms import Forms, Remembered
from tests.support.waiting import until
from tests.system.crash.bots_of_tenants import LINES, SCHEDULE, TENANTS, step_of, token_of, write_bot
from tests.system.crash.http_book import HttpBook
from tests.system.crash.installation import Installation
from tests.system.crash.process import AdaProcess

log = logging.getLogger(__name__)

PROCESSES = (
    ("scenarios",),
    ("scenarios",),
    ("courier", "telegram-bot"),
    ("courier", "telegram-bot"),
    ("bot", "telegram"),
)
FIRST = 100_001
WITHIN = 120.0


@dataclass(frozen=True)
class Plan:
    """`seconds`: rounds begin until then, and again around the first moment of the schedule if it has not come."""

    people: int
    seconds: float
    seed: int


class TenantsStorm:
    """The processes, each of which may be killed and is replaced, and the people who write to both bots."""

    def __init__(self, installation: Installation, root: Path, book: HttpBook, plan: Plan) -> None:
        self._installation = installation
        self._root = root
        self._book = book
        self._people = range(FIRST, FIRST + plan.people)
        self._seconds = plan.seconds
        self._random = random.Random(plan.seed)
        self._running: list[AdaProcess] = []
        self._presses: dict[tuple[str, int], list[str]] = {(one, who): [] for one in TENANTS for who in self._people}
        self._is_over = False
        self.rounds = 0
        self.kills: Counter[str] = Counter()
        self.findings: list[str] = []
        self._lost_questions: set[str] = set()
        self._unknown = self._moments = 0

    def __str__(self) -> str:
        arrived, unknown = sum(self._book_of(one).total() for one in TENANTS), self._unknown
        return (
            f"{self.rounds} rounds, {self.kills.total()} kills, {arrived} messages, {unknown} unknown,"
            f" {self._moments} moments, {self._book.written.total()} requests written, {self._book.repeats} repeated"
        )

    # what happens

    async def run(self) -> None:
        """Start everything, write and kill until the time is over, then compare."""
        for tenant in TENANTS:
            write_bot(self._root, tenant, self._book.url)
        for arguments in PROCESSES:
            self._start(*arguments)
        await asyncio.gather(*(process.ready() for process in self._running))
        for tenant in TENANTS:
            for who in self._people:
                self._chat(tenant).write(who, "/start")
        await until(self._have_menus, within=WITHIN, every=0.05)
        self._schedule(SCHEDULE)
        rage = asyncio.create_task(self._rage())
        await self._write()
        await rage
        self._schedule("{}\n")
        await until(self._is_quiet, within=WITHIN, every=0.05)
        await self._compare()

    def _start(self, *arguments: str) -> None:
        settings = {"ADA_SCENARIOS": str(self._root), "ADA_QUIET_HOURS": "off", "ADA_WEBHOOK_ALLOW_PRIVATE": "true"}
        self._running.append(self._installation.start(*arguments, **settings))

    def _have_menus(self) -> bool:
        return all(self._book_of(tenant).total() == len(self._people) for tenant in TENANTS)

    def _schedule(self, text: str) -> None:
        for tenant in TENANTS:
            (self._root / tenant / "schedule.yaml").write_text(text)

    async def _write(self) -> None:
        began = time.monotonic()
        while (is_long := time.monotonic() < began + self._seconds) or not self._has_ticked():
            if not is_long:
                await until(self._is_moment_near, within=WITHIN, every=0.05)
            for tenant in TENANTS:
                for who in self._people:
                    self._write_round(tenant, who)
            self.rounds += 1
            await until(self._has_pressed, within=WITHIN, every=0.05)
            await until(self._is_quiet, within=WITHIN, every=0.05)
        self._is_over = True

    def _has_pressed(self) -> bool:
        """Whether every press has an answer: the bot has what was written before."""
        return all(self._chat(one).answer(press) for (one, _), all_ in self._presses.items() for press in all_)

    def _has_ticked(self) -> bool:
        return all(any(" tick " in text for text in self._book_of(tenant)) for tenant in TENANTS)

    def _is_moment_near(self) -> bool:
        """Whether a moment of the schedule, at the minute, comes or has come just now: rounds long before cost time and
        prove no more.
        """
        return (time.time() + 3) % 60 < 10 or self._has_ticked()

    def _write_round(self, tenant: str, who: int) -> None:
        chat = self._chat(tenant)
        for line in LINES:
            chat.write(who, f"{line} {self.rounds}")
        menu = next(message for message in chat.messages(who) if message.get("reply_markup"))
        self._presses[tenant, who].append(chat.press(who, menu["message_id"], "Press"))

    async def _rage(self) -> None:
        """Kill processes, each after some more messages have arrived; another one takes the place at once."""
        while not self._is_over:
            wanted = self._arrived + self._random.randint(1, 2 * len(self._people))
            await until(lambda: self._arrived >= wanted or self._is_over, within=WITHIN)  # noqa: B023 - awaited at once
            process = self._running.pop(self._random.randrange(len(self._running)))
            process.kill()
            self.kills[process.args[0]] += 1
            self._start(*process.args)

    @property
    def _arrived(self) -> int:
        return len(self._installation.state.inbox("telegram-bot"))

    async def _is_quiet(self) -> bool:
        """Whether no task is left but those of the next moments, and the answers whose question was lost: `serve`
        takes them to the threads, and is not here.
        """
        return await self._installation.is_empty("schedules:waiting", "replies:ready", "replies:locked")

    def _chat(self, tenant: str) -> PeopleActions:
        return self._installation.sandbox.bot_api.people_of(token_of(tenant))

    def _texts(self, tenant: str, who: int) -> list[str]:
        chat = self._chat(tenant)
        bot = int(token_of(tenant).partition(":")[0])
        return [str(message["text"]) for message in chat.messages(who) if message["from"]["id"] == bot]

    def _book_of(self, tenant: str) -> Counter[str]:
        return Counter(text for who in self._people for text in self._texts(tenant, who))

    # what is compared

    async def _compare(self) -> None:
        for tenant in TENANTS:
            histories = [one async for one in self._histories(tenant)]
            self._compare_histories(tenant, histories)
            self._compare_ticks(tenant, {one.text for one in histories})
            for who in self._people:
                self._compare_lines(tenant, who, {one.text for one in histories})
                self._compare_presses(tenant, who)
                await self._compare_memory(tenant, who, {one.text for one in histories})
        self.findings += [f"{line} came with the secret of another tenant" for line in self._book.strange]
        await self._installation.audit()

    async def _histories(self, tenant: str) -> AsyncIterator[History]:
        cursor: str | None = None
        while True:
            page, cursor = await self._installation.core.deliveries.list(tenant, cursor=cursor)
            for history in page:
                yield history
            if cursor is None:
                return

    def _compare_histories(self, tenant: str, histories: Sequence[History]) -> None:
        """Each text was ordered once; it is in the chat as often as its history says."""
        ordered, arrived = Counter(one.text for one in histories), self._book_of(tenant)
        self.findings += [f"ordered {number} times: {text}" for text, number in ordered.items() if number > 1]
        self.findings += [f"arrived {number} times: {text}" for text, number in arrived.items() if number > 1]
        self.findings += [f"arrived without a history: {text}" for text in arrived.keys() - ordered.keys()]
        self._unknown += sum(one.counts.get("unknown", 0) for one in histories)
        self._lost_questions |= {one.text for one in histories if one.counts.get("unknown") and one.text.endswith("?")}
        for one in histories:
            if not one.text.startswith(f"{tenant} "):
                self.findings.append(f"at {tenant}: {one.text}")
            if not one.counts.get("unknown") and (one.counts.get("sent") != 1 or one.text not in arrived):
                self.findings.append(f"{dict(one.counts)}, arrived {arrived[one.text]} times: {one.text}")

    def _compare_ticks(self, tenant: str, ordered: set[str]) -> None:
        """Each moment has started a run for each person."""
        moments = {text.partition(" tick ")[2] for text in ordered if " tick " in text}
        expected = {f"{tenant} {who} tick {moment}" for who in self._people for moment in moments}
        self._moments += len(moments)
        self.findings += [f"not started: {text}" for text in expected - ordered]

    def _compare_lines(self, tenant: str, who: int, ordered: set[str]) -> None:
        """What a person has written was answered, in order; what it had posted is in the service's book."""
        expected = [text for number in range(self.rounds) for text in self._expected(tenant, who, number, ordered)]
        self.findings += [f"not answered: {text}" for text in expected if text not in ordered]
        wanted = [text for text in expected if text in set(self._texts(tenant, who))]
        arrived = [text for text in self._texts(tenant, who) if " tick " not in text and not text.endswith(" menu")]
        if arrived != wanted:
            self.findings.append(f"another order: {arrived}")

    def _expected(self, tenant: str, who: int, number: int, ordered: set[str]) -> list[str]:
        keyed, plain = ((tenant, str(who), f"{line} {number}") for line in ("keyed", "plain"))
        if self._book.written[keyed] != 1 or len(self._book.keys[keyed]) != 1:
            self.findings.append(f"{self._book.written[keyed]} times in the book: {keyed}")
        start = f"{tenant} {who}"
        is_done = f"{start} plain {number} is done" in ordered
        if self._book.written[plain] > 1 or (is_done and self._book.written[plain] != 1):
            self.findings.append(f"{self._book.written[plain]} times in the book: {plain}")
        return [
            f"{start} form {number}?",
            *([f"{start} answer {number}"] if self._takes_answer(tenant, who, number, ordered) else []),
            f"{start} keyed {number} is {self._book.numbers.get(keyed)}",
            f"{start} plain {number} is {'done' if is_done else 'unclear'}",
            f"{start} press {(number + 1) * step_of(tenant)}",
        ]

    def _takes_answer(self, tenant: str, who: int, number: int, ordered: set[str]) -> bool:
        start = f"{tenant} {who}"
        return f"{start} form {number}?" not in self._lost_questions or f"{start} answer {number}" in ordered

    def _compare_presses(self, tenant: str, who: int) -> None:
        """Each press has its own answer."""
        for query in self._presses[tenant, who]:
            answer = self._chat(tenant).answer(query) or {}
            if answer.get("text") != f"{tenant} {who} note":
                self.findings.append(f"{tenant} {who}: a press has the answer {answer}")

    async def _compare_memory(self, tenant: str, who: int, ordered: set[str]) -> None:
        """The person's variables and form hold the last answer, and count each answer and press once."""
        name, step = f"telegram-bot:{who}", step_of(tenant)
        answered = [number for number in range(self.rounds) if self._takes_answer(tenant, who, number, ordered)]
        variables: dict[str, object] = {"presses": self.rounds * step}
        forms = {}
        if answered:
            last = f"answer {answered[-1]}"
            variables |= {"answer": last, "forms": len(answered) * step}
            forms = {"storm": {"answer": last}}
        found = await Forms(self._installation.core.store).of_person(tenant, name)
        if found != Remembered(name, variables, forms):
            self.findings.append(f"{tenant} remembers {found}")


async def storm(installation: Installation, root: Path, plan: Plan) -> TenantsStorm:
    async with HttpBook(plan.seed) as book:
        one = TenantsStorm(installation, root, book, plan)
        await one.run()
    log.info("%s", one)
    return one


@pytest.mark.timeout(600)
async def test_two_bots_with_the_same_names_lose_double_and_mix_nothing(
    installation: Installation, tmp_path: Path
) -> None:
    found = await storm(installation, tmp_path / "bots", Plan(people=6, seconds=5, seed=1))
    assert found.findings == []


@pytest.mark.long
@pytest.mark.timeout(1200)
async def test_four_minutes_of_kills_lose_double_and_mix_nothing(installation: Installation, tmp_path: Path) -> None:
    found = await storm(installation, tmp_path / "bots", Plan(people=20, seconds=240, seed=7))
    assert found.findings == []
