"""The actions `scenario` and `branch`: find the scenarios that they name (C-33 to C-35, C-94). Pure."""

from collections.abc import Mapping
from typing import Any

from scenarios.bot import Bot
from scenarios.engine import Ending, Splice, State, Step
from scenarios.engine.results import skipped


def splice(bot: Bot, step: Step, own: Mapping[str, Any]) -> Ending:
    """Splices in the scenarios that exist; with an unknown name the action fails. `own`: the action's attributes.

    A list of names makes branches.
    """
    named = own.get("value") or own.get("name") or []
    names = [str(name) for name in named] if isinstance(named, list) else [str(named)]
    caller = bot.scenarios.get(step.scenario)
    found = [bot.find(name, caller) for name in names]
    errors = [unknown_scenario(bot, name) for name, one in zip(names, found, strict=True) if one is None]
    inserted = Splice(tuple(one for one in found if one is not None), parallel=isinstance(named, list))
    return Ending(State.FAILED if errors else State.COMPLETED, error="; ".join(errors), splice=inserted)


def branch(bot: Bot, step: Step, name: str) -> Ending:
    """Splices in the scenario of this name; with "" the action ends as drop, because no case applies."""
    return splice(bot, step, {"value": name}) if name else skipped("no case applies, and there is no `otherwise`")


def unknown_scenario(bot: Bot, name: str) -> str:
    """Return the complaint about a name that no scenario has, or several."""
    if several := bot.short_names.get(name):
        return f"several scenarios are called {name!r}: {', '.join(several)}"
    return f"there is no scenario {name!r}"
