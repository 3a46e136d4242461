"""Loads a bot's folder: files → nodes → `Bot`, with all problems that were found on the way."""

import os
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from core.errors import SetupError
from core.model.people import DEFAULT_LOCALE
from scenarios.bot import Bot, Place, Scenario
from scenarios.bot.data import Data
from scenarios.bot.nodes import MapNode, Node, plain_mapping
from scenarios.loader.bot_files import read_bot_file, read_settings_file, read_variables
from scenarios.loader.files import BOT, GROUP_TRIGGERS, SCHEDULE, SETTINGS, TRIGGERS, VARIABLES, Folder
from scenarios.loader.reading import Problem, Problems, Reader
from scenarios.loader.scenario_files import ScenarioFiles, report_later, with_goals
from scenarios.loader.trigger_files import read_schedules, read_triggers
from scenarios.words import sentence


class Loaded(Struct, frozen=True):
    """A bot, and what is wrong in its files. `bot` has everything that could be read.

    `actions`: a scenario's full name → the nodes of its actions, one for each. `settings`: the node of settings.yaml.
    `unread`: the files that could not be read.
    """

    folder: Path
    bot: Bot
    problems: tuple[Problem, ...]
    actions: Mapping[str, tuple[MapNode, ...]]
    settings: Node | None
    unread: frozenset[str] = frozenset()

    @property
    def has_errors(self) -> bool:
        return any(problem.is_error for problem in self.problems)


def load(path: Path, environment: Mapping[str, str] | None = None) -> Loaded:
    """Read the folder once. Any content gives a bot and problems; `environment` fills `${NAME}`, by default the
    process's own. Raises SetupError if there is no such folder.
    """
    if not path.is_dir():
        raise SetupError(f"{path} is not a folder; a bot is a folder with triggers.yaml and scenarios/")
    if not os.access(path, os.R_OK | os.X_OK):
        raise SetupError(f"{path} cannot be read; give this user the right to read the folder")
    problems, environment = Problems(), os.environ if environment is None else environment
    folder = Folder(path, environment, problems)
    texts = folder.texts_by_language()
    folder.texts, folder.languages = next(iter(texts.values()), {}), tuple(texts)
    read = read_scenarios(folder, problems)
    settings = folder.read(SETTINGS)
    bot = read_bot(folder, read, settings, problems)
    bot = replace(bot, translations={language: translated(path, environment, texts[language]) for language in texts})
    folder.report_unknown_files()
    found = tuple(problems.in_order())
    return Loaded(path, bot, found, read.nodes, settings, frozenset(problems.unread))


def translated(path: Path, environment: Mapping[str, str], texts: Mapping[str, str]) -> Mapping[str, Scenario]:
    """Return the scenarios with the texts of one language. What is wrong with them is found in the first language."""
    problems = Problems()
    folder = Folder(path, environment, problems)
    folder.texts = texts
    return read_bot(folder, read_scenarios(folder, problems), None, problems).scenarios


def read_scenarios(folder: Folder, problems: Problems) -> ScenarioFiles:
    scenarios = ScenarioFiles(problems)
    for file in folder.scenario_files():
        scenarios.add(file, folder.read(file))
    report_later(scenarios.later, problems)
    if not scenarios.scenarios and not problems.unread:
        problems.warning(Place("scenarios"), "NO_SCENARIOS", sentence("bot_has_no_scenarios"))
    return scenarios


def read_bot(folder: Folder, scenarios: ScenarioFiles, settings: Node | None, problems: Problems) -> Bot:
    declared = read_variables(Reader(VARIABLES, problems), folder.read(VARIABLES))
    named = Bot(scenarios=scenarios.scenarios, short_names=scenarios.short_names(), declared=declared)
    named = replace(named, scenarios={one.name: with_goals(one, named) for one in named.scenarios.values()})
    own = read_bot_file(Reader(BOT, problems), folder.read(BOT))
    later_commands, later_roles = read_settings_file(Reader(SETTINGS, problems), settings)
    return Bot(
        scenarios=named.scenarios,
        short_names=named.short_names,
        triggers=read_triggers(TRIGGERS, folder.read(TRIGGERS), named, problems),
        group_triggers=read_triggers(GROUP_TRIGGERS, folder.read(GROUP_TRIGGERS), named, problems),
        commands=(*own.commands, *later_commands),
        roles={**later_roles, **own.roles},
        timezone=own.timezone,
        language=own.language or next(iter(folder.languages), DEFAULT_LOCALE),
        settings=settings_of(settings),
        declared=declared,
        schedules=read_schedules(Reader(SCHEDULE, problems), folder.read(SCHEDULE), named),
        variables=folder.variables,  # when all files are read
    )


def settings_of(node: Node | None) -> Mapping[str, Data]:
    return plain_mapping(node) if isinstance(node, MapNode) else {}
