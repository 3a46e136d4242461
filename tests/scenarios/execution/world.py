"""Plays planned scenarios on a real server, with a crash before or after any call of the store.

Each crash leaves the run to a new process, which knows nothing but what is stored.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from core.queue import Attempt, Suspend, Task
from core.redis.store import Argument, Store
from core.updates.events import Events
from scenarios.actions import send
from scenarios.actions.send import SendAttributes
from scenarios.bot import Bot, Scenario, Target, Trigger, Triggers, no_triggers
from scenarios.context import Context, Waiting
from scenarios.engine import Ending
from scenarios.execution.answers import QuestionAnswers
from scenarios.execution.driver import Driver
from scenarios.execution.handlers import Handlers
from scenarios.execution.opening import ScenarioOptions, open_services
from scenarios.execution.parking import DeliveryEnds, Parking
from scenarios.execution.runs import Runs, run_id
from scenarios.execution.step_executor import SlowSteps, StepExecutor
from scenarios.execution.versions import Versions
from scenarios.schema import ActionType, Attributes
from scenarios.stores.people import People
from scenarios.stores.variables import Variables
from tests.scenarios.engine.play import PLACE
from tests.scenarios.engine.reference import Expected, Planned
from tests.scenarios.engine.test_model import ending_of
from tests.support.servers import Server
from tests.support.stack import TENANT, FakeCourier, Stack
from tests.support.waiting import until

Plan = dict[str, Planned]

NOT_PLANNED = {"error", "code", "last_message_id", "delivery_id", "verdict", "reached", "people"}
_numbers = count(1)


class Crash(BaseException):
    """The process is killed at this moment."""


class CrashingStore(Store):
    """Crashes at the n-th call of a script: before it if n is even, after it if n is odd. `left` counts down.
    `scripts`: how often each was called.
    """

    left: int | None = None
    scripts: Counter[str]

    async def run(self, name: str, shard: int, *arguments: Argument) -> Any:
        self._count()
        self.scripts[name] += 1
        reply = await super().run(name, shard, *arguments)
        self._count()
        return reply

    def _count(self) -> None:
        if self.left is None:
            return
        self.left -= 1
        if self.left < 0:
            raise Crash


class FixedBot:
    """The bot of an example, in place of files."""

    def __init__(self, bot: Bot, name: str) -> None:
        self.bot = bot
        self.version = name
        self.folder = Path("/")


class World:
    """One server with a courier; each example is an event of its own. `patience`: as in `ProcessOptions`; with 0 each
    run is parked for each message.
    """

    def __init__(self, server: Server, patience: float = 30) -> None:
        self._server = server
        self._patience = patience
        self._resources = AsyncExitStack()
        self.courier = FakeCourier()
        self.has_crashed = True

    async def open(self) -> None:
        self.stack = await Stack.open(self._server)
        self._resources.push_async_callback(self.stack.close)
        await self.stack.courier(self.courier)
        self.store = await CrashingStore.open(self._server.url)
        self.store.scripts = Counter()
        self._resources.push_async_callback(self.store.close)
        self.services = await self._resources.enter_async_context(open_services(self.store, ScenarioOptions(TENANT)))
        self.ends = DeliveryEnds(self.stack.store)
        reading = asyncio.create_task(self.ends.run())
        self._resources.callback(reading.cancel)
        await self.ends.ready.wait()

    async def close(self) -> None:
        await self._resources.aclose()

    async def play(self, plan: Plan, scenario: Scenario, crashes: Sequence[int]) -> list[Expected]:
        """Processes one event, again after each crash; returns what became of its actions."""
        number, self.has_crashed = next(_numbers), False
        bot = FixedBot(bot_of(plan, scenario), f"v{number}")
        event = {"id": f"e{number}", "source": "test", "channel": "echo", "user_id": number, "event_text": "x"}
        for number_of_attempt, crash in enumerate((*crashes, None), 1):
            self.store.left = crash
            try:
                attempt = attempt_of(self.stack, event, number_of_attempt)
                await until(lambda: self._ends(bot, plan, attempt))  # noqa: B023 - awaited at once
                break
            except Crash:
                self.has_crashed = True
        self.store.left = None
        run = run_id(TENANT, f"{TENANT}/echo.test.e{number}", f"echo:{number}", 1)
        stored = await Runs(self.stack.store, Versions(self.stack.store), TENANT).load(run)
        assert stored.is_over
        return [
            Expected(step.action.type, str(step.state), planned_results(step.values.results))
            for step in stored.run.in_order
        ]

    async def _ends(self, bot: FixedBot, plan: Plan, attempt: Attempt) -> bool:
        """Handles the event; returns False if its run was parked."""
        result = await self._process(bot, plan).handle_event(attempt)
        if isinstance(result, Suspend):
            attempt.checkpoint = result.checkpoint
        return not isinstance(result, Suspend)

    def _process(self, bot: FixedBot, plan: Plan) -> Handlers:
        """What a process has at its start."""
        versions = Versions(self.store)
        runs = Runs(self.store, versions, TENANT)
        executor = StepExecutor(self.services, types_of(plan), bot.folder)
        parking = Parking(self.store, self.services.core.client, self.ends)
        slow = SlowSteps(self.services.core.client, runs, executor, parking)
        driver = Driver(runs, executor, self.services.core.deliveries, self.ends, parking, slow, self._patience)
        people, variables = People(self.store, TENANT), Variables(self.store, TENANT)
        answers = QuestionAnswers(self.store, TENANT, runs, executor, parking)
        users, put = self.services.core.directory.users, Events(self.services.core.client, TENANT)
        return Handlers(bot, people, variables, versions, runs, driver, answers, {}, TENANT, 1, users, put)  # type: ignore[arg-type]


def bot_of(plan: Plan, scenario: Scenario) -> Bot:
    """Any event starts the scenario."""
    scenarios: dict[str, Scenario] = {}
    inner = [one for planned in plan.values() for one in planned.scenarios or ()]
    for one in (scenario, *inner):
        scenarios.setdefault(one.name, one)
    always = Trigger("", (Target(scenario.name),), PLACE)
    none = no_triggers()
    return Bot(scenarios, triggers=Triggers({**none.text, "*": (always,)}, none.callback, none.new_member))


def have_own_names(plan: Plan, scenario: Scenario) -> bool:
    """Whether no two scenarios have one name, as in a bot."""
    named: dict[str, Scenario] = {}
    inner = [one for planned in plan.values() for one in planned.scenarios or ()]
    return all(named.setdefault(one.name, one) == one for one in (scenario, *inner))


def types_of(plan: Plan) -> dict[str, ActionType]:
    """Actions that do what was planned. An action that completes without a splice sends its identity as a message."""
    return {name: ActionType(name, "", execute=executing(planned)) for name, planned in plan.items()}


def executing(planned: Planned) -> Any:
    async def execute(context: Context, _: Attributes) -> Ending | Waiting:
        if sends(planned):
            return await send.execute(context, SendAttributes(text=context.identity))
        return ending_of(planned)

    return execute


def sends(planned: Planned) -> bool:
    return planned.outcome == "completed" and planned.scenarios is None


def as_executed(plan: Plan) -> Plan:
    """The plan of which each action that completes without a splice is a message, which has its own results."""
    return {name: Planned("completed", {}) if sends(planned) else planned for name, planned in plan.items()}


def planned_results(results: Any) -> dict[str, Any]:
    return {name: value for name, value in results.items() if name not in NOT_PLANNED}


def attempt_of(stack: Stack, event: dict[str, Any], number: int) -> Attempt:
    body = msgspec.json.encode(event).decode()
    task = Task(0, "1", "token", number, 0, 0, body, "", 0, "", "", 0)
    return Attempt(stack.queue, task, timedelta(seconds=5))
