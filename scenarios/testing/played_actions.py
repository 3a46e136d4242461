"""The actions of a played bot: those of the running one, with those of packages and files. What asks a service outside
of Ada gets what the test says that it returns, otherwise a sample, which is noted; and a test may let actions fail.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Protocol

from msgspec import structs

from core.model.clock import from_ms
from scenarios.actions import own_actions
from scenarios.bot.data import Data
from scenarios.context import Asking, Context, Waiting
from scenarios.engine import Ending, Values, completed
from scenarios.rehearsal import Outcomes, RehearsedStep, play
from scenarios.schema import ActionType, Attributes


class Player(Protocol):
    """Plays the surroundings of the actions of a bot. `outcomes`: those that are set."""

    outcomes: Outcomes

    async def before_action(self, context: Context, written: Attributes) -> None:
        """Prepare what an action needs."""

    async def after_action(self, context: Context, written: Attributes, found: Ending | Waiting | Asking) -> None:
        """Deliver what an action has ordered."""

    def note_sample(self, context: Context) -> None:
        """Note that an action returns a sample, because nothing says what it returns."""


class PlayedTypes(Mapping[str, ActionType]):
    """The action types, as a played bot executes them. `added`: those of packages and files, which really run."""

    def __init__(self, player: Player, added: Mapping[str, ActionType]) -> None:
        self._own = own_actions()
        self._added = added
        self._player = player

    def __getitem__(self, name: str) -> ActionType:
        kind = self._own[name] if name in self._own else self._added[name]
        if kind.execute is None:
            return kind

        async def execute(context: Context, written: Attributes) -> Ending | Waiting | Asking:
            return await self._execute(kind, context, written)

        return structs.replace(kind, execute=execute)

    def __iter__(self) -> Iterator[str]:
        return iter({**self._added, **self._own})

    def __len__(self) -> int:
        return len({**self._added, **self._own})

    async def _execute(self, kind: ActionType, context: Context, written: Attributes) -> Ending | Waiting | Asking:
        outcomes = self._player.outcomes
        if (set_by_test := outcomes.of(context.step)) is not None:
            return set_by_test
        given = outcomes.returned(context.step)
        is_outside = kind.name in self._own and kind.is_outside(written)
        if given is None and is_outside:
            self._player.note_sample(context)
        if given is not None or is_outside:
            return await _sample(kind, context, written, given)
        await self._player.before_action(context, written)
        assert kind.execute is not None
        found: Ending | Waiting | Asking = await kind.execute(context, written)
        await self._player.after_action(context, written, found)
        return replace(found, is_new=False) if isinstance(found, Waiting) else found


async def _sample(kind: ActionType, context: Context, written: Attributes, given: Mapping[str, Data] | None) -> Ending:
    if kind.simulate:
        ending: Ending = await kind.simulate(context, written, given)
        return ending
    now, zone = from_ms(context.services.now_ms()), context.services.timezone
    step = RehearsedStep(context.bot, kind, context.step, context.event, context.prepared, now, zone)
    ending = play(step) or completed()
    if not given:
        return ending
    from_person = ending.returned.from_person & given.keys()
    return replace(ending, returned=ending.returned.and_then(Values(given, from_person=from_person)))
