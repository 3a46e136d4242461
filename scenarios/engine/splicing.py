"""The actions `scenario`, `for_each` and `branch`: find the scenarios that they name (C-33 to C-35, C-94). Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from scenarios.bot import Bot
from scenarios.engine import Ending, Splice, State, Step, Values
from scenarios.engine.results import failed, skipped

ITEM = "item"
MOST_ITEMS = 100


def splice(bot: Bot, step: Step, own: Mapping[str, Any]) -> Ending:
    """Splices in the scenarios that exist; with an unknown name the action fails. `own`: the action's attributes.

    A list of names makes branches.
    """
    named = own.get("value") or own.get("name") or []
    names = [str(name) for name in named] if isinstance(named, list) else [str(named)]
    caller = bot.scenarios.get(step.scenario)
    found = [bot.find(name, caller) for name in names]
    errors = [unknown_scenario(bot, name) for name, one in zip(names, found, strict=True) if one is None]
    known = tuple(one for one in found if one is not None)
    parameters = own.get("with")
    given = (dict(parameters),) * len(known) if isinstance(parameters, Mapping) and parameters else ()
    inserted = Splice(known, isinstance(named, list), given)
    return Ending(State.FAILED if errors else State.COMPLETED, error="; ".join(errors), splice=inserted)


def for_each(bot: Bot, step: Step, own: Mapping[str, Any], items: Sequence[Any]) -> Ending:
    """Splices in the scenario once for each item, side by side; with an unknown name the action fails."""
    name = str(own.get("scenario") or "")
    scenario = bot.find(name, bot.scenarios.get(step.scenario))
    if scenario is None:
        return failed(unknown_scenario(bot, name))
    parameters = own.get("with") if isinstance(own.get("with"), Mapping) else {}
    word = str(own.get("as") or ITEM)
    given = tuple({**(parameters or {}), word: item, "number": n} for n, item in enumerate(items, 1))
    spliced = Splice((scenario,) * len(items), parallel=True, given=given)
    return Ending(State.COMPLETED, Values({"count": len(items)}), splice=spliced)


def branch(bot: Bot, step: Step, name: str) -> Ending:
    """Splices in the scenario of this name; with "" the action ends as drop, because no case applies."""
    return splice(bot, step, {"value": name}) if name else skipped("no case applies, and there is no `otherwise`")


def unknown_scenario(bot: Bot, name: str) -> str:
    """Return the complaint about a name that no scenario has, or several."""
    if several := bot.short_names.get(name):
        return f"several scenarios are called {name!r}: {', '.join(several)}"
    return f"there is no scenario {name!r}"
