"""Replaces the store for a rehearsed bot: variables, states, open questions, forms, messages. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import count
from typing import Protocol

from msgspec import structs

from core.errors import Conflict
from core.model.clock import to_ms
from scenarios.bot import Bot
from scenarios.bot.button_data import PageTurn
from scenarios.bot.data import Data
from scenarios.bot.event_fields import Event
from scenarios.engine import Ending, Path
from scenarios.schema.questions import AskedQuestion
from scenarios.schema.variables import Change, applied, defaults, is_past, scopes_of
from scenarios.sending.choosing import AddresseeSelection
from scenarios.sending.message import BotMessage
from scenarios.stores.promo import Promo
from scenarios.words import sentence

Owner = tuple[str, str, str]
"""Scope, channel, and the id of the person or chat."""


@dataclass(frozen=True, slots=True)
class SaidMessage:
    """A message of the bot. `chat`: CHANNEL:CHAT, "" for a message with `to`. `at`: when it is sent."""

    message: BotMessage
    at: datetime
    chat: str = ""
    to: Data = None
    channels: Data = None


class QuestionRun(Protocol):
    """The run whose action asks."""

    event: Event

    def is_open(self, path: Path) -> bool:
        """Return whether an action has not ended."""

    def is_for(self, question: "OpenQuestion", event: Event) -> bool:
        """Return whether an event is for the action that asks, and begins nothing else."""

    def answer(self, question: "OpenQuestion", event: Event) -> None:
        """Take what a person has written for the answer, or say the hint."""

    def turn_page(self, question: "OpenQuestion", turn: PageTurn) -> None:
        """Show another page of the options."""

    def pass_due(self, question: "OpenQuestion") -> None:
        """Do what is due without an answer."""

    def end(self, path: Path, ending: Ending) -> None:
        """End an action that waits, and play what follows."""


@dataclass(slots=True)
class OpenQuestion:
    """A question that waits. `message`: it, for reminders."""

    run: QuestionRun
    path: Path
    question: AskedQuestion
    message: BotMessage
    until: datetime
    remind: datetime | None
    attempts: int = 0

    @property
    def is_open(self) -> bool:
        return self.run.is_open(self.path)

    @property
    def due(self) -> datetime:
        """Return when something happens without an answer."""
        return min(self.until, self.remind or self.until)


@dataclass(slots=True)
class RehearsedPromos:
    """Promo codes, by the rules of the store (`scenarios.stores.promo`). `by_code`: by the codes in capitals."""

    by_code: dict[str, Promo] = field(default_factory=dict)

    def store(self, promo: Promo) -> Promo:
        """Store a code; return it, or the same one of an earlier step. Raises Conflict PROMO_TAKEN."""
        known = self.by_code.setdefault(promo.code.upper(), structs.replace(promo, id=len(self.by_code) + 1))
        if (known.name, known.user_id) != (promo.name, promo.user_id):
            raise Conflict("PROMO_TAKEN", sentence("code_belongs_another_promo", name=known.code))
        return known

    def free(self, code: str) -> str:
        """Return a sample of a random code that no promo has yet."""
        return next(one for n in count(1) if (one := code if n == 1 else f"{code}-{n}") not in self.by_code)

    def find(self, code: str) -> Promo | None:
        return self.by_code.get(code.strip().upper())

    def with_id(self, number: int | None) -> Promo | None:
        return next((one for one in self.by_code.values() if one.id == number), None)

    def change(self, promo: Promo, changed: Promo) -> Promo:
        """Replace a promo, perhaps under another code. Raises Conflict PROMO_TAKEN."""
        if changed.code.upper() != promo.code.upper() and self.find(changed.code):
            raise Conflict("PROMO_TAKEN", sentence("code_belongs_another_promo", name=changed.code))
        kept = {code: one for code, one in self.by_code.items() if one.id != promo.id}
        self.by_code = {**kept, changed.code.upper(): changed}
        return changed


@dataclass(slots=True)
class Memory:
    """`now`: the clock. `said`: all messages in the order in which they are ordered. `failures`: what failed, and why.
    `forms`: form → person and name of the row → question → answer. `promos`: None in a dry run of one event, which
    cannot know them. `selections`: by list.
    """

    now: datetime
    zone: tzinfo = UTC
    variables: dict[Owner, dict[str, tuple[Data, int]]] = field(default_factory=dict)
    states: dict[tuple[str, str], tuple[str, datetime]] = field(default_factory=dict)
    questions: list[OpenQuestion] = field(default_factory=list)
    forms: dict[str, dict[tuple[str, str], dict[str, Data]]] = field(default_factory=dict)
    people: dict[str, Event] = field(default_factory=dict)
    said: list[SaidMessage] = field(default_factory=list)
    started: set[str] = field(default_factory=set)
    failures: list[str] = field(default_factory=list)
    promos: RehearsedPromos | None = None
    selections: dict[str, AddresseeSelection] = field(default_factory=dict)

    @property
    def has_conversation(self) -> bool:
        """Return whether this is a test or a chat, and not a dry run of one event."""
        return self.promos is not None

    def state(self, event: Event) -> str:
        """Return the state of the event's person, "" without one."""
        state, until = self.states.get(_person(event), ("", self.now))
        return state if until > self.now else ""

    def set_state(self, event: Event, state: str, lifetime: timedelta) -> None:
        self.states[_person(event)] = (state, self.now + lifetime)

    def seen(self, bot: Bot, event: Event) -> dict[str, dict[str, Data]]:
        """Return what actions see of the declared variables. What the event has of them is taken for their values."""
        found = {}
        for scope in scopes_of(bot.declared):
            stored = self.variables.get(_owner(scope, event), {})
            values = {name: value for name, (value, until) in stored.items() if not is_past(until, to_ms(self.now))}
            given = event.get(scope)
            found[scope] = {**defaults(bot.declared, scope), **values, **(given if isinstance(given, Mapping) else {})}
        return found

    def change(self, event: Event, change: Change) -> Data:
        """Change a variable; return its value, None without one. Raises Refused as the store does."""
        stored = self.variables.setdefault(_owner(change.scope, event), {})
        value, until = stored.get(change.name, (None, 0))
        new = applied(change, None if is_past(until, to_ms(self.now)) else value)
        if new is None:
            stored.pop(change.name, None)
        else:
            stored[change.name] = (new, to_ms(self.now) + change.expire * 1000 if change.expire else 0)
        return new

    def note_answer(self, form: str, event: Event, name: str, value: Data, row: str = "") -> None:
        person = f"{event.get('channel', '')}:{event.get('user_id', '')}"
        self.forms.setdefault(form, {}).setdefault((person, row), {})[name] = value

    def delete_row(self, form: str, person: str, row: str) -> bool:
        """Delete a row of a form; return whether there was one."""
        return self.forms.get(form, {}).pop((person, row), None) is not None

    def open_question(self, event: Event) -> OpenQuestion | None:
        """Return the question that the event's person was asked last in this chat."""
        found = (one for one in reversed(self.questions) if _chat(one.run.event) == _chat(event))
        last = next(found, None)
        return last if last and last.is_open else None

    def next_due(self) -> OpenQuestion | None:
        """Return the open question with which something happens first without an answer."""
        return min((one for one in self.questions if one.is_open), key=lambda one: one.due, default=None)


def _person(event: Event) -> tuple[str, str]:
    return str(event.get("channel", "")), str(event.get("user_id", ""))


def _chat(event: Event) -> tuple[str, str, str]:
    return (*_person(event), str(event.get("chat_id") or event.get("user_id", "")))


def _owner(scope: str, event: Event) -> Owner:
    channel, person, chat = ("-", "bot", "bot") if scope == "bot" else _chat(event)
    return scope, channel, chat if scope == "chat" else person
