"""Runs all checks over a loaded bot."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from scenarios.action_files import faults
from scenarios.actions import Actions, installed_actions
from scenarios.bot import Bot, Place
from scenarios.check.chains import (
    check_late_answers,
    check_loops,
    check_order,
    check_reachability,
    check_replaced_texts,
    check_sizes,
)
from scenarios.check.messages import MESSAGES, check_attachments, check_message, check_sending, tags_of
from scenarios.check.names import check_compared, check_names, check_reserved, check_texts, check_variables
from scenarios.check.readers import Readers
from scenarios.check.references import References, check_action, check_settings
from scenarios.check.starts import check_event, check_starts, check_triggers, starts_of
from scenarios.check.visible import CheckedStep, Visible
from scenarios.loader import Loaded, Problem, load
from scenarios.loader.files import SETTINGS
from scenarios.loader.reading import Problems, Reader
from scenarios.words import sentence


class Checked(Struct, frozen=True):
    """A bot and all its problems, by file, line and column."""

    bot: Bot
    problems: tuple[Problem, ...]

    @property
    def has_errors(self) -> bool:
        return any(problem.is_error for problem in self.problems)

    @property
    def is_good(self) -> bool:
        """Return whether a running bot may be replaced by this one: a moment that is over was none when it was
        written, and stops no bot.
        """
        return all(problem.code == "IN_THE_PAST" for problem in self.problems if problem.is_error)


def check(folder: Path, environment: Mapping[str, str] | None = None, actions: Actions | None = None) -> Checked:
    """Load the folder and check the bot. Raises SetupError if there is no such folder."""
    loaded = load(folder, environment)
    problems = Problems(loaded.problems, loaded.unread)
    actions = actions or installed_actions()
    for file, why in faults().items():
        problems.error(Place(file), "ACTION_FILE", sentence("action_file_unreadable", file=Path(file).name, why=why))
    references = References(loaded.bot, problems)
    visible = Visible(loaded.bot, actions.types)
    readers = Readers(loaded.bot, actions.types, visible, problems)
    starts, tags = starts_of(loaded.bot, actions.types), tags_of(loaded.bot)
    for step in steps_of(loaded, visible):
        check_action(step, actions, problems)
        references.check(step)
        if kind := actions.types.get(step.action.type):
            readers.check(step, kind)
            check_attachments(step, kind, folder, problems)
            check_texts(step, kind, loaded.bot.settings, problems)
            check_names(step, kind, loaded.bot.settings, problems)
            check_variables(step, kind, loaded.bot, problems)
            check_compared(step, loaded.bot, problems)
            check_reserved(step, loaded.bot, problems)
            check_sending(step, loaded.bot, problems, tags)
            check_event(step, kind, loaded.bot, starts, problems)
        if step.action.type in MESSAGES:
            check_message(step, loaded.bot.settings, problems)
    readers.check_bot()
    check_settings(Reader(SETTINGS, problems), loaded.settings, actions)
    check_triggers(loaded.bot, problems)
    check_reachability(loaded.bot, actions.types, problems)
    check_sizes(loaded.bot, problems)
    check_order(loaded.bot, problems)
    check_late_answers(loaded.bot, actions.types, problems)
    check_replaced_texts(loaded.bot, actions.types, problems)
    check_starts(loaded.bot, actions.types, problems)
    check_loops(loaded.bot, references.splices, problems)
    return Checked(loaded.bot, tuple(problems.in_order()))


def steps_of(loaded: Loaded, visible: Visible) -> Iterator[CheckedStep]:
    for name, nodes in loaded.actions.items():
        scenario = loaded.bot.scenarios[name]
        for action, node, seen in zip(scenario.actions, nodes, visible.seen(scenario), strict=True):
            yield CheckedStep(scenario, action, node, seen)
