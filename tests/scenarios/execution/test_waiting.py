"""Runs that wait: they are parked, occupy no worker, and go on in any process when their delivery or slow step ends."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from core.redis.store import Store
from couriers.sending.interface import Message, Outcome, Sent
from scenarios.context import Context
from scenarios.engine import Ending, completed, failed
from scenarios.schema import ActionType, Attributes
from tests.scenarios.execution.conftest import WITHIN, Installation, states
from tests.support.waiting import stays, until

TWO_MESSAGES = """
    - {type: send, text: first}
    - {type: send, text: "after {last_message_id}", chain: completed}
"""


class Gate:
    """A provider, or a slow action, that answers when it is opened."""

    def __init__(self) -> None:
        self.entered = 0
        self.opened = asyncio.Event()
        self.sent = Sent("5")

    async def pass_through(self) -> None:
        self.entered += 1
        await self.opened.wait()

    async def respond(self, message: Message) -> Outcome:
        await self.pass_through()
        return self.sent

    async def execute(self, context: Context, attributes: Attributes) -> Ending:
        await self.pass_through()
        return completed({"said": "hello"})


async def parked(installation: Installation) -> int:
    return int(await installation.stack.redis.zcard("runs:{0}:parked"))


async def test_a_run_whose_delivery_takes_long_is_parked_and_goes_on_when_it_ends(installation: Installation) -> None:
    gate = Gate()
    installation.courier.respond = gate.respond
    installation.actions(TWO_MESSAGES)
    await installation.start(patience=0.05)
    run = await installation.put()
    await until(lambda: parked(installation), within=WITHIN)
    assert (await installation.read(run)).actions[0].waits_for is not None
    gate.opened.set()
    assert states(await installation.over(run)) == ["completed", "completed"]
    assert installation.texts == ["first", "after 5"]
    await until(lambda: _is_zero(parked(installation)), within=WITHIN)


async def _is_zero(counting: Awaitable[int]) -> bool:
    return await counting == 0


async def killed_while_parked(installation: Installation) -> tuple[Gate, str]:
    """Park a run at its first message, kill the process; return what the courier waits for, and the run."""
    gate = Gate()
    installation.courier.respond = gate.respond
    installation.actions(TWO_MESSAGES)
    first = await installation.start(patience=0.05, lease=timedelta(seconds=1))
    run = await installation.put()
    await until(lambda: parked(installation), within=WITHIN)
    await first.kill()
    return gate, run


async def test_another_process_wakes_the_runs_of_one_that_died(installation: Installation) -> None:
    gate, run = await killed_while_parked(installation)
    await installation.start(patience=0.05, adopt_every=0.1)
    gate.opened.set()
    assert states(await installation.over(run)) == ["completed", "completed"]
    assert installation.texts == ["first", "after 5"]


async def test_a_delivery_that_ended_while_no_process_ran_wakes_its_run(installation: Installation) -> None:
    gate, run = await killed_while_parked(installation)
    gate.opened.set()
    await until(lambda: len(installation.courier.attempted) == 1, within=WITHIN)
    await installation.start()
    assert states(await installation.over(run)) == ["completed", "completed"]


async def test_a_slow_action_delays_no_message_and_its_chain_goes_on(installation: Installation) -> None:
    gate = Gate()
    installation.types["slow"] = ActionType("slow", "", execute=gate.execute, tube="test.slow")
    installation.actions("""
    - {type: slow}
    - {type: send, text: "at once"}
    - {type: slow}
    - {type: send, text: "{said} then", chain: completed}
""")
    await installation.start()
    run = await installation.put()
    await until(lambda: installation.texts == ["at once"], within=WITHIN)
    await until(lambda: gate.entered == 2, within=WITHIN)
    gate.opened.set()
    assert states(await installation.over(run)) == ["completed"] * 4
    assert installation.texts == ["at once", "hello then"]
    assert gate.entered == 2


async def test_at_most_ten_slow_actions_run_at_once_in_a_process(installation: Installation) -> None:
    gate = Gate()
    installation.types["slow"] = ActionType("slow", "", execute=gate.execute, tube="test.slow")
    installation.actions("    - {type: slow}")
    await installation.start()
    runs = [await installation.put(user_id=str(n), chat_id=str(n)) for n in range(12)]
    await until(lambda: gate.entered == 10, within=WITHIN)
    assert states(await installation.read(runs[0])) == ["pending"]
    gate.opened.set()
    for run in runs:
        await installation.over(run)


async def test_a_slow_action_that_fails_is_followed_by_its_failed_branch(installation: Installation) -> None:
    async def execute(context: Context, attributes: Attributes) -> Ending:
        return failed("LATE", "no voice")

    installation.types["slow"] = ActionType("slow", "", execute=execute, tube="test.slow")
    installation.actions("""
    - {type: slow}
    - {type: send, text: "{error}", chain: failed}
""")
    await installation.start()
    assert states(await installation.play()) == ["failed", "completed"]
    assert installation.texts == ["no voice"]


async def test_runs_that_wait_send_no_commands(installation: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two searches for runs of other processes nothing is sent for them."""
    gate = Gate()
    installation.courier.respond = gate.respond
    installation.actions(TWO_MESSAGES)
    running = await installation.start(patience=0.01, adopt_every=1000)
    for n in range(20):
        await installation.put(user_id=str(n), chat_id=str(n))
    await until(lambda: _has(parked(installation), 20), within=WITHIN)
    await until(lambda: no_event_is_handled(installation), within=WITHIN)
    commands = _count_commands(running.store, monkeypatch)
    await stays(lambda: commands == [])
    gate.opened.set()


async def no_event_is_handled(installation: Installation) -> bool:
    return int(await installation.stack.redis.hget("queue:{0}:states", "events:taken") or 0) == 0


async def _has(counting: Awaitable[int], number: int) -> bool:
    return await counting == number


def _count_commands(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    command: Callable[..., Awaitable[object]] = store.command

    async def counted(*words: object) -> object:
        found.append(str(words[0]))
        return await command(*words)

    monkeypatch.setattr(store, "command", counted)
    return found
