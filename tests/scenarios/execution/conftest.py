"""Scenarios on a real server: a bot's folder, the process in this event loop, a courier with a simulated provider."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, timedelta, tzinfo
from pathlib import Path
from typing import Any

import pytest

from core.directory import Directory
from core.model.content import EVERY_FEATURE
from core.orders import SendingPolicy
from core.queue import QueueClient
from core.redis.store import Store
from core.updates.events import Events, identity, person_of
from couriers.sending.interface import Message, Outcome, Sent
from providers.models import FileCache, Models
from scenarios.action_files import LiveTypes
from scenarios.actions import installed_actions
from scenarios.context import ScenarioServices
from scenarios.execution.active_bot import ActiveBot
from scenarios.execution.opening import ScenarioOptions, StoredConversations, open_services
from scenarios.execution.process import Process, ProcessOptions
from scenarios.execution.runs import run_id
from scenarios.inspection.runs import RunReader, RunView
from scenarios.schema import ActionType
from tests.scenarios.bot_folder import BotFolder
from tests.support.servers import Server
from tests.support.stack import TENANT, FakeCourier, Respond, Stack
from tests.support.waiting import until

WITHIN = 30.0
"""Seconds, for what only has to happen at some time."""

PERSON = "7"


class Running:
    """One process of the scenarios. `stop` is the clean end, `kill` leaves everything to the leases."""

    def __init__(self, process: Process, services: ScenarioServices, resources: AsyncExitStack) -> None:
        self.process = process
        self.store = services.core.store
        self._services = services
        self._resources = resources
        self._ready = asyncio.Event()
        self.task = asyncio.create_task(process.run(self._ready.set))

    async def ready(self) -> "Running":
        waiting = asyncio.create_task(self._ready.wait())
        await asyncio.wait({waiting, self.task}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if self.task.done():
            self.task.result()
        return self

    async def add(self, tenant: str, folder: Path) -> None:
        """Serve a bot of another tenant, too."""
        conversations = StoredConversations(self.store, tenant, UTC)
        await self.process.add(replace(self._services, tenant=tenant, conversations=conversations), ActiveBot(folder))

    async def stop(self) -> None:
        self.process.stop()
        await asyncio.wait_for(self.task, WITHIN)
        await self._resources.aclose()

    async def kill(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        await self._resources.aclose()


class Installation(BotFolder):
    """`folder`: the bot's. `types`: the action types; a test may add its own. `models`: nothing is set up. `options`:
    further ones of its actions. `beside`: the dialog of teachers; `active`: the bot of the last process.
    """

    def __init__(self, stack: Stack, folder: Path) -> None:
        self.stack = stack
        self.url = stack.server.url
        super().__init__(folder)
        self.courier = FakeCourier(respond=_numbered(), shows=EVERY_FEATURE)
        self.types: dict[str, ActionType] = dict(installed_actions().types)
        self.rules = SendingPolicy()
        self.models = Models.not_set_up()
        self.options: dict[str, Any] = {}
        self.timezone: tzinfo = UTC
        self.plugins: dict[str, Any] = {}
        self.beside: ActiveBot | None = None
        self._events = 0
        self._running: list[Running] = []
        self._reader = RunReader(stack.store)

    # processes

    async def start(self, kind: type[Store] = Store, **options: Any) -> Running:
        """Starts a process with a store of this kind; returns when it works."""
        resources = AsyncExitStack()
        store = await kind.open(self.url, self.stack.store.shards)
        resources.push_async_callback(store.close)
        pictures = FileCache(self.folder.parent / "pictures", 10**6, timedelta(days=1))
        given = ScenarioOptions(
            TENANT, self.timezone, self.rules, models=self.models, pictures=pictures, **self.options
        )
        opened = open_services(store, given)
        services = replace(await resources.enter_async_context(opened), plugins=self.plugins)
        process = Process(services.core, self.types, ProcessOptions(**options))
        await process.open()
        self.active = ActiveBot(self.folder)
        await process.add(services, self.active, LiveTypes(self.types), self.beside)
        self._running.append(running := Running(process, services, resources))
        return await running.ready()

    async def start_courier(self) -> None:
        await self.stack.courier(self.courier)

    async def pass_time(self, time: timedelta) -> None:
        """Moves the clock of everything that runs; what has fallen due happens."""
        self.stack.advance_clock(time)
        for running in self._running:
            running.store.clock_offset_ms = self.stack.store.clock_offset_ms
        await self.stack.tick()

    async def close(self) -> None:
        for running in self._running:
            await running.kill()

    # events and runs

    async def put(self, text: str = "x", **fields: Any) -> str:
        """Puts an event; returns the id of its run."""
        self._events += 1
        event = {"id": f"e{self._events}", "channel": "echo", "user_id": PERSON, "chat_id": PERSON, "event_text": text}
        return await self.put_event({**event, **fields})

    async def put_event(self, event: Mapping[str, Any]) -> str:
        await Events(QueueClient(self.stack.store), TENANT).put("test", event)
        stored = {**event, "source": "test"}
        return run_id(TENANT, identity(TENANT, stored), person_of(stored), self.stack.store.shards)

    @property
    def directory(self) -> Directory:
        return Directory(self.stack.store)

    async def read(self, run: str) -> RunView:
        return await self._reader.read(TENANT, run)

    async def exists(self, run: str) -> bool:
        return bool(await self.stack.store.command("EXISTS", f"run:{{{run.partition('.')[0]}}}:{run}"))

    async def over(self, run: str, within: float = WITHIN) -> RunView:
        """Waits until the run is over."""
        await until(lambda: self._is_over(run), within=within)
        return await self.read(run)

    async def _is_over(self, run: str) -> bool:
        return await self.exists(run) and (await self.read(run)).state == "over"

    async def play(self, text: str = "x", **fields: Any) -> RunView:
        """Puts an event and waits until its run is over."""
        return await self.over(await self.put(text, **fields))

    @property
    def texts(self) -> list[str]:
        """What was sent, in order."""
        return [message.text for message in self.courier.attempted]


def states(run: RunView) -> list[str]:
    return [action.state for action in run.actions]


def _numbered() -> Respond:
    """Answers with the number of the message as its id."""
    count = 100

    def respond(message: Message) -> Outcome:
        nonlocal count
        count += 1
        return Sent(str(count))

    return respond


@pytest.fixture
async def bare(server: Server, shards: int, tmp_path: Path) -> AsyncIterator[Installation]:
    """An installation in which nothing runs yet."""
    stack = await Stack.open(server, shards)
    folder = tmp_path / "bot"
    folder.mkdir()
    installation = Installation(stack, folder)
    yield installation
    await installation.close()
    await stack.close()


@pytest.fixture
async def installation(bare: Installation) -> Installation:
    """The same with a courier."""
    await bare.start_courier()
    return bare
