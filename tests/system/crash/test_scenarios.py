"""Processes of scenarios, couriers and the server are killed at each step of a chain: every message arrives once, the
chain ends.

The links to the server choose the point exactly: a blocked request was not stored, a blocked reply was.
"""

from pathlib import Path

import pytest

from core.queue import QueueClient
from core.updates.events import Events, identity, person_of
from scenarios.execution.runs import run_id
from scenarios.inspection.runs import RunReader, RunView
from scenarios.stores.forms import Forms
from tests.support.stack import TENANT
from tests.support.waiting import until
from tests.system.crash.installation import VK, Installation
from tests.system.crash.process import AdaProcess

SENDS = (1, 4, 8)
STEPS = 10
SOME_STEPS = (0, 4, 7)
WITHIN = 60.0

_SEND = "    - {{type: send, text: 'm{n}x{{event_text}}', chain: completed}}"
_SET = "    - {{type: set, variables: {{person.steps: {{append: {n}}}}}, chain: completed}}"


class Bot:
    """A bot whose only scenario is a chain of ten steps with three messages, and people who write to it in VK."""

    def __init__(self, installation: Installation, folder: Path) -> None:
        self.installation = installation
        self._folder = folder
        self._reader = RunReader(installation.core.store)
        steps = ((_SEND if n in SENDS else _SET).format(n=n) for n in range(STEPS))
        (folder / "scenarios").mkdir(parents=True)
        (folder / "triggers.yaml").write_text('text: {"*": s.main}')
        (folder / "variables.yaml").write_text("person: {steps: list}")
        (folder / "scenarios" / "s.yaml").write_text("main:\n  actions:\n" + "\n".join(steps))

    def start(self, **settings: str) -> AdaProcess:
        """Starts a process of the scenarios; does not wait until it is ready."""
        own = {"ADA_SCENARIOS": str(self._folder), "ADA_BOT_TENANT": TENANT, "ADA_BOT_TOKEN": ""}
        return self.installation.start("scenarios", **own, **settings)

    async def write(self, number: int) -> str:
        """Person `number` writes; returns the id of the run."""
        person = VK.address(number)
        event = {"id": f"e{number}", "channel": "vk", "user_id": person, "chat_id": person, "event_text": str(number)}
        await Events(QueueClient(self.installation.core.store), TENANT).put("test", event)
        stored = {**event, "source": "test"}
        return run_id(identity(TENANT, stored), person_of(stored), 1)

    async def is_over(self, run: str) -> bool:
        """Also while the server is down, it answers in time."""
        if not await self.installation.core.store.command("EXISTS", f"run:{{0}}:{run}"):
            return False
        return (await self._reader.read(TENANT, run)).state == "over"

    async def over(self, run: str) -> RunView:
        await until(lambda: self.is_over(run), within=WITHIN, every=0.05)
        return await self._reader.read(TENANT, run)

    async def is_idle(self) -> bool:
        """Whether no task is under way."""
        states = await self.installation.core.store.command("HGETALL", "queue:{0}:states")
        return not any(int(number) for name, number in states.items() if name.endswith(":taken"))

    async def assert_completed_once(self, run: str, number: int) -> None:
        """Every step has completed; the person has each message and each change of its variable once, in order."""
        found = await self.over(run)
        assert [action.state for action in found.actions] == ["completed"] * STEPS
        await until(self.is_idle, within=WITHIN)
        await self.installation.audit()
        inbox = [one.text for one in self.installation.state.inbox("vk") if one.address == VK.address(number)]
        assert inbox == [f"m{n}x{number}" for n in SENDS]
        remembered = await Forms(self.installation.core.store).of_person(TENANT, f"vk:{VK.address(number)}")
        assert remembered["variables"] == {"steps": [n for n in range(STEPS) if n not in SENDS]}


@pytest.fixture
def bot(installation: Installation, tmp_path: Path) -> Bot:
    return Bot(installation, tmp_path / "bot")


@pytest.fixture
def own_bot(own_installation: Installation, tmp_path: Path) -> Bot:
    return Bot(own_installation, tmp_path / "bot")


def storing(step: int) -> bytes:
    """Bytes in the request that stores how a step ended."""
    return f'[[0,{step}],"completed"'.encode()


async def kill_at(bot: Bot, steps: tuple[int, ...]) -> None:
    """Kills the process of the scenarios at each of these steps of one run, before or after the step is stored."""
    await bot.installation.courier(VK)
    run = await bot.write(1)
    for step in steps:
        link, settings = await bot.installation.link_to_server()
        block = link.block_requests if step % 2 else link.block_replies
        block(storing(step))
        process = bot.start(**settings)
        await until(lambda: link.blocked, within=WITHIN)  # noqa: B023 - awaited at once
        process.kill()
        link.cut()
    bot.start()
    await bot.assert_completed_once(run, 1)


@pytest.mark.row("C-37")
@pytest.mark.row("C-92", "C-93")
async def test_a_process_killed_at_steps_of_a_chain_leaves_it_to_the_next_one(bot: Bot) -> None:
    await kill_at(bot, SOME_STEPS)


@pytest.mark.long
@pytest.mark.timeout(300)
async def test_a_process_killed_at_every_step_of_a_chain_leaves_it_to_the_next_one(bot: Bot) -> None:
    await kill_at(bot, tuple(range(STEPS)))


@pytest.mark.row("C-49")
async def test_a_courier_killed_at_each_message_of_a_chain_sends_each_once(bot: Bot) -> None:
    scenarios = bot.start()
    await scenarios.ready()
    run = await bot.write(1)
    for number, step in enumerate(SENDS, 1):
        link, settings = await bot.installation.link_to(VK)
        link.block_replies(f"m{step}x".encode())
        courier = bot.installation.start("courier", "vk", **settings)
        await until(lambda: len(bot.installation.state.inbox("vk")) == number, within=WITHIN)  # noqa: B023
        courier.kill()
        link.cut()
    await bot.installation.courier(VK)
    await bot.assert_completed_once(run, 1)


async def kill_server_at(bot: Bot, steps: tuple[int, ...]) -> None:
    """Kills the server before or after it has stored each of these steps, and starts it again."""
    await bot.installation.courier(VK)
    link, settings = await bot.installation.link_to_server()
    await bot.start(**settings).ready()
    for number, step in enumerate(steps, 1):
        seen = link.blocked
        block = link.block_requests if step % 2 else link.block_replies
        block(storing(step))
        run = await bot.write(number)
        await until(lambda: link.blocked > seen, within=WITHIN)  # noqa: B023 - awaited at once
        bot.installation.server.kill()
        bot.installation.server.start()
        link.cut()
        await bot.assert_completed_once(run, number)


@pytest.mark.row("C-37")
async def test_a_server_killed_at_steps_of_a_chain_loses_and_repeats_nothing(own_bot: Bot) -> None:
    await kill_server_at(own_bot, SOME_STEPS)


@pytest.mark.long
@pytest.mark.timeout(300)
async def test_a_server_killed_at_every_step_of_a_chain_loses_and_repeats_nothing(own_bot: Bot) -> None:
    await kill_server_at(own_bot, tuple(range(STEPS)))


@pytest.mark.row("C-49")
async def test_two_processes_of_everything_share_the_people_and_one_is_killed(bot: Bot) -> None:
    for _ in range(2):
        await bot.installation.courier(VK)
    first, second = bot.start(), bot.start()
    await first.ready()
    await second.ready()
    runs = {number: await bot.write(number) for number in range(1, 31)}
    await until(lambda: len(bot.installation.state.inbox("vk")) > 10, within=WITHIN)
    first.kill()
    for number, run in runs.items():
        await bot.assert_completed_once(run, number)
    assert second.is_running


@pytest.mark.row("C-92")
async def test_a_replayed_event_starts_nothing_also_after_a_restart(bot: Bot) -> None:
    await bot.installation.courier(VK)
    first = bot.start()
    run = await bot.write(1)
    await bot.assert_completed_once(run, 1)
    first.kill()
    await bot.installation.core.redis.delete("queue:{0}:seen:events.vk.test")  # a day later the queue has forgotten it
    second = bot.start()
    await second.ready()
    await bot.write(1)
    await bot.write(2)
    await bot.assert_completed_once(await bot.write(2), 2)
    await bot.assert_completed_once(run, 1)


@pytest.mark.row("C-85")
async def test_a_process_that_is_asked_to_stop_finishes_what_it_does(bot: Bot) -> None:
    await bot.installation.courier(VK)
    process = bot.start()
    await process.ready()
    runs = {number: await bot.write(number) for number in range(1, 11)}
    await until(lambda: bot.installation.state.inbox("vk"), within=WITHIN)
    process.terminate()
    assert await process.wait(WITHIN) == 0
    bot.start()
    for number, run in runs.items():
        await bot.assert_completed_once(run, number)
