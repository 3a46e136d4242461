"""One execution of one step without a server. An action's `rehearse` gets it in place of a `Context`."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo

from core.errors import Refused
from scenarios.bot import Bot
from scenarios.bot.data import Data
from scenarios.engine import Ending, Step
from scenarios.engine.results import completed
from scenarios.placeholders.attributes import Prepared
from scenarios.schema import ActionType
from scenarios.sending.message import BotMessage
from scenarios.words import Text

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
