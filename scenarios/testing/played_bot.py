"""A bot on a server of its own: the process of the scenarios and the couriers work step by step by a clock that is set,
and each message is delivered to the caller.

Guarantee: engine, actions, stores, queue and pipeline are those of the running bot. Only the providers are played.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Protocol

from msgspec import structs

from core.deliveries.received import Choices
from core.model.clock import from_ms
from core.model.content import Button, Content, Limits, ParseMode
from core.queue import Worker
from core.queue.workers.stepping import SteppedQueue, server_url
from core.redis.store import Store
from core.services import Services
from core.updates.events import Events
from couriers.channel import Channel, channels
from couriers.sending.interface import FOREVER, Message, Outcome, Sent
from couriers.sending.runtime import EVERY_TENANT, Runtime
from providers.models import FileCache
from scenarios.actions import Actions, installed_actions, own_actions
from scenarios.bot import Place
from scenarios.bot.data import Data
from scenarios.bot.event_fields import Event
from scenarios.context import Asking, Context, Waiting
from scenarios.engine import Ending, Values, completed
from scenarios.execution.active_bot import ActiveBot
from scenarios.execution.opening import ScenarioOptions, open_services
from scenarios.execution.process import Process, ProcessOptions
from scenarios.execution.runs import FAULTS
from scenarios.inspection.run_listing import RunFilter
from scenarios.inspection.runs import RunReader
from scenarios.placeholders.values import as_list
from scenarios.plugins import Platform, started
from scenarios.rehearsal import Outcomes, RehearsedStep, node_of, play
from scenarios.schema import ActionType, Attributes
from scenarios.schema.conversion import elements
from scenarios.sending.addressees import people_of
from scenarios.sending.message import BotMessage
from scenarios.testing.played_directory import PlayedDirectory
from scenarios.words import Text, sentence

TENANT = "played"
_PUBLIC_URL = "https://ada.example.org"
_OPTIONS = ProcessOptions(lease=timedelta(seconds=30), patience=0, is_stepped=True)


class JobsOfBot(Protocol):
    """The long-running jobs that a played bot may start; scenarios know only their records. `kinds`: their names."""

    kinds: Collection[str]

    async def workers(self, core: Services, played: Mapping[str, Mapping[str, Data]]) -> Collection[Worker]:
        """Publish the kinds, and return what works on their iterations. `played`: kind → name of a step or an effect →
        what it returns in place of its call.
        """


class NoJobs:
    """None at all."""

    kinds: Collection[str] = ()

    async def workers(self, core: Services, played: Mapping[str, Mapping[str, Data]]) -> Collection[Worker]:
        return ()


NO_JOBS = NoJobs()


@dataclass(frozen=True, slots=True)
class SaidMessage:
    """A message of the bot, as it was delivered. `id`: by which an event names it. `place`: the chat in which it is,
    CHANNEL:CHAT. `chat`: the same, "" for one with `to`.
    """

    message: BotMessage
    at: datetime
    id: str
    place: str
    chat: str = ""
    to: Data = None
    channels: Data = None


@dataclass(slots=True)
class _Broadcast:
    """The written fields of a message with `to`; it is shown once, unless it is for the people of the bot."""

    to: Data
    channels: Data
    is_shown: bool = False

    @property
    def is_for_people(self) -> bool:
        return any(people_of(one) is not None for one in as_list(self.to))


class PlayedCourier:
    """A courier whose provider takes every message, and shows what the record of its channel says."""

    account = "played"
    batch = 1
    parcel = 100
    remembers = FOREVER

    def __init__(self, record: Channel, bot: "PlayedBot") -> None:
        self.channel, self.shows, self.bot = record.name, record.shows, bot
        self.as_text = record.written_as_text
        self.limits = Limits(in_sms=record.in_sms, numbers=bool(record.receiving and record.receiving.numbers))

    async def attempt(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        return [Sent(self.bot.deliver(self.channel, one)) for one in messages]

    async def close(self) -> None:
        """Do nothing: there is nothing to close."""


class PlayedTypes(Mapping[str, ActionType]):
    """The action types, as a played bot executes them. `added`: those of packages and files, which really run. What
    asks a service outside of Ada gets what the test says that it returns, otherwise a sample, which is noted; and a
    test may let actions fail.
    """

    def __init__(self, player: "PlayedBot", added: Mapping[str, ActionType]) -> None:
        self._own = own_actions()
        self._added = added
        self._player = player

    def __getitem__(self, name: str) -> ActionType:
        kind = self._own[name] if name in self._own else self._added[name]
        if kind.execute is None:
            return kind

        async def execute(context: Context, written: Attributes) -> Ending | Waiting | Asking:
            return await self._execute(kind, context, written)

        return structs.replace(kind, execute=execute)

    def __iter__(self) -> Iterator[str]:
        return iter({**self._added, **self._own})

    def __len__(self) -> int:
        return len({**self._added, **self._own})

    async def _execute(self, kind: ActionType, context: Context, written: Attributes) -> Ending | Waiting | Asking:
        outcomes = self._player.outcomes
        if (set_by_test := outcomes.of(context.step)) is not None:
            return set_by_test
        given = outcomes.returned(context.step)
        is_outside = kind.name in self._own and kind.is_outside(written)
        if given is None and is_outside:
            self._player.note_sample(context)
        if given is not None or is_outside:
            return await _sample(kind, context, written, given)
        await self._player.before_action(context, written)
        assert kind.execute is not None
        found: Ending | Waiting | Asking = await kind.execute(context, written)
        await self._player.after_action(context, written, found)
        return replace(found, is_new=False) if isinstance(found, Waiting) else found


async def _sample(kind: ActionType, context: Context, written: Attributes, given: Mapping[str, Data] | None) -> Ending:
    if kind.simulate:
        ending: Ending = await kind.simulate(context, written, given)
        return ending
    now, zone = from_ms(context.services.now_ms()), context.services.timezone
    step = RehearsedStep(context.bot, kind, context.step, context.event, context.prepared, now, zone)
    ending = play(step) or completed()
    if not given:
        return ending
    from_person = ending.returned.from_person & given.keys()
    return replace(ending, returned=ending.returned.and_then(Values(given, from_person=from_person)))


class PlayedBot:
    """`active`: the bot. `platform`: what packages and files add to it. `jobs`: those that it may start.
    `said`: all that it has said, `delivered`: the same for each chat. `outcomes`: of its actions, as far as they are
    set. `of_jobs`: as `played` of `JobsOfBot`. `samples`: which actions have returned a sample, by their place.
    """

    def __init__(self, active: ActiveBot, platform: Platform, queue: SteppedQueue, jobs: JobsOfBot) -> None:
        services = platform.services
        core = services.core
        self.active = active
        self.services = services
        self.outcomes = Outcomes()
        self.said: list[SaidMessage] = []
        self.delivered: list[SaidMessage] = []
        self.of_jobs: dict[str, Mapping[str, Data]] = {}
        self.samples: dict[Place, Text] = {}
        self._queue = queue
        self._process = Process(core, PlayedTypes(self, platform.types), _OPTIONS)
        self._jobs = jobs
        self._couriers = {channel: Runtime(core.store, channel) for channel in channels()}
        self._events = Events(core.client, TENANT, Choices(core.store))
        self._directory = PlayedDirectory(core.directory, TENANT, active.bot)
        self._broadcasts: dict[str, _Broadcast] = {}  # by the id of the delivery
        self._people: dict[tuple[str, str], str] = {}  # by channel and address
        self._messages = 0
        self._runs = RunReader(core.store)
        self._failures: set[tuple[str, int]] = set()  # run and number of the action

    @classmethod
    @asynccontextmanager
    async def open(
        cls, store: Store, active: ActiveBot, at: datetime, zone: tzinfo, jobs: JobsOfBot = NO_JOBS
    ) -> AsyncIterator["PlayedBot"]:
        """Open a bot on a store, which is emptied. `at`: when its clock begins; `zone`: unless the bot has its own."""
        await store.command("FLUSHALL")
        with tempfile.TemporaryDirectory(prefix="ada-played-") as folder:
            pictures = FileCache(Path(folder), 10**8, timedelta(days=1))
            options = ScenarioOptions(TENANT, zone, pictures=pictures, public_url=_PUBLIC_URL)
            async with open_services(store, options) as services, AsyncExitStack() as stack:
                queue = SteppedQueue(store, services.core.queue)
                queue.begin_at(at)
                platform = await stack.enter_async_context(started(services, active.bot.settings, _added()))
                bot = cls(active, platform, queue, jobs)
                await bot._start()
                try:
                    yield bot
                finally:
                    await bot._stop()

    async def _start(self) -> None:
        await self._process.open()
        await asyncio.gather(*(one.add(PlayedCourier(channels()[name], self)) for name, one in self._couriers.items()))
        await self._process.add(self.services, self.active)
        couriers = {name: one.step for name, one in self._couriers.items()}
        workers = (*self._process.workers(), *await self._jobs.workers(self.services.core, self.of_jobs))
        self._queue.steps = couriers | {worker.tube: worker.step for worker in workers}
        self._queue.wake = self._process.wake_ended

    async def _stop(self) -> None:
        removed = (one.remove(EVERY_TENANT) for one in self._couriers.values())
        await asyncio.gather(self._process.remove(TENANT), *removed)

    @property
    def now(self) -> datetime:
        return self._queue.now

    def new_id(self) -> str:
        """Return the id of another message, in whatever chat."""
        self._messages += 1
        return str(self._messages)

    async def receive(self, person: str, event: Event) -> None:
        """Have an event of a person happen; return when nothing is left to do now."""
        self._people[str(event["channel"]), str(event["user_id"])] = person
        event = await self._directory.meet(person, event)
        await self._process.search_dates(TENANT)
        await self._events.put("played", event)
        await self._queue.run()

    async def wait(self, duration: timedelta) -> None:
        """Let time pass; what falls due happens at its time."""
        await self._queue.advance(duration)

    async def new_failures(self) -> list[str]:
        """Return which actions have failed or are unknown since the last call, and why."""
        runs, _ = await self._runs.page(TENANT, RunFilter(state="with_faults"))
        found: dict[tuple[str, int], str] = {}
        for run in reversed(runs):
            for action in (await self._runs.read(TENANT, run.id)).actions:
                if action.state in FAULTS:
                    found[run.id, action.n] = f"{action.node} {action.type} {action.state}: {action.error}"
        new = [failure for place, failure in found.items() if place not in self._failures]
        self._failures |= found.keys()
        return new

    async def before_action(self, context: Context, written: Attributes) -> None:
        """Have the groups and people exist that an action names, and its change of a date be seen."""
        await self._directory.ensure(context.prepared.own.get("to"), context.channel, context.person)
        for group in (getattr(written, "add", None), getattr(written, "remove", None)):
            if group and isinstance(group, str):
                await self._directory.ensure_group(group)
        if getattr(written, "variables", None):
            await self._process.search_dates(TENANT)

    async def after_action(self, context: Context, written: Attributes, found: Ending | Waiting | Asking) -> None:
        """Deliver at once what an action has ordered, so that messages come in the order of their orders."""
        own = context.prepared.own
        if to := own.get("to") or list(getattr(written, "chosen", ())):
            broadcast = _Broadcast(to, list(elements(own.get("channels"))) or None)
            self._broadcasts |= dict.fromkeys(_ordered(found), broadcast)
        await self._queue.run_only(self._couriers)

    def note_sample(self, context: Context) -> None:
        """Note that an action returns a sample, because nothing says what it returns."""
        action, node = context.step.action, node_of(context.step)
        self.samples[action.place] = sentence("sample_used", name=action.type, node=node)

    def deliver(self, channel: str, message: Message) -> str:
        """Take a message that was delivered; return its id."""
        known = (one for delivery, one in self._broadcasts.items() if message.seed.startswith(f"{delivery}:"))
        broadcast, number = next(known, None), self.new_id()
        place = f"{channel}:{self._people.get((channel, message.address), message.address)}"
        said = SaidMessage(_shown(message), self.now, number, place, place)
        self.delivered.append(said)
        if broadcast is None:
            self.said.append(said)
        elif broadcast.is_for_people:
            self.said.append(replace(said, to={"people": True}, channels=broadcast.channels))
        elif not broadcast.is_shown:
            broadcast.is_shown = True
            self.said.append(replace(said, chat="", to=broadcast.to, channels=broadcast.channels))
        return number


def _added() -> Actions:
    """Return the actions of packages and files."""
    found, own = installed_actions(), own_actions()
    return Actions({name: kind for name, kind in found.types.items() if name not in own}, found.broken)


def _ordered(found: Ending | Waiting | Asking) -> list[str]:
    """Return the ids of the deliveries that an action has ordered."""
    if isinstance(found, Waiting):
        return [key.id for key in (found.delivery, *found.others)]
    known = found.returned.results.get("delivery_id") if isinstance(found, Ending) else None
    return [str(known)] if known else []


def _shown(message: Message) -> BotMessage:
    content = message.content or Content()
    files = [one.name or one.url or one.provider_id or Path(one.path).name for one in content.attachments]
    return BotMessage(
        message.text,
        files or None,
        tuple(tuple(_button(one) for one in row) for row in content.inline),
        None if content.reply is None else tuple(tuple(row) for row in content.reply),
        tuple(content.request_contact),
        "" if content.parse_mode is ParseMode.HTML else str(content.parse_mode),
        exact_message_id=content.edit or None,
    )


def _button(button: Button) -> dict[str, str]:
    return {"text": button.text, **({"url": button.url} if button.url else {"data": button.data})}


@asynccontextmanager
async def open_store() -> AsyncIterator[Store]:
    """Open a store for played bots, one after the other. Its server ends with this process."""
    store = await Store.open(server_url())
    try:
        yield store
    finally:
        await store.close()
