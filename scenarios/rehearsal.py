"""Plays actions for a dry run: samples in place of what providers and the store return (C-89), and the outcomes that
the caller sets. `scenarios.check` plays the bot; `scenarios.testing` runs it.

A `RehearsedStep` is one execution of one step without a server; an action's `rehearse` gets it in place of a `Context`.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo

from core.errors import Refused
from scenarios.bot import Bot
from scenarios.bot.data import Data
from scenarios.engine import ACTION_FAILED, Ending, Step, completed, failed, unknown
from scenarios.engine.graph import node_id
from scenarios.placeholders.attributes import Prepared
from scenarios.schema import ActionType
from scenarios.sending.message import BotMessage
from scenarios.words import Text, sentence

FIRST_MOMENT = datetime(2030, 1, 1, tzinfo=UTC)
"""The clock of a dry run."""

NUMBER = 1
"""The sample of an id."""


@dataclass(slots=True)
class RehearsedStep:
    """`now`: in the bot's `zone`. `sent`: the message that the step has sent. `warnings`: for the author."""

    bot: Bot
    kind: ActionType
    step: Step
    event: Mapping[str, Data]
    prepared: Prepared
    now: datetime = FIRST_MOMENT
    zone: tzinfo = UTC
    sent: BotMessage | None = None
    warnings: list[Text] = field(default_factory=list)

    @property
    def channel(self) -> str:
        return str(self.event.get("channel", ""))

    @property
    def person(self) -> str:
        """The address of the event's person."""
        return str(self.event.get("user_id") or "")

    def echo(self, names: Iterable[str]) -> dict[str, Data]:
        """Return results by name: as the author wrote them, otherwise samples."""
        own = self.prepared.own
        written = {name: own[name] for name in names if own.get(name) not in (None, "")}
        return {name: written.get(name, self.kind.samples.get(name, f"[{name}]")) for name in names}


def play(step: RehearsedStep) -> Ending | None:
    """Return the end of an action, None if it waits."""
    kind = step.kind
    try:
        attributes = kind.converted(step.prepared, step.zone)
        return kind.rehearse(step, attributes) if kind.rehearse else _sample(step)
    except Refused as refusal:
        return kind.refused(refusal)


def _sample(step: RehearsedStep) -> Ending:
    """Return the end of an action that returns what the author wrote, otherwise samples."""
    kind = step.kind
    names = [name for name in kind.returns if name.isidentifier()]
    return completed(step.echo(names), from_person=kind.returns.keys() & kind.from_person)


@dataclass(frozen=True, slots=True)
class Outcomes:
    """By the type of an action or by its name in the graph (`menu.start:2`): which fail, of which it is unknown, and
    what they return.
    """

    fail: Collection[str] = ()
    unclear: Collection[str] = ()
    returns: Mapping[str, Mapping[str, Data]] = field(default_factory=dict)

    def of(self, step: Step) -> Ending | None:
        """Return the end that is set for a step, None for none."""
        names = {step.action.type, node_of(step)}
        if names & set(self.fail):
            return failed(ACTION_FAILED, sentence("outcome_set_failed"))
        return unknown("OUTCOME_UNKNOWN", sentence("outcome_set_unknown")) if names & set(self.unclear) else None

    def returned(self, step: Step) -> Mapping[str, Data] | None:
        """Return what is set that a step returns, None for nothing."""
        return self.returns.get(node_of(step), self.returns.get(step.action.type))


def node_of(step: Step) -> str:
    return node_id(step.scenario, step.path[-1] + 1)
