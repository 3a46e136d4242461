"""The actions of a played bot: those of the running one. What asks a service outside of Ada gets a sample, or what the
test says that it returns; and a test may let actions fail.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Protocol

from msgspec import structs

from core.model.clock import from_ms
from scenarios.action_files import actions_of_files
from scenarios.actions import installed_actions, own_actions
from scenarios.bot.data import Data
from scenarios.context import Asking, Context, Waiting
from scenarios.engine import Ending, Values
from scenarios.engine.results import completed
from scenarios.rehearsal import RehearsedStep, play
from scenarios.rehearsal.outcomes import Outcomes
from scenarios.schema import ActionType, Attributes
from scenarios.words import sentence


class Player(Protocol):
    """What happens around the actions of a played bot. `outcomes`: those that are set."""

    outcomes: Outcomes

    async def before_action(self, context: Context, written: Any) -> None:
        """Prepare what an action needs."""

    async def after_action(self, written: Any, found: Ending | Waiting | Asking) -> None:
        """Deliver what an action has ordered."""


class PlayedTypes(Mapping[str, ActionType]):
    """The installed action types, as a played bot executes them."""

    def __init__(self, player: Player) -> None:
        self._types = installed_actions().types
        self._player = player

    def __getitem__(self, name: str) -> ActionType:
        kind = self._types[name]

        async def execute(context: Context, written: Attributes) -> Ending | Waiting | Asking:
            return await self._execute(kind, context, written)

        return structs.replace(kind, execute=execute)

    def __iter__(self) -> Iterator[str]:
        return iter(self._types)

    def __len__(self) -> int:
        return len(self._types)

    async def _execute(self, kind: ActionType, context: Context, written: Any) -> Ending | Waiting | Asking:
        outcomes = self._player.outcomes
        if (set_by_test := outcomes.of(context.step)) is not None:
            return set_by_test
        given = outcomes.returned(context.step)
        if given is not None or kind.is_outside or kind.execute is None or _is_of_package(kind):
            return await _sample(kind, context, written, given)
        await self._player.before_action(context, written)
        found: Ending | Waiting | Asking = await kind.execute(context, written)
        await self._player.after_action(written, found)
        return replace(found, is_new=False) if isinstance(found, Waiting) else found


def _is_of_package(kind: ActionType) -> bool:
    return kind.name not in own_actions() and kind.name not in actions_of_files()


async def _sample(kind: ActionType, context: Context, written: Any, given: Mapping[str, Data] | None) -> Ending:
    if kind.simulate:
        ending: Ending = await kind.simulate(context, written, given)
        return ending
    if given is None and kind.rehearse is None and kind.name not in own_actions():
        context.warn(sentence("installed_package_did_not", name=kind.name))
    now, zone = from_ms(context.services.now_ms()), context.services.timezone
    step = RehearsedStep(context.bot, kind, context.step, context.event, context.prepared, now, zone)
    ending = play(step) or completed()
    if not given:
        return ending
    from_person = ending.returned.from_person & given.keys()
    return replace(ending, returned=ending.returned.and_then(Values(given, from_person=from_person)))
