"""The handlers of the tubes `events` and `scenarios.runs`.

An event's task stays claimed while its run is driven, so that a person's events are processed one after the other, and
a process that dies leaves the run to another one when the lease ends. It is done when the run is over or parked.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from core.queue import Attempt, Result
from core.updates import events
from scenarios.execution.driver import Driver
from scenarios.execution.runs import RunGone, Runs, StoredRun, run_id
from scenarios.execution.versions import Version, Versions
from scenarios.people import People
from scenarios.reloading import ActiveBot
from scenarios.splicing import unknown

log = logging.getLogger(__name__)

Event = Mapping[str, Any]


class Handlers:
    """One per process. What a handler raises has its task retried."""

    def __init__(
        self, bot: ActiveBot, people: People, versions: Versions, runs: Runs, driver: Driver, shards: int
    ) -> None:
        self._bot = bot
        self._people = people
        self._versions = versions
        self._runs = runs
        self._driver = driver
        self._shards = shards

    async def handle_event(self, attempt: Attempt) -> Result:
        """Begins the run of an event, or finds it, and drives it.

        A repeat looks for the run first: its steps may have changed the person's state, and with it what would start.
        So does an event that starts nothing, whose first attempt a process may have given back.
        """
        event = events.decode(attempt.body)
        stored = await self._begun(event) if attempt.task.crashed else None
        if stored is None:
            version = await self._versions.current(self._bot.version, self._bot.bot)
            names = await self._select(event, version)
            stored = await (self._begin(event, version, names) if names else self._begun(event))
        if stored is not None:
            await self._drive(stored)
        return None

    async def _begun(self, event: Event) -> StoredRun | None:
        """The run that an earlier attempt has begun."""
        try:
            return await self._runs.load(self._run_of(event))
        except RunGone:
            return None

    async def handle_run(self, attempt: Attempt) -> Result:
        """Drives on a run that was parked. The body is its id."""
        try:
            stored = await self._runs.load(attempt.body)
        except RunGone as gone:
            log.warning("%s", gone)
            return None
        await self._drive(stored)
        return None

    async def _drive(self, stored: StoredRun) -> None:
        try:
            await self._driver.drive(stored)
        except RunGone as gone:
            log.warning("%s", gone)

    async def _select(self, event: Event, version: Version) -> Sequence[str]:
        """The full names of the scenarios that the event starts. One that does not exist is a warning (C-35)."""
        state = await self._people.met(event)
        selection = version.triggers.select(event, state or str(event.get("user_state") or ""))
        missing = [name for name in selection.scenarios if version.bot.find(name) is None]
        for warning in (*selection.warnings, *(unknown(version.bot, name) for name in missing)):
            log.warning("event %s: %s", events.identity(event), warning)
        found = (version.bot.find(name) for name in selection.scenarios)
        return [scenario.name for scenario in found if scenario is not None]

    async def _begin(self, event: Event, version: Version, names: Sequence[str]) -> StoredRun:
        return await self._runs.begin(self._run_of(event), events.person_of(event), event, version, names)

    def _run_of(self, event: Event) -> str:
        return run_id(events.identity(event), events.person_of(event), self._shards)
