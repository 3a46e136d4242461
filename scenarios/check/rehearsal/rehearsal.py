"""One run of a bot's scenarios over a memory: nothing is sent or written.

The engine, triggers, chains, placeholders, conditions, roles, the validator, variables and questions are those of the
server. What providers would return are samples (`rehearse` of the actions), or what the caller says.
"""

import math
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from msgspec import structs

from scenarios.actions import installed_actions, own_actions
from scenarios.actions.memory import ask
from scenarios.bot import Bot
from scenarios.bot.access import refusal
from scenarios.bot.button_data import PageTurn, pressed_message
from scenarios.bot.data import Data
from scenarios.bot.event_fields import with_derived
from scenarios.engine import Effects, Ending, Path, Run, State, Step, Values, begin, end, handled
from scenarios.engine.graph import node_id
from scenarios.engine.results import completed, failed, skipped, unknown
from scenarios.placeholders.attributes import Prepared, prepare
from scenarios.rehearsal import Memory, RehearsedStep, play
from scenarios.rehearsal.memory import OpenQuestion
from scenarios.schema import ActionType
from scenarios.schema.conditions import unmet
from scenarios.schema.questions import NoAnswer, change_by, interrupts, read_answer
from scenarios.schema.variables import ending_of_changes
from scenarios.sending.message import BotMessage
from scenarios.words import Text, placed, sentence


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The outcomes of actions, by their type or by their name in the graph (`menu.start:2`): which fail, of which it is
    unknown, and what they return instead of samples.
    """

    fail: Collection[str] = ()
    unclear: Collection[str] = ()
    returns: Mapping[str, Mapping[str, Data]] = field(default_factory=dict)


class Rehearsal:
    """One run. `given`: the fields of each action, with placeholders replaced; `sent`: its message."""

    def __init__(self, bot: Bot, event: Mapping[str, Data], memory: Memory, outcomes: Outcomes) -> None:
        self.event: Mapping[str, Data] = with_derived({**event, **memory.seen(bot, event)})
        self.run = Run()
        self.given: dict[Path, Mapping[str, Data]] = {}
        self.sent: dict[Path, BotMessage] = {}
        self.warnings: list[Text] = []
        self._bot = bot
        self._memory = memory
        self._outcomes = outcomes
        self._types = installed_actions().types
        self._ready: list[Path] = []

    def start(self, scenarios: Iterable[str], seconds: float = math.inf) -> None:
        """Play these scenarios until all actions have ended or wait. No action begins later than `seconds` after the
        first.
        """
        found = [scenario for name in scenarios if (scenario := self._bot.find(name))]
        self.run, effects = begin(found)
        self._note(effects)
        self._go_on(seconds)

    def is_for(self, open_question: OpenQuestion, event: Mapping[str, Data]) -> bool:
        """Return whether an event is for the step that asks."""
        step = self._step(open_question.path)
        if interaction := step.kind.interaction:
            return interaction.is_for(step, event)
        self._ask_anew(open_question, step)
        return not interrupts(open_question.question, event)

    def _ask_anew(self, open_question: OpenQuestion, step: RehearsedStep) -> None:
        """Compute the question and its message again, as an answer finds them: days and times pass."""
        open_question.question = ask.question_of(step)
        first_page = PageTurn(step.list_id, 0)
        if shown := ask.rehearsed_page(step, ask.attributes_of(step), open_question.question, first_page):
            open_question.message = shown

    def answer(self, open_question: OpenQuestion, event: Mapping[str, Data]) -> None:
        """Take what a person has written for the answer, or say the hint."""
        step = self._step(open_question.path)
        if step.kind.interaction:
            if ending := step.kind.interaction.rehearse(step, event):
                self.end(open_question.path, ending)
            return
        self._ask_anew(open_question, step)
        asked, zone = open_question.question, self._memory.zone
        try:
            value = read_answer(asked, event, zone)
            change = change_by(asked, value, self._bot, zone)
        except NoAnswer as reason:
            self._refuse(open_question, reason.said)
            return
        seen = self._prepared(self.run.steps[open_question.path]).seen
        ending = ending_of_changes([change], seen, {}) if change else completed()
        if change:
            self._memory.change(self.event, change)
        if asked.form:
            self._memory.note_answer(asked.form, event, asked.field, value, asked.row)
        told = {"answer": value, "pressed_message_id": pressed_message(event)}
        answer = Values(told, from_person=frozenset({"answer"}))
        self.end(open_question.path, replace(ending, returned=ending.returned.and_then(answer)))

    def _refuse(self, open_question: OpenQuestion, reason: Text) -> None:
        open_question.attempts += 1
        if open_question.attempts >= open_question.question.attempts:
            error = sentence("no_right_answer_attempts", attempts=open_question.attempts, text=reason)
            self.end(open_question.path, failed(error))
        else:
            hint = open_question.question.hint
            self._step(open_question.path).say(structs.replace(open_question.message, text=hint, attachment=None))

    def turn_page(self, open_question: OpenQuestion, turn: PageTurn) -> None:
        """Show another page of the options."""
        step = self._step(open_question.path)
        if shown := ask.rehearsed_page(step, ask.attributes_of(step), open_question.question, turn):
            step.say(shown)

    def is_open(self, path: Path) -> bool:
        return not self.run.steps[path].is_over

    def pass_due(self, open_question: OpenQuestion) -> None:
        """Do what is due without an answer: ask again, or end the question."""
        if self._memory.now >= open_question.until:
            self.end(open_question.path, failed(sentence("no_answer_in_time")))
        elif (every := open_question.question.remind) is not None:
            open_question.remind = self._memory.now + every
            self._step(open_question.path).say(open_question.message)

    def end(self, path: Path, ending: Ending) -> None:
        """End an action that waits, and play what follows."""
        returned = self._prepared(self.run.steps[path]).returned
        self._record(path, replace(ending, returned=returned.and_then(ending.returned)))
        self._go_on()

    def _go_on(self, seconds: float = math.inf) -> None:
        ends = time.monotonic() + seconds
        while self._ready and time.monotonic() < ends:
            path = self._ready.pop(0)
            if (ending := self._execute(self.run.steps[path])) is not None:
                self._record(path, ending)
        if self._ready:
            self.warnings.append(sentence("dry_run_ends_after", seconds=f"{seconds:.0f}"))

    def _record(self, path: Path, ending: Ending) -> None:
        """Note the end of an action, and what it releases."""
        step = self.run.steps[path]
        if ending.state in (State.FAILED, State.UNKNOWN):
            self._memory.failures.append(f"{node_of(step)} {step.action.type} {ending.state}: {ending.error}")
        self.run, effects = end(self.run, path, handled(ending, step.action, self._bot.scenarios))
        self._note(effects)

    def _note(self, effects: Effects) -> None:
        self.warnings += effects.complaints
        self._ready = sorted([*self._ready, *effects.released])

    def _prepared(self, step: Step) -> Prepared:
        kind = self._types[step.action.type]
        language = step.language(self.event)
        action = self._bot.action(step.scenario, step.path[-1], step.action, language)
        return prepare(kind.read(action), kind.section(self._bot.settings), step.values, self.event, self._memory.zone)

    def _execute(self, step: Step) -> Ending | None:
        """Return the end of an action; None if it waits."""
        kind = self._types.get(step.action.type)
        if kind is None:
            return failed(sentence("no_action", name=step.action.type))
        prepared = self._prepared(step)
        self.given[step.path] = prepared.own
        self.warnings += [placed(step.scenario, warning) for warning in prepared.warnings]
        if error := self._obstacle(step, kind):
            return failed(error)
        if reason := unmet(prepared.condition, prepared.seen):
            return replace(skipped(reason), returned=prepared.returned)
        if _is_named(step, self._outcomes.unclear):
            return unknown(sentence("outcome_set_unknown"))
        rehearsed = self._step(step.path)
        ending = play(rehearsed)
        self.warnings += rehearsed.warnings
        if rehearsed.sent:
            self.sent[step.path] = rehearsed.sent
        return ending and replace(ending, returned=prepared.returned.and_then(ending.returned))

    def _step(self, path: Path) -> RehearsedStep:
        step = self.run.steps[path]
        kind = self._types[step.action.type]
        given = self._outcomes.returns.get(node_of(step), self._outcomes.returns.get(kind.name))
        warnings: list[Text] = []
        if not given and not kind.rehearse and kind.name not in own_actions():
            warnings.append(sentence("installed_package_did_not", name=kind.name))
        prepared = self._prepared(step)
        return RehearsedStep(self._bot, kind, step, self.event, prepared, self._memory, self, given, warnings=warnings)

    def _obstacle(self, step: Step, kind: ActionType) -> Text:
        """Return why the action cannot run; empty if it can."""
        if _is_named(step, self._outcomes.fail):
            return sentence("outcome_set_failed")
        settings = kind.section(self._bot.settings)
        if settings.get("enabled") is False:
            return sentence("settings_yaml_switches_action", name=step.action.type)
        return refusal(self._bot.roles, {**settings, **kind.read(step.action).fields}, self.event.get("user_id"))


def node_of(step: Step) -> str:
    return node_id(step.scenario, step.path[-1] + 1)


def _is_named(step: Step, names: Collection[str]) -> bool:
    return step.action.type in names or node_of(step) in names
