"""The actions `scenario`, `for_each` and `branch`: find the scenarios that they name (C-33 to C-35, C-94). Pure."""

from collections.abc import Mapping, Sequence

from scenarios.bot import Bot
from scenarios.bot.data import Data
from scenarios.engine import Ending, Splice, State, Step, Values
from scenarios.engine.run import failed, skipped
from scenarios.words import Text, sentence, together

ITEM = "item"
MOST_ITEMS = 100


Parameters = Mapping[str, Data]


def splice(bot: Bot, step: Step, named: str | Sequence[str], parameters: Parameters) -> Ending:
    """Splices in the scenarios that exist; with an unknown name the action fails. A list of names makes branches.
    `parameters`: what their actions see besides.
    """
    names = [named] if isinstance(named, str) else named
    caller = bot.scenarios.get(step.scenario)
    found = [bot.find(name, caller) for name in names]
    errors = [unknown_scenario(bot, name) for name, one in zip(names, found, strict=True) if one is None]
    known = tuple(one for one in found if one is not None)
    given = (dict(parameters),) * len(known) if parameters else ()
    inserted = Splice(known, not isinstance(named, str), given)
    return Ending(State.FAILED if errors else State.COMPLETED, error=together(errors), splice=inserted)


def for_each(
    bot: Bot,
    step: Step,
    name: str,
    items: Sequence[Data],
    word: str,
    parameters: Parameters,
    collect: tuple[str, ...] | None = None,
    at_once: int = 0,
) -> Ending:
    """Splices in the scenario once for each item, side by side; with an unknown name the action fails. `word`: the name
    under which its actions see the item. `collect`, `at_once`: as in `Splice`.
    """
    scenario = bot.find(name, bot.scenarios.get(step.scenario))
    if scenario is None:
        return failed(unknown_scenario(bot, name))
    given = tuple({**parameters, word: item, "number": n} for n, item in enumerate(items, 1))
    spliced = Splice((scenario,) * len(items), parallel=True, given=given, collect=collect, at_once=at_once)
    return Ending(State.COMPLETED, Values({"count": len(items)}), splice=spliced)


def branch(bot: Bot, step: Step, name: str) -> Ending:
    """Splices in the scenario of this name; with "" the action ends as drop, because no case applies."""
    return splice(bot, step, name, {}) if name else skipped(sentence("no_case_applies_no"))


def unknown_scenario(bot: Bot, name: str) -> Text:
    """Return the complaint about a name that no scenario has, or several."""
    if several := bot.short_names.get(name):
        return sentence("several_scenarios_called", name=name, words=", ".join(several))
    return sentence("no_scenario", name=name)
