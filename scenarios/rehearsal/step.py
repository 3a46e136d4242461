"""One execution of one step without a server. An action's `rehearse` gets it in place of a `Context`."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from core.errors import Refused
from scenarios.bot import Bot
from scenarios.bot.button_data import list_id
from scenarios.bot.data import Data
from scenarios.bot.variables import STORED_SCOPES
from scenarios.engine import Ending, Step, Values
from scenarios.engine.results import completed
from scenarios.placeholders.attributes import Prepared
from scenarios.rehearsal.memory import Memory, OpenQuestion, QuestionRun, SaidMessage
from scenarios.schema import ActionType
from scenarios.schema.questions import AskedQuestion
from scenarios.schema.variables import Change
from scenarios.sending.message import BotMessage
from scenarios.words import Text

FIRST_MOMENT = datetime(2030, 1, 1, tzinfo=UTC)
"""The clock of a dry run."""

NUMBER = 1
"""The sample of an id."""


@dataclass(slots=True)
class RehearsedStep:
    """`run`: the one in which the step is. `given`: what the caller says that the action returns, None for samples.
    `sent`: the message that the step has sent. `warnings`: for the author.
    """

    bot: Bot
    kind: ActionType
    step: Step
    event: Mapping[str, Data]
    prepared: Prepared
    memory: Memory
    run: QuestionRun
    given: Mapping[str, Data] | None = None
    sent: BotMessage | None = None
    warnings: list[Text] = field(default_factory=list)

    @property
    def channel(self) -> str:
        return str(self.event.get("channel", ""))

    @property
    def person(self) -> str:
        """The address of the event's person."""
        return str(self.event.get("user_id") or "")

    @property
    def list_id(self) -> str:
        """The id of the list of options that this step shows."""
        return list_id(f"{self.event.get('id')}:{self.step.path}")

    def taken(self) -> Mapping[str, Data]:
        """Return what the caller says that the action returns, of which the action itself makes its results."""
        given, self.given = self.given, None
        return given or {}

    def echo(self, names: Iterable[str]) -> dict[str, Data]:
        """Return results by name: as the author wrote them, otherwise samples."""
        own = self.prepared.own
        written = {name: own[name] for name in names if own.get(name) not in (None, "")}
        return {name: written.get(name, self.kind.samples.get(name, f"[{name}]")) for name in names}

    def change(self, changes: Iterable[Change]) -> dict[str, dict[str, Data]]:
        """Change variables, of each scope all or none; return their values by scope. Raises Refused as the store
        does.
        """
        found: dict[str, dict[str, Data]] = {}
        before = self.memory.variables
        for change in sorted(changes, key=lambda one: one.scope):
            if change.scope not in found:
                before = {owner: dict(values) for owner, values in self.memory.variables.items()}
            try:
                found.setdefault(change.scope, {})[change.name] = self.memory.change(self.event, change)
            except Refused:
                self.memory.variables = before
                raise
        return {scope: values for scope, values in found.items() if scope in STORED_SCOPES}

    def say(
        self,
        message: BotMessage,
        at: datetime | None = None,
        to: Data = None,
        channels: Data = None,
        to_chat: Mapping[str, Data] | None = None,
    ) -> None:
        """Send a message to the chat of the event or, with `to`, to other people: of whom `to_chat` is one in its chat
        with the bot. `at`: when, by default now.
        """
        self.sent = message
        about = self.event if to_chat is None else to_chat
        chat = "" if to and to_chat is None else f"{about.get('channel', '')}:{_chat_of(about)}"
        self.memory.said.append(SaidMessage(message, at or self.memory.now, chat, to, channels))

    def ask(self, question: AskedQuestion, message: BotMessage) -> None:
        """Send a question, for which the step waits."""
        now = self.memory.now
        remind = now + question.remind if question.remind else None
        asked = OpenQuestion(self.run, self.step.path, question, message, now + question.timeout, remind)
        self.memory.questions.append(asked)
        self.say(message)


def _chat_of(event: Mapping[str, Data]) -> Data:
    return event.get("chat_id") or event.get("user_id", "")


def play(step: RehearsedStep) -> Ending | None:
    """Return the end of an action, None if it waits."""
    kind = step.kind
    try:
        ending = _rehearsed(step)
    except Refused as refusal:
        ending = kind.refused(refusal)
    if ending is None or not step.given:
        return ending
    from_person = ending.returned.from_person & step.given.keys()
    return replace(ending, returned=ending.returned.and_then(Values(step.given, from_person=from_person)))


def _rehearsed(step: RehearsedStep) -> Ending | None:
    kind, attributes = step.kind, step.kind.converted(step.prepared, step.memory.zone)
    return kind.rehearse(step, attributes) if kind.rehearse else play_sample(step)


def play_sample(step: RehearsedStep) -> Ending:
    """Return the end of an action that returns what the author wrote, otherwise samples."""
    kind = step.kind
    names = [name for name in kind.returns if name.isidentifier()]
    return completed(step.echo(names), from_person=kind.returns.keys() & kind.from_person)
