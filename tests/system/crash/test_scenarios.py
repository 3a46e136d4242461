"""Processes of scenarios, couriers and the server are killed at each step of a chain: every message arrives once, the
chain ends.

The links to the server choose the point exactly: a blocked request was not stored, a blocked reply was.
"""

from pathlib import Path

import pytest

from tests.support.waiting import until
from tests.system.crash.bot import WITHIN, BotInProcesses, storing
from tests.system.crash.installation import VK, Installation

SENDS = (1, 4, 8)
STEPS = 10
SOME_STEPS = (0, 4, 7)

_SEND = "    - {{type: send, text: 'm{n}x{{event_text}}', chain: completed}}"
_SET = "    - {{type: set, variables: {{person.steps: {{append: {n}}}}}, chain: completed}}"


class Bot(BotInProcesses):
    """A bot whose only scenario is a chain of ten steps with three messages."""

    def __init__(self, installation: Installation, folder: Path) -> None:
        super().__init__(installation, folder)
        self.actions("\n".join((_SEND if n in SENDS else _SET).format(n=n) for n in range(STEPS)))
        self.write("variables.yaml", "person: {steps: list}")

    async def begin(self, number: int) -> str:
        """Person `number` writes; returns the id of the run."""
        return await self.says(number, str(number))

    async def assert_completed_once(self, run: str, number: int) -> None:
        """Every step has completed; the person has each message and each change of its variable once, in order."""
        found = await self.over(run)
        assert [action.state for action in found.actions] == ["completed"] * STEPS
        await until(self.is_idle, within=WITHIN)
        await self.installation.audit()
        assert self.texts(number) == [f"m{n}x{number}" for n in SENDS]
        assert await self.remembered(number) == {"steps": [n for n in range(STEPS) if n not in SENDS]}


@pytest.fixture
def bot(installation: Installation, tmp_path: Path) -> Bot:
    return Bot(installation, tmp_path / "bot")


@pytest.fixture
def own_bot(own_installation: Installation, tmp_path: Path) -> Bot:
    return Bot(own_installation, tmp_path / "bot")


async def kill_at(bot: Bot, steps: tuple[int, ...]) -> None:
    """Kills the process of the scenarios at each of these steps of one run, before or after the step is stored."""
    await bot.installation.courier(VK)
    run = await bot.begin(1)
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


async def test_a_process_killed_at_steps_of_a_chain_leaves_it_to_the_next_one(bot: Bot) -> None:
    await kill_at(bot, SOME_STEPS)


@pytest.mark.long
async def test_a_process_killed_at_every_step_of_a_chain_leaves_it_to_the_next_one(bot: Bot) -> None:
    await kill_at(bot, tuple(range(STEPS)))


async def test_a_courier_killed_at_each_message_of_a_chain_sends_each_once(bot: Bot) -> None:
    scenarios = bot.start()
    await scenarios.ready()
    run = await bot.begin(1)
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
        run = await bot.begin(number)
        await until(lambda: link.blocked > seen, within=WITHIN)  # noqa: B023 - awaited at once
        bot.installation.server.kill()
        bot.installation.server.start()
        link.cut()
        await bot.assert_completed_once(run, number)


async def test_a_server_killed_at_steps_of_a_chain_loses_and_repeats_nothing(own_bot: Bot) -> None:
    await kill_server_at(own_bot, SOME_STEPS)


@pytest.mark.long
async def test_a_server_killed_at_every_step_of_a_chain_loses_and_repeats_nothing(own_bot: Bot) -> None:
    await kill_server_at(own_bot, tuple(range(STEPS)))


async def test_two_processes_of_everything_share_the_people_and_one_is_killed(bot: Bot) -> None:
    for _ in range(2):
        await bot.installation.courier(VK)
    first, second = bot.start(), bot.start()
    await first.ready()
    await second.ready()
    runs = {number: await bot.begin(number) for number in range(1, 31)}
    await until(lambda: len(bot.installation.state.inbox("vk")) > 10, within=WITHIN)
    first.kill()
    for number, run in runs.items():
        await bot.assert_completed_once(run, number)
    assert second.is_running


async def test_a_replayed_event_starts_nothing_also_after_a_restart(bot: Bot) -> None:
    await bot.installation.courier(VK)
    first = bot.start()
    run = await bot.begin(1)
    await bot.assert_completed_once(run, 1)
    first.kill()
    await bot.installation.core.redis.delete("queue:{0}:seen:events.vk.test")  # a day later the queue has forgotten it
    second = bot.start()
    await second.ready()
    await bot.begin(1)
    await bot.begin(2)
    await bot.assert_completed_once(await bot.begin(2), 2)
    await bot.assert_completed_once(run, 1)


async def test_a_process_that_is_asked_to_stop_finishes_what_it_does(bot: Bot) -> None:
    await bot.installation.courier(VK)
    process = bot.start()
    await process.ready()
    runs = {number: await bot.begin(number) for number in range(1, 11)}
    await until(lambda: bot.installation.state.inbox("vk"), within=WITHIN)
    process.terminate()
    assert await process.wait(WITHIN) == 0
    bot.start()
    for number, run in runs.items():
        await bot.assert_completed_once(run, number)
