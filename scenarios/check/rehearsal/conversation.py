"""A conversation with a bot over a memory: people write and press, time passes, the bot answers (C-99).

The order of things is that of the server: an open question first, then the triggers with the person's state.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from scenarios.bot import Bot
from scenarios.bot.event_fields import with_derived
from scenarios.check.dry_run import select
from scenarios.check.rehearsal.memory import Memory, Said
from scenarios.check.rehearsal.rehearsal import Outcomes, Rehearsal
from scenarios.engine.results import skipped
from scenarios.schema.questions import EVENTS, interrupts

INTERRUPTED = "the person has begun something else"


class NoSuchButton(Exception):
    """The bot's last messages to this person have no such button."""


class Conversation:
    """`bot` may be replaced: runs that have begun go on as they began. `outcomes`: of what begins from now on."""

    def __init__(self, bot: Bot, memory: Memory, channel: str = "telegram-bot") -> None:
        self.bot = bot
        self.memory = memory
        self.channel = channel
        self.outcomes = Outcomes()
        self.warnings: list[str] = []
        self._events = 0

    def write(self, person: str, text: str, **fields: Any) -> None:
        """Have a person write something."""
        self._receive(person, {"kind": "text", "event_text": text, **fields})

    def press(self, person: str, label: str) -> None:
        """Have a person press the button with this text, of the last message that has it. Raises NoSuchButton."""
        for said in reversed(self.said_to(person)):
            for one in _buttons(said.message):
                if one.get("text") == label and "url" not in one:
                    return self._receive(person, {"kind": "callback", "callback_data": one.get("data") or label})
            if any(label in row for row in said.message.get("reply") or ()):
                return self.write(person, label)
        raise NoSuchButton(f"no message has the button {label!r}")

    def said_to(self, person: str) -> list[Said]:
        """Return the messages in the chat of a person that were sent until now."""
        chat = f"{self.channel}:{person}"
        return [one for one in self.memory.said if one.chat == chat and one.at <= self.memory.now]

    def wait(self, duration: timedelta) -> None:
        """Let time pass; what falls due happens at its time."""
        until = self.memory.now + duration
        while (due := self.memory.next_due()) is not None and due.due <= until:
            self.memory.now = max(self.memory.now, due.due)
            due.run.pass_due(due)
        self.memory.now = until

    def _receive(self, person: str, fields: Mapping[str, Any]) -> None:
        self._events += 1
        about = {"id": str(self._events), "channel": self.channel, "user_id": person, "chat_id": person}
        event = {**about, "first_name": "Anna", "event_date": self.memory.now.isoformat(), **fields}
        if self._is_answer(event):
            return
        selection, warnings = select(self.bot, with_derived(event), self.memory.state(event))
        self.begin(event, selection.scenarios, warnings)

    def begin(self, event: Mapping[str, Any], scenarios: tuple[str, ...], warnings: list[str]) -> None:
        """Begin a run."""
        self.memory.people[f"{event['channel']}:{event['user_id']}"] = event
        rehearsal = Rehearsal(self.bot, event, self.memory, self.outcomes)
        rehearsal.start(scenarios)
        self.warnings += [*warnings, *rehearsal.warnings]

    def _is_answer(self, event: Mapping[str, Any]) -> bool:
        asked = self.memory.open_question(event)
        if asked is None or event["kind"] not in EVENTS:
            return False
        if interrupts(asked.question, event):
            asked.run.end(asked.path, skipped(INTERRUPTED))
            return False
        asked.run.answer(asked, event)
        return True


def _buttons(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [one for row in message.get("inline") or () for one in row]
