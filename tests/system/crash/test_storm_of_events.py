"""Hundreds of people write several lines each; the provider answers late, processes are killed. Each person gets the
answers to all lines, whole and in order (I19).

A run of two messages waits for the first one, often longer than a worker waits with it: then it is parked. A later
line must not be answered in between. The first line begins a form, whose question the second line answers; each run
counts in variables, in a loop that collects, too, so that a step that is repeated after a kill would be seen. All
reserve a desk and give it back, all want one of a few seats, and at the end a message goes to everybody. The seed is
in the name of each test; a seed that failed stays in the list.
"""

import asyncio
import random
from collections import defaultdict
from pathlib import Path

import pytest

from core.queue import QueueClient
from core.updates.events import Events
from scenarios.stores.forms import Forms, Remembered
from scenarios.stores.variables import Variables
from tests.support.stack import TENANT
from tests.support.waiting import until
from tests.system.crash.installation import VK, Installation
from tests.system.crash.process import AdaProcess

LINES = ("a", "b", "c")
EXPECTED = [f"{line}{message}" for line in LINES for message in ("1", "2")]
REMEMBERED = {"lines": ["a", "c"], "rounds": 2 * 3, "collected": 2 * 3, "answer": "b", "marks": ["c!"]}
"""Variable → its value after all lines of a person: two lines begin a run of three rounds, one is an answer."""
SEATS = 5

FILES = {
    "triggers.yaml": 'text: {exact: {a: s.form, all: s.all}, "*": s.main}',
    "variables.yaml": """
person: {marks: list, lines: list,
  rounds: number, collected: number, answer: text, seat: text, seats: list, desks: list}
bot: {seats: list, desks: list}
""",
    "scenarios/s.yaml": """
main:
  actions:
    - {type: scenario, value: count}
    - {type: mark, line: '{event_text}', chain: completed}
    - {type: set, variables: {person.marks: {append: '{mark}'}}, chain: completed}
    - {type: send, text: '{event_text}1', chain: completed}
    - {type: reserve, kind: desks, place: '{user_id}', chain: completed}
    - {type: reserve, kind: desks, release: true, chain: completed}
    - type: reserve
      kind: seats
      place: seat
      limit: 5
      chain: completed
      on_failure: [{type: set, variables: {person.seat: none}}]
    - {type: set, variables: {person.seat: one}, chain: completed}
    - type: send
      text: not counted
      when: {person.lines: {rule: empty}}
      chain: any
      otherwise: [{type: send, text: '{event_text}2'}]
all:
  actions:
    - {type: send, text: news, to: {people: true}}
    - {type: send, text: '{reached} of {people}', chain: completed}
form:
  actions:
    - {type: scenario, value: count}
    - {type: send, text: '{event_text}1', chain: completed}
    - {type: ask, text: '{event_text}2', save: person.answer, form: storm, chain: completed}
    - {type: send, text: '{answer}1', chain: completed}
    - {type: send, text: '{person.answer}2', chain: completed}
count:
  actions:
    - {type: for_each, items: [1, 2, 3], as: number, scenario: round, collect: [person], at_once: 2}
    - type: set
      variables: {person.lines: {append: '{event_text}'}, person.collected: {add: '{results|length}'}}
      chain: completed
round: {actions: [{type: set, variables: {person.rounds: {add: 1}}}]}
""",
    "own.py": """
from scenarios.action_files import ActionCall, action


@action(returns={"mark": "the line with a mark"})
async def mark(call: ActionCall, line: str) -> dict:
    return {"mark": f"{line}!"}
""",
}

LATEST = 0.1
"""Seconds by which the line to the provider delays a request or a reply at most. A courier sends one by one, so a
message waits for seconds behind those to other people."""

WITHIN = 240.0


class Storm:
    """Two processes of the scenarios and two couriers behind a slow line; each may be killed and is replaced."""

    def __init__(self, installation: Installation, folder: Path, people: int, seed: int) -> None:
        self._installation = installation
        self._folder = folder
        self._people = [VK.address(number) for number in range(1, people + 1)]
        self._random = random.Random(seed)
        self._running: list[tuple[str, AdaProcess]] = []
        (folder / "scenarios").mkdir(parents=True)
        for name, text in FILES.items():
            (folder / name).write_text(text)

    async def start(self) -> None:
        _, self._provider = await self._installation.link_to(VK, lambda: self._random.uniform(0, LATEST))
        for kind in ("scenarios", "courier") * 2:
            self._start(kind)
        for _, process in self._running:
            await process.ready()

    def _start(self, kind: str) -> None:
        if kind == "courier":
            process = self._installation.start("courier", VK.name, **self._provider)
        else:
            own = {
                "ADA_SCENARIOS": str(self._folder),
                "ADA_BOT_TENANT": TENANT,
                "ADA_BOT_TOKEN": "",
                "ADA_ACTIONS": str(self._folder / "own.py"),
            }
            process = self._installation.start("scenarios", **own)
        self._running.append((kind, process))

    async def write(self) -> None:
        """Write all lines of all people, those of each person one after the other."""
        events = Events(QueueClient(self._installation.core.store), TENANT)
        await asyncio.gather(*(self._write(events, person) for person in self._people))

    async def _write(self, events: Events, person: str) -> None:
        for line in LINES:
            await self._put(events, person, line)

    async def _put(self, events: Events, person: str, line: str) -> None:
        event = {"id": f"{person}-{line}", "channel": "vk", "user_id": person, "chat_id": person}
        await events.put("test", {**event, "event_text": line})

    async def rage(self, kills: int) -> None:
        """Kills processes, each after some more messages have arrived; another one takes the place at once."""
        for _ in range(kills):
            wanted = self.arrived + self._random.randint(1, len(self._people))
            await until(lambda: self.arrived >= wanted or self.is_over, within=WITHIN)  # noqa: B023 - awaited at once
            self._kill()

    def _kill(self) -> None:
        kind, process = self._running.pop(self._random.randrange(len(self._running)))
        process.kill()
        self._start(kind)

    async def tell_all(self, kills: int) -> None:
        """The first person writes to everybody, when all else has arrived."""
        await until(lambda: self.is_over, within=WITHIN, every=0.05)
        await self._put(Events(QueueClient(self._installation.core.store), TENANT), self._people[0], "all")
        for _ in range(kills):
            self._kill()
        await until(lambda: self.arrived > len(self._people) * (len(EXPECTED) + 1), within=WITHIN, every=0.05)

    @property
    def arrived(self) -> int:
        return len(self._installation.state.inbox("vk"))

    @property
    def is_over(self) -> bool:
        return self.arrived >= len(self._people) * len(EXPECTED)

    def answers(self) -> dict[str, list[str]]:
        """Person → what has arrived, in order."""
        found: dict[str, list[str]] = defaultdict(list)
        for message in self._installation.state.inbox("vk"):
            found[message.address].append(message.text)
        return found

    async def assert_in_order(self) -> None:
        """Every answer has arrived, once and in order, and nothing is left."""
        await until(self._installation.is_empty, within=WITHIN, every=0.05)
        first, count = self._people[0], len(self._people)
        expected = {person: [*EXPECTED, "news"] for person in self._people}
        expected[first].append(f"{count} of {count}")
        mixed = {person: texts for person, texts in self.answers().items() if texts != expected[person]}
        assert mixed == {}
        assert len(self.answers()) == len(self._people)
        await self._assert_remembered_once()
        await self._installation.audit()

    async def _assert_remembered_once(self) -> None:
        """Every variable and every answer to the form is there once."""
        forms = Forms(self._installation.core.store)
        answers, seats = {"storm": {"answer": "b"}}, []
        for person in self._people:
            name = f"vk:{person}"
            found = await forms.of_person(TENANT, name)
            seats.append(found.variables["seat"])
            places = {"desks": [], "seats": ["seat"]} if seats[-1] == "one" else {"desks": []}
            assert found == Remembered(name, {**REMEMBERED, **places, "seat": seats[-1]}, answers)
        assert (seats.count("one"), seats.count("none")) == (SEATS, len(self._people) - SEATS)
        of_bot = await Variables(self._installation.core.store, TENANT).stored("bot", {}, 0)
        assert of_bot == {"desks": [], "seats": ["seat"] * SEATS}
        table = await forms.table(TENANT, "storm")
        assert sorted(row.person for row in table.rows) == sorted(f"vk:{person}" for person in self._people)


async def storm(installation: Installation, folder: Path, people: int, kills: int, seed: int) -> None:
    one = Storm(installation, folder, people, seed)
    await one.start()
    await asyncio.gather(one.write(), one.rage(kills))
    await one.tell_all(min(kills, 2))
    await one.assert_in_order()


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("people", "kills", "seed"), [(40, 6, 1)])
async def test_people_get_the_answers_to_all_lines_in_order(
    installation: Installation, tmp_path: Path, people: int, kills: int, seed: int
) -> None:
    await storm(installation, tmp_path / "bot", people, kills, seed)


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_four_hundred_people_get_their_answers_in_order_while_processes_are_killed(
    installation: Installation, tmp_path: Path, seed: int
) -> None:
    await storm(installation, tmp_path / "bot", people=400, kills=30, seed=seed)
