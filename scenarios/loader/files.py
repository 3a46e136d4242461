"""Loads a bot's folder: files → nodes → `Bot`, with all problems that were found on the way. Every file that cannot be
read is one problem.

Variables of the environment are written `${NAME}`, in capitals. Those of Ada itself (`ADA_…`) are not given to a bot.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from core.errors import SetupError
from core.model.user_files import inner_path
from core.sentence import DEFAULT_LANGUAGE, say, texts_for_people
from scenarios.bot import Bot, Place, Scenario
from scenarios.bot.data import Data, MapNode, Node, is_empty, plain, plain_mapping
from scenarios.bot.suggestion import did_you_mean
from scenarios.loader.bot_files import read_bot_file, read_settings_file, read_variables
from scenarios.loader.composer import Substitute, compose
from scenarios.loader.reading import Problem, Problems, Reader
from scenarios.loader.scenario_files import ScenarioFiles, report_later, with_goals
from scenarios.loader.trigger_files import read_schedules, read_triggers
from scenarios.words import LANGUAGES, sentence

MAX_BYTES = 10_000_000
TRIGGERS, GROUP_TRIGGERS, BOT, SETTINGS = "triggers.yaml", "group_triggers.yaml", "bot.yaml", "settings.yaml"
VARIABLES, SCHEDULE = "variables.yaml", "schedule.yaml"
TEXTS = "texts"
"""The folder of the texts by language."""

KNOWN_FILES = (TRIGGERS, GROUP_TRIGGERS, BOT, SETTINGS, VARIABLES, SCHEDULE)
_VARIABLE = re.compile(r"\$\{([A-Z_][A-Z0-9_]*)\}")
_TEXT = re.compile(r"\{text\.([A-Za-z0-9_]+)\}")
ORGANISATION = "organisation_"
"""Begins the texts of the installation for what it is: a university, a school (docs/bots.md)."""
_DEEPEST_TEXT = 3
"""Texts in texts that are replaced, one in the other."""


class Folder:
    """One bot's folder. Files that are read report into `problems`. `variables`: those that the files have named.
    `texts`: what stands for `{text.NAME}`, in one language. `languages`: those that have texts, the bot's own first.
    """

    def __init__(self, path: Path, environment: Mapping[str, str], problems: Problems) -> None:
        self.variables: dict[str, str] = {}
        self.texts: Mapping[str, str] = {}
        self.languages: tuple[str, ...] = ()
        self.path = path
        self._environment = environment
        self._problems = problems

    def read(self, file: str) -> Node | None:
        """Return the content of a file; None if it is missing, empty or cannot be read."""
        path = self.path / file
        if not path.exists() and not path.is_symlink():
            return None
        before, text = len(self._problems), self._text(path, file)
        root = None if text is None else compose(text, file, self._problems, self._substitute(file))
        has_failed = root is None and any(problem.is_error for problem in self._problems[before:])
        if has_failed or not (isinstance(root, MapNode) or is_empty(root)):
            self._problems.unread.add(file)
        return root

    def scenario_files(self) -> Iterator[str]:
        """Yield the files below scenarios/ in the order of their names. Other files there are reported."""
        folder = self.path / "scenarios"
        if leads_out(folder, self.path):
            self._report_link("scenarios")
            self._problems.unread.add("scenarios")
            return
        for path in sorted(folder.rglob("*")):
            file = path.relative_to(self.path).as_posix()
            if not file.isprintable():  # also a name that is not UTF-8, which could not be printed
                self._problems.warning(Place(ascii(file)), "UNKNOWN_FILE", sentence("file_not_read_because"))
            elif path.suffix == ".yaml" and not path.is_dir():
                yield file
            elif path.suffix == ".yml":
                self._problems.warning(Place(file), "UNKNOWN_FILE", sentence("file_not_read_2"))

    def texts_by_language(self) -> dict[str, Mapping[str, str]]:
        """Return the texts of texts/LANGUAGE.yaml, Russian first. Every language has the same names."""
        found: dict[str, dict[str, str]] = {}
        for language in sorted(LANGUAGES, reverse=True):
            root = self.read(f"{TEXTS}/{language}.yaml")
            if isinstance(root, MapNode):
                found[language] = {key.text: str(plain(value) or "") for key, value in root.pairs}
        names = {name for texts in found.values() for name in texts}
        for language, texts in found.items():
            for name in sorted(names - texts.keys()):
                message = sentence("text_has_no_language", name=name, language=language)
                self._problems.error(Place(f"{TEXTS}/{language}.yaml"), "TEXT_MISSING", message)
        return {language: _organisation(language) | texts for language, texts in found.items()}

    def report_unknown_files(self) -> None:
        """Report YAML files beside the known ones."""
        for path in sorted(self.path.iterdir()):
            if path.suffix in (".yaml", ".yml") and path.name not in KNOWN_FILES and not path.is_dir():
                message = did_you_mean(sentence("file_not_read"), path.name, KNOWN_FILES)
                self._problems.warning(Place(path.name), "UNKNOWN_FILE", message)

    def _text(self, path: Path, file: str) -> str | None:
        try:
            return decoded(path, self.path)
        except UnicodeDecodeError as error:
            before = error.object[: error.start]
            place = Place(file, before.count(b"\n") + 1, error.start - before.rfind(b"\n"))
            self._problems.error(place, "NOT_UTF8", sentence("file_not_utf_from"))
        except LeadsOut:
            self._report_link(file)
        except (OSError, ValueError, RuntimeError) as error:
            self._problems.error(Place(file), "UNREADABLE", sentence("file_cannot_read", why=reason(error)))
        return None

    def _report_link(self, file: str) -> None:
        self._problems.error(Place(file), "LEADS_OUT", sentence("link_out_bot_folder"))

    def _substitute(self, file: str) -> Substitute:
        def substitute(text: str, place: Place) -> str:
            for _ in range(_DEEPEST_TEXT if self.texts else 0):
                text = _TEXT.sub(lambda found: self._text_called(found, place), text)
            return _VARIABLE.sub(lambda found: self._variable(found, file in (BOT, SETTINGS), place), text)

        return substitute

    def _text_called(self, found: re.Match[str], place: Place) -> str:
        if found[1] in self.texts:
            return self.texts[found[1]]
        message = did_you_mean(sentence("no_text_called", name=found[1]), found[1], self.texts)
        self._problems.error(place, "TEXT_MISSING", message)
        return found[1]

    def _variable(self, found: re.Match[str], must_exist: bool, place: Place) -> str:
        name = found[1]
        if name.startswith("ADA_"):
            self._problems.warning(place, "VARIABLE_NOT_SET", sentence("installation", name=name))
        elif name in self._environment:
            self.variables[name] = self._environment[name]
            return self._environment[name]
        elif must_exist:
            self._problems.warning(place, "VARIABLE_NOT_SET", sentence("environment_has_no_variable", name=name))
        return found[0]


def _organisation(language: str) -> dict[str, str]:
    """Return how the installation is called, for `{text.organisation_…}`."""
    codes = (code for code in texts_for_people() if code.startswith(ORGANISATION))
    return {code: say(code, language) for code in codes}


class LeadsOut(Exception):
    """The file is a symbolic link out of the bot's folder."""


def decoded(path: Path, folder: Path) -> str:
    """Return the text of a regular file. Raises LeadsOut, UnicodeDecodeError, and as `content`."""
    return content(path, folder).decode("utf-8-sig")


def leads_out(path: Path, folder: Path) -> bool:
    """Return whether a path is a link out of the folder, or a link in a circle, which leads nowhere."""
    try:
        return inner_path(path, folder) is None
    except (OSError, RuntimeError):
        return True


def content(path: Path, folder: Path) -> bytes:
    """Return the bytes of a regular file in the bot's folder. Raises LeadsOut, OSError, RuntimeError (links in a
    circle); ValueError if it is too large or no file.
    """
    real = inner_path(path, folder)
    if real is None:
        raise LeadsOut
    if not real.is_file() and real.exists():
        raise ValueError(sentence("not_regular_file"))
    if real.stat().st_size > MAX_BYTES:
        raise ValueError(sentence("larger_than_mb", size=MAX_BYTES // 1000000))
    return real.read_bytes()


def reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


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
        language=own.language or next(iter(folder.languages), DEFAULT_LANGUAGE),
        settings=settings_of(settings),
        declared=declared,
        schedules=read_schedules(Reader(SCHEDULE, problems), folder.read(SCHEDULE), named),
        variables=folder.variables,  # when all files are read
    )


def settings_of(node: Node | None) -> Mapping[str, Data]:
    return plain_mapping(node) if isinstance(node, MapNode) else {}
