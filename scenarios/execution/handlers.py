"""The handler of the tube `events`.

An event's task stays claimed while its run is driven, so that a person's events are processed one after the other, and
a process that dies leaves the run to another one when the lease ends. While the run is parked the task is suspended at
its place in the person's lane. It is done when the run is over.

A run that waits keeps the turn of its person for its own answers, for a broadcast or for a slow action: until then no
later event of the person is processed. Counted from the arrival of the event, so an event is held up by those before it
for no longer than that, however many they are.
"""

import logging
from collections.abc import Mapping, Sequence
from functools import partial

from core.directory.users import Users
from core.model.people import User
from core.queue import Attempt, Result
from core.sentence import say
from core.updates import events
from core.updates.bot_calls import BotCalls
from core.updates.events import Event
from couriers.inbound import longest_answer
from scenarios.bot.event_fields import with_derived
from scenarios.engine.run import unknown_scenario
from scenarios.engine.triggers import SCHEDULED, Selection, has_teacher_beside, scheduled, select_beside
from scenarios.execution.active_bot import ActiveBot
from scenarios.execution.answers import QuestionAnswers
from scenarios.execution.driver import Driver
from scenarios.execution.runs import RunGone, Runs, StoredRun, run_id
from scenarios.execution.versions import Version, Versions
from scenarios.stores.people import People
from scenarios.stores.variables import Variables

log = logging.getLogger(__name__)


class Handlers:
    """One per process. What a handler raises has its task retried. `beside`: the dialog of teachers, which answers
    beside the bot unless its version in force switches it off. `bot_calls`: by channel. `put`: takes what a
    person has written and no scenario answers, and what answers a question in another chat of the person.
    """

    def __init__(
        self,
        bot: ActiveBot,
        people: People,
        variables: Variables,
        versions: Versions,
        runs: Runs,
        driver: Driver,
        answers: QuestionAnswers,
        bot_calls: Mapping[str, BotCalls],
        tenant: str,
        shards: int,
        directory_users: Users,
        put: events.Events,
        beside: ActiveBot | None = None,
    ) -> None:
        self._bot = bot
        self._beside = beside
        self._people = people
        self._variables = variables
        self._directory_users = directory_users
        self._put = put
        self._versions = versions
        self._runs = runs
        self._driver = driver
        self._answers = answers
        self._bot_calls = bot_calls
        self._tenant = tenant
        self._shards = shards

    async def handle_event(self, attempt: Attempt) -> Result:
        """Drive the run of an event until it is over or parked. A pressed button has its answer then."""
        event = events.decode(attempt.body)
        result = await self._handle(event, attempt)
        await self._answer_press(event)
        return result

    async def _answer_press(self, event: Event, text: str = "") -> None:
        """Answer the press of an event, unless it has an answer already. Raises StoreError."""
        if event.get("callback_id") and longest_answer(event["channel"]):
            await self._bot_calls[event["channel"]].answer_press(event, text)

    async def _handle(self, event: Event, attempt: Attempt) -> Result:
        """Begin the run of an event, or find it, and drive it.

        A repeat searches for the run first: its steps may have changed the person's state, and with it what would
        start. So does an event that starts nothing, whose first attempt a process may have given back.
        """
        task = attempt.task.task_id
        is_repeat = attempt.task.crashed or bool(attempt.checkpoint)
        stored = await self._known(event, task) if is_repeat else None
        if stored is None:
            own = await self._versions.current(self._bot.version, self._bot.bot)
            event = await self._answers.as_meant(event)
            begins = partial(self._begins, event, own)
            if answered := await self._answers.take(event, self._run_of(event), task, begins):
                return await self._driver.drive(answered, attempt) if answered.task == task else None
            event, version, names, is_specific = await self._select(event, own)
            if own.asks and not is_specific and await self._answers_elsewhere(event):
                return None
            stored = await (self._begin(task, event, version, names) if names else self._begun(event))
            if stored is None and not names:
                language = str(with_derived(event, own.bot.language)["language"])
                await self._answer_press(event, say("press_answers_nothing", language))
        elif stored.task != task:
            return None  # the task of an answer drives the run
        if stored is None and events.is_free_text(event):
            await self._put.put_reply(event)
        return await self._driver.drive(stored, attempt) if stored is not None else None

    async def _known(self, event: Event, task: str) -> StoredRun | None:
        """Return the run that an earlier attempt has begun, or whose question it has answered."""
        return await self._begun(event) or await self._answers.resume(event, self._run_of(event), task)

    async def _begun(self, event: Event) -> StoredRun | None:
        """Return the run that an earlier attempt has begun."""
        try:
            return await self._runs.load(self._run_of(event))
        except RunGone:
            return None

    async def _answers_elsewhere(self, event: Event) -> bool:
        """Put a text that nothing but `*` takes as an event of another chat of its person, if it answers a question
        that waits there; return whether it does. A repeat puts it once. It reads what any server may have, so it is
        not called for a bot that asks nothing.
        """
        user = await self._in_directory(event) if events.is_free_text(event) else None
        moved = await self._answers.elsewhere(event, user.contacts) if user and not user.blocked else None
        if moved:
            await self._put.put(f"{event['channel']}.{event['source']}", moved)
        return moved is not None

    async def _select(self, event: Event, own: Version) -> tuple[Event, Version, Sequence[str], bool]:
        """Return the event, as the press that it means if nothing but `*` takes the text; the bot that answers it, the
        full names of the scenarios that this starts, and whether more than `*` has found them. A name without a
        scenario is a warning (C-35).
        """
        if event.get("kind") == SCHEDULED:
            return event, own, scheduled(own.bot, event), True
        state = await self._people.met(event) or str(event.get("user_state") or "")
        version, selection = await self._selected(event, state, own)
        if events.PRESS_MEANT in event and not selection.is_specific:
            press = events.as_press(event)
            presser, by_press = await self._selected(press, state, own)
            if by_press.is_specific:
                event, version, selection = press, presser, by_press
        missing = [name for name in selection.scenarios if version.bot.find(name) is None]
        for warning in (*selection.warnings, *(unknown_scenario(version.bot, name) for name in missing)):
            log.warning("event %s: %s", events.identity(self._tenant, event), warning)
        found = (version.bot.find(name) for name in selection.scenarios)
        names = [scenario.name for scenario in found if scenario is not None]
        return event, version, names, selection.is_specific

    async def _begins(self, event: Event, own: Version) -> bool:
        """Return whether more than `*` takes an event."""
        state = await self._people.met(event) or str(event.get("user_state") or "")
        return (await self._selected(event, state, own))[1].is_specific

    async def _selected(self, event: Event, state: str, own: Version) -> tuple[Version, Selection]:
        """Return which of the two bots answers, and by which scenarios."""
        if self._beside is None or not has_teacher_beside(self._bot.folder, own.bot):
            return own, own.triggers.select(event, state)
        teacher = await self._versions.current(self._beside.version, self._beside.bot)
        selection, is_teacher = select_beside(own.triggers, teacher.triggers, event, state)
        return teacher if is_teacher else own, selection

    async def _begin(self, task: str, event: Event, version: Version, names: Sequence[str]) -> StoredRun | None:
        """Begin the run of an event; return None for a person whom the directory blocks, if the bot looks there."""
        known: Event = {}
        if version.names_directory:
            user = await self._in_directory(event)
            if user and user.blocked:
                return None
            known = await self._directory_fields(user) if user else {}
        seen = {**known, **event, **await self._variables.seen(version.bot, event, self._runs.now())}
        return await self._runs.begin(self._run_of(event), task, events.person_of(event), seen, version, names)

    async def _in_directory(self, event: Event) -> User | None:
        return await self._directory_users.by_contact(self._tenant, event["channel"], str(event["user_id"]))

    async def _directory_fields(self, user: User) -> Event:
        """Return what the directory knows of the event's person."""
        return {
            "directory_id": user.id,
            "directory_role": user.role or "",
            "directory_name": user.name or "",
            "directory_fields": await self._directory_users.data_of_fields(self._tenant, user),
            **({"language": user.locale} if user.locale else {}),
        }

    def _run_of(self, event: Event) -> str:
        return run_id(self._tenant, events.identity(self._tenant, event), events.person_of(event), self._shards)
