"""Starts what schedule.yaml says, when it is due (C-96).

    arm ─▶ task of the tube `schedules`, due at the next moment ─▶ handle: an event for each person ─▶ arm the next one

Guarantees: a moment starts one run for each person or chat, over restarts and several processes: the id of the event is
made of schedule, moment and person. Moments that fell due while no process was there are made up for by one. A person
who is due `before` a date of their own is found within five minutes.
"""

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Mapping
from datetime import datetime, timedelta, tzinfo
from hashlib import blake2b

import msgspec
from msgspec import Struct

from core.errors import NotFound, StoreError
from core.model.clock import Backoff, from_ms, in_ms, to_ms
from core.queue import Attempt, NewTask, Result, Tube, own_name
from core.redis.keys import KEYS
from core.updates import events
from couriers.channel import channels_of_bots
from scenarios.bot import Bot
from scenarios.bot.data import Data
from scenarios.bot.model import split_name
from scenarios.bot.times import PEOPLE, Schedule
from scenarios.context import ScenarioServices
from scenarios.engine.triggers import SCHEDULED
from scenarios.execution.active_bot import ActiveBot
from scenarios.schema.conditions import unmet
from scenarios.schema.variables import moment_of
from scenarios.stores.people import People
from scenarios.stores.variables import Variables

LATEST = timedelta(hours=23)
"""Time after which a schedule no longer starts for a date that was set too late: less than the day for which a task
that was put once is known, so that it starts once.
"""
log = logging.getLogger(__name__)
TUBE = "schedules"
LOOK_EVERY = timedelta(minutes=5)
"""Interval between two searches for people who are due before a date of their own."""
MADE_UP_FOR = timedelta(days=7)
"""A date that passed longer ago, while no process was there, starts nothing any more."""
_MARK_KEPT = 2 * MADE_UP_FOR
"""Retention of the moment of the last search: longer than dates are made up for."""
_RETRY = 1.0
_BACKOFF = Backoff(timedelta(seconds=1), timedelta(seconds=60))


def due_before(schedule: Schedule, seen: Mapping[str, Mapping[str, Data]], zone: tzinfo) -> datetime | None:
    """Return when a person with these variables is due; None if the date is not set."""
    scope, name = split_name(schedule.before) or ("", "")
    value = moment_of(seen.get(scope, {}).get(name), zone)
    return schedule.moment_before(value, zone) if value else None


def late_before(
    schedule: Schedule, seen: Mapping[str, Mapping[str, Data]], zone: tzinfo, now: datetime
) -> datetime | None:
    """Return the time that has passed before a date that is still to come; None if there is none (C-113)."""
    scope, name = split_name(schedule.before) or ("", "")
    value, at = moment_of(seen.get(scope, {}).get(name), zone), due_before(schedule, seen, zone)
    return at if schedule.late and value and at and now - LATEST < at <= now < value else None


def event_of(schedule: Schedule, at: datetime, about: Mapping[str, Data], zone: tzinfo) -> dict[str, Data]:
    """Return the event that starts a schedule for a person or a chat: the same for each repeat."""
    whose = f"{schedule.name}\n{to_ms(at)}\n{about['channel']}\n{about['user_id']}\n{about['chat_id']}"
    chat = {"chat_type": "group"} if about["user_id"] == SCHEDULED and about["chat_id"] != SCHEDULED else {}
    return {
        "id": blake2b(whose.encode(), digest_size=16).hexdigest(),
        "source": SCHEDULED,
        "kind": SCHEDULED,
        "schedule": schedule.name,
        "due": at.astimezone(zone).isoformat(),
        **about,
        **chat,
    }


class Due(Struct, frozen=True):
    """The body of a task: a moment of a schedule (ms)."""

    schedule: str
    at: int


def schedules_tube() -> Tube:
    return Tube(TUBE, attempts=1000, backoff=_BACKOFF)


class _DateSearch:
    """A search for the people who are due. `coming`: the next date of those who are not (ms)."""

    def __init__(self) -> None:
        self.coming = math.inf


class Schedules:
    """The schedules of one tenant's bot; one per process. `is_stepped`: a test calls `search_dates` before a date of
    a person changes, so no search is made before one is due.
    """

    def __init__(self, services: ScenarioServices, bot: ActiveBot, *, is_stepped: bool = False) -> None:
        self._services = services
        self._look_every = in_ms(MADE_UP_FOR if is_stepped else LOOK_EVERY)
        self._bot = bot
        self._people = People(services.core.store, services.tenant)
        self._variables = Variables(services.core.store, services.tenant)
        self._queue = services.core.client
        self._changed = asyncio.Event()
        bot.on_change(self._changed.set)

    async def arm_all(self) -> None:
        """Put a task for the next moment of each schedule, unless it is there. Raises StoreError."""
        for schedule in self._bot.bot.schedules.values():
            await self._arm(schedule, from_ms(self._services.now_ms()))

    async def keep(self) -> None:
        """Arm the schedules of each version that comes into force, until cancelled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                await self.arm_all()
            except StoreError as fault:
                log.warning("schedules not armed, again in %.0f s: %s", _RETRY, fault)
                await asyncio.sleep(_RETRY)
                self._changed.set()

    async def search_dates(self) -> None:
        """Search at the next multiple of LOOK_EVERY, for dates since the one before the last. Raises StoreError."""
        now = self._services.now_ms()
        for schedule in self._bot.bot.schedules.values():
            if schedule.before:
                await self._note_looked(schedule, now - now % in_ms(LOOK_EVERY) - in_ms(LOOK_EVERY))
                await self._arm(schedule, from_ms(now))

    async def handle(self, attempt: Attempt) -> Result:
        """Start what is due, then arm the next moment. Raises StoreError."""
        due, bot = msgspec.json.decode(attempt.body, type=Due), self._bot.bot
        schedule = bot.schedules.get(due.schedule)
        if schedule is None or not self._is_moment(schedule, due):
            return None  # the files have changed since
        until = max(due.at, self._services.now_ms())
        span = await self._looked(schedule, until) if schedule.before else (due.at, due.at)
        search = _DateSearch()
        async for event in self._events(bot, schedule, span, search):
            await self._put(event)
        if schedule.before:
            await self._note_looked(schedule, until)
            until = max(until, int(min(search.coming, until + self._look_every)) - 1)
        await self._arm(schedule, from_ms(until))
        return None

    async def _note_looked(self, schedule: Schedule, until: int) -> None:
        await self._services.core.store.command("SET", self._looked_key(schedule), until, "PX", in_ms(_MARK_KEPT))

    async def _looked(self, schedule: Schedule, until: int) -> tuple[int, int]:
        """Return since when people have to be looked at, and until when (ms)."""
        stored = await self._services.core.store.command("GET", self._looked_key(schedule))
        since = int(stored) if stored else until - in_ms(LOOK_EVERY)
        return max(since, until - in_ms(MADE_UP_FOR)), until

    def _looked_key(self, schedule: Schedule) -> str:
        return KEYS["schedule_looked"].at(0, self._services.tenant, schedule.name)

    async def _arm(self, schedule: Schedule, after: datetime) -> None:
        at = self._next(schedule, after)
        due = Due(schedule.name, to_ms(at))
        task = NewTask(msgspec.json.encode(due).decode(), self._services.tenant, due=at)
        name = f"{self._services.tenant} {schedule.name} {due.at}"
        await self._queue.queue.put_once(TUBE, task, source="scenarios.schedule", name=name)

    def _next(self, schedule: Schedule, after: datetime) -> datetime:
        if schedule.recurs:
            return schedule.moment_after(after, self._zone)
        step = int(LOOK_EVERY.total_seconds() * 1000)
        return from_ms((to_ms(after) // step + 1) * step)

    def _is_moment(self, schedule: Schedule, due: Due) -> bool:
        """Return whether a schedule is still due at this moment."""
        return self._next(schedule, from_ms(due.at - 1)) == from_ms(due.at)

    @property
    def _zone(self) -> tzinfo:
        return self._bot.bot.zone(self._services.timezone)

    async def _put(self, event: Mapping[str, Data]) -> None:
        tenant = self._services.tenant
        lane = own_name(tenant, events.lane_of(event))
        task = NewTask(events.encode(event), tenant, lane=lane, user=events.person_of(event))
        name = own_name(tenant, str(event["id"]))
        await self._queue.queue.put_once(events.TUBE, task, source="events.schedule", name=name)

    async def _events(
        self, bot: Bot, schedule: Schedule, span: tuple[int, int], search: _DateSearch
    ) -> AsyncIterator[Mapping[str, Data]]:
        async for about in self._targets(schedule):
            seen = await self._variables.seen(bot, about, self._services.now_ms()) if _looks(schedule) else {}
            at = self._due_at(schedule, span, seen, search)
            if at is not None and not unmet(schedule.when, seen):
                yield event_of(schedule, at, about, self._zone)

    def _due_at(
        self, schedule: Schedule, span: tuple[int, int], seen: Mapping[str, Mapping[str, Data]], search: _DateSearch
    ) -> datetime | None:
        """Return the moment at which a person is due; None if it is not."""
        if schedule.recurs:
            return from_ms(span[1])
        at = due_before(schedule, seen, self._zone)
        if at and span[0] < to_ms(at) <= span[1]:
            return at
        if at and to_ms(at) > span[1]:
            search.coming = min(search.coming, to_ms(at))
        return late_before(schedule, seen, self._zone, from_ms(span[1]))

    async def _targets(self, schedule: Schedule) -> AsyncIterator[Mapping[str, Data]]:
        """Yield the fields that address an event: for each person, for a chat, or for none."""
        target = schedule.target
        if target == PEOPLE:
            async for channel, person in self._people.all():
                yield _about(channel, person)
        elif isinstance(target, Mapping) and target.get("group"):
            async for about in self._members(schedule, str(target["group"])):
                yield about
        elif isinstance(target, Mapping):
            yield _about(str(target.get("channel") or channels_of_bots()[0]), SCHEDULED, str(target["chat"]))
        else:
            yield _about(SCHEDULED, SCHEDULED)

    async def _members(self, schedule: Schedule, group: str) -> AsyncIterator[Mapping[str, Data]]:
        try:
            found = await self._services.core.directory.expander.expand(self._services.tenant, [group], [])
        except NotFound as error:
            log.warning("schedule.yaml, line %d: %s", schedule.place.line, error)
            return
        for member in found.members:
            contacts = member.user.contacts
            for channel in [one for one in channels_of_bots() if contacts.get(one)][:1]:
                yield {**_about(channel, contacts[channel][0]), "directory_id": member.user.id}


def _about(channel: str, person: str, chat: str = "") -> dict[str, Data]:
    return {"channel": channel, "user_id": person, "chat_id": chat or person}


def _looks(schedule: Schedule) -> bool:
    """Return whether the variables decide who is due."""
    return bool(schedule.when or schedule.before)
