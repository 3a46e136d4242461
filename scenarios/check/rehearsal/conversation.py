"""A conversation with a bot over a memory: people write and press, time passes, the bot answers (C-99).

The order of things is that of the server: an open question first, then the triggers with the person's state.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from couriers.telegram_bot import CHANNEL
from scenarios.bot import Bot
from scenarios.bot.button_data import turn_of
from scenarios.bot.data import Data
from scenarios.bot.event_fields import with_derived
from scenarios.bot.schedules import Schedule
from scenarios.check.dry_run import select
from scenarios.check.rehearsal.rehearsal import Outcomes, Rehearsal
from scenarios.engine.results import skipped
from scenarios.engine.triggers import SCHEDULED
from scenarios.placeholders.values import as_text
from scenarios.rehearsal.memory import Memory, RehearsedPromos, SaidMessage
from scenarios.schema.conditions import unmet
from scenarios.schema.questions import EVENTS
from scenarios.schema.schedules import due_before, event_of, late_before
from scenarios.words import Text, sentence

_OF_PERSON = ("channel", "user_id", "chat_id", "first_name")
ACTS = ("user", "photo", "contact", "reply", "press")
"""What a person does: writes, sends a photo or its contact, replies to the bot's last message in the chat, presses."""
PHONE = "+79990000007"
"""The number that people of a rehearsal share."""

_MEMBER: Mapping[str, Data] = {
    "directory_id": "1",
    "directory_role": "trainer",
    "directory_name": "Anna",
    "directory_fields": {},
}
"""The directory is taken to know everybody, as somebody of its staff."""
INTERRUPTED = sentence("person_has_begun_something")


class NoSuchButton(Exception):
    """The bot's last messages to this person have no such button."""


class Conversation:
    """`bot` may be replaced: runs that have begun go on as they began. `outcomes`: of what begins from now on. `group`:
    the chat in which people write, "" for the private one of each.
    """

    def __init__(self, bot: Bot, memory: Memory, channel: str = CHANNEL) -> None:
        self.bot = bot
        self.memory = memory
        self.memory.promos = self.memory.promos or RehearsedPromos()
        self.channel = channel
        self.group = ""
        self.outcomes = Outcomes()
        self.warnings: list[Text] = []
        self._events = 0

    def write(self, person: str, text: str, **fields: Data) -> None:
        """Have a person write something."""
        self._receive(person, {"kind": "text", "event_text": text, **fields})

    def act(self, what: str, given: Data, person: str) -> None:
        """Have a person do one of ACTS. Raises NoSuchButton."""
        text = as_text(given)
        if what == "user" and isinstance(given, Mapping):
            self.write(person, as_text(given.get("event_text")), **{str(name): one for name, one in given.items()})
        elif what == "user":
            self.write(person, text)
        elif what == "photo":
            self.write(person, "", attachments=[{"type": "photo", "file_id": text}])
        elif what == "contact":
            self.write(person, "", attachments=[{"type": "contact", "phone": text, "is_own": True}])
        elif what == "reply":
            last = next(reversed(self.said_to(person)), None)
            said = last.message.text if last else ""
            self.write(person, text, is_reply=True, reply_message_id="1", reply_message_text=said)
        else:
            self.press(person, text)

    def press(self, person: str, label: str) -> None:
        """Have a person press the button with this text, of the last message that has it. Raises NoSuchButton."""
        for said in reversed(self.said_to(person)):
            for one in (button for row in said.message.inline for button in row):
                if one["text"] == label and "url" not in one:
                    return self._receive(person, {"kind": "callback", "callback_data": one.get("data") or label})
            if label in said.message.request_contact:
                return self.write(person, "", attachments=[{"type": "contact", "phone": PHONE, "is_own": True}])
            if any(label in row for row in said.message.reply or ()):
                return self.write(person, label)
        raise NoSuchButton(f"no message has the button {label!r}")

    def said_to(self, person: str) -> list[SaidMessage]:
        """Return the messages in the chat of a person that were sent until now."""
        chat = f"{self.channel}:{self.group or person}"
        return [one for one in self.memory.said if one.chat == chat and one.at <= self.memory.now]

    def wait(self, duration: timedelta) -> None:
        """Let time pass; what falls due happens at its time."""
        until = self.memory.now + duration
        while moments := [at for at in (self._question_due(), self._schedule_due()) if at and at <= until]:
            before, self.memory.now = self.memory.now, max(self.memory.now, min(moments))
            self._start_due(before)
            due = self.memory.next_due()
            if due is not None and due.due <= self.memory.now:
                due.run.pass_due(due)
        self.memory.now = until

    def _question_due(self) -> datetime | None:
        due = self.memory.next_due()
        return due.due if due else None

    def _schedule_due(self) -> datetime | None:
        """Return when the next schedule is due."""
        return min((at for at, _, _ in self._due_after(self.memory.now)), default=None)

    def _start_due(self, before: datetime) -> None:
        """Start the schedules that are due now."""
        for at, schedule, about in list(self._due_after(before)):
            seen = self.memory.seen(self.bot, about)
            if at == self.memory.now and not unmet(schedule.when, seen):
                due = due_before(schedule, seen, self.memory.zone) if schedule.before else at
                event = event_of(schedule, due or at, about, self.memory.zone)
                self.memory.started.add(str(event["id"]))
                self.begin({**about, **event}, (schedule.scenario,), [])

    def _due_after(self, moment: datetime) -> Iterator[tuple[datetime, Schedule, Mapping[str, Data]]]:
        """Yield the next moment of each schedule for each person or chat."""
        for schedule in self.bot.schedules.values():
            at = schedule.moment_after(moment, self.memory.zone) if schedule.recurs else None
            for about in self._targets(schedule):
                if schedule.before:
                    at = self._before(schedule, about, moment)
                if at and at > moment:
                    yield at, schedule, about

    def _before(self, schedule: Schedule, about: Mapping[str, Data], moment: datetime) -> datetime | None:
        """Return when a person is due before a date: also within five minutes if its time has passed, but once."""
        seen, zone = self.memory.seen(self.bot, about), self.memory.zone
        late = late_before(schedule, seen, zone, moment)
        if late and event_of(schedule, late, about, zone)["id"] not in self.memory.started:
            return moment - timedelta(minutes=moment.minute % 5, seconds=moment.second) + timedelta(minutes=5)
        return due_before(schedule, seen, zone)

    def _targets(self, schedule: Schedule) -> list[Mapping[str, Data]]:
        """Return the people that have written; those stand for a group of the directory, too."""
        if isinstance(schedule.target, Mapping) and schedule.target.get("chat"):
            return [{"channel": self.channel, "user_id": SCHEDULED, "chat_id": str(schedule.target["chat"])}]
        if schedule.target is None:
            return [{"channel": SCHEDULED, "user_id": SCHEDULED, "chat_id": SCHEDULED}]
        people = self.memory.people.values()
        return [{**{name: one[name] for name in _OF_PERSON if name in one}, **_MEMBER} for one in people]

    def _receive(self, person: str, fields: Mapping[str, Data]) -> None:
        self._events += 1
        about: dict[str, Data] = {
            "id": str(self._events),
            "channel": self.channel,
            "user_id": person,
            "chat_id": person,
            **_MEMBER,
        }
        about |= {"chat_id": self.group, "chat_type": "supergroup"} if self.group else {}
        event = {**about, "first_name": "Anna", "event_date": self.memory.now.isoformat(), **fields}
        if self._is_answer(event):
            return
        selection, warnings = select(self.bot, with_derived(event), self.memory.state(event))
        self.begin(event, selection.scenarios, warnings)

    def begin(self, event: Mapping[str, Data], scenarios: tuple[str, ...], warnings: list[Text]) -> None:
        """Begin a run."""
        if event.get("kind") != SCHEDULED:
            self.memory.people[f"{event['channel']}:{event['user_id']}"] = event
        rehearsal = Rehearsal(self.bot, event, self.memory, self.outcomes)
        rehearsal.start(scenarios)
        self.warnings += [*warnings, *rehearsal.warnings]

    def _is_answer(self, event: Mapping[str, Data]) -> bool:
        asked = self.memory.open_question(event)
        if asked is None or event["kind"] not in EVENTS:
            return False
        if turn := turn_of(event):
            asked.run.turn_page(asked, turn)
            return True
        if not asked.run.is_for(asked, event):
            asked.run.end(asked.path, skipped(INTERRUPTED))
            return False
        asked.run.answer(asked, event)
        return True
