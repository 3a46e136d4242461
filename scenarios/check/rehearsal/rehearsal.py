"""One run of a bot's scenarios over a memory: nothing is sent or written.

The engine, triggers, chains, placeholders, conditions, roles, the validator, variables and questions are those of the
server. What providers would return are samples (`scenarios.check.samples`), or what the caller says.
"""

import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from msgspec import structs

from core.errors import Refused
from core.model.clock import to_ms
from core.orders.delivery_times import check_time
from scenarios.actions import installed_actions, own_actions
from scenarios.actions.flow.for_each import items_of
from scenarios.actions.people.user import default_expire
from scenarios.bot import Bot
from scenarios.bot.access import refusal
from scenarios.bot.button_data import PageTurn, list_id
from scenarios.bot.event_fields import with_derived
from scenarios.check.rehearsal.memory import Memory, OpenQuestion, Said
from scenarios.check.samples import Sampled, ending_of, promo_of
from scenarios.context.arguments import count_of, duration_of, moment_of, text_of, whole_of
from scenarios.engine import Effects, Ending, Path, Run, State, Step, Values, begin, end
from scenarios.engine.graph import node_id
from scenarios.engine.results import completed, failed, skipped, unknown
from scenarios.engine.splicing import MOST_ITEMS, branch, for_each, splice
from scenarios.placeholders.attributes import Prepared, prepare
from scenarios.schema import ActionType, validator
from scenarios.schema.conditions import chosen, unmet
from scenarios.schema.questions import NoAnswer, change_by, question_of, read_answer, with_options
from scenarios.schema.variables import VariableFault, changes_of, ending_of_changes
from scenarios.schema.web_requests import method_of, saved
from scenarios.sending.content import refusal_of
from scenarios.sending.message import message
from scenarios.stores.promo import Promo, fault_of, results_of


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The outcomes of actions, by their type or by their name in the graph (`menu.start:2`): which fail, of which it is
    unknown, and what they return instead of samples.
    """

    fail: Collection[str] = ()
    unclear: Collection[str] = ()
    returns: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


class Rehearsal:
    """One run. `given`: the fields of each action, with placeholders replaced; `sent`: its message."""

    def __init__(self, bot: Bot, event: Mapping[str, Any], memory: Memory, outcomes: Outcomes) -> None:
        self.event = with_derived({**event, **memory.seen(bot, event)})
        self.run = Run()
        self.given: dict[Path, Mapping[str, Any]] = {}
        self.sent: dict[Path, Mapping[str, Any]] = {}
        self.warnings: list[str] = []
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

    def answer(self, open_question: OpenQuestion, event: Mapping[str, Any]) -> None:
        """Take what a person has written for the answer, or say the hint."""
        asked, zone = open_question.question, self._memory.zone
        try:
            value = read_answer(asked, event, zone)
            change = change_by(asked, value, self._bot, zone)
        except NoAnswer as reason:
            self._refuse(open_question, str(reason))
            return
        seen = self._prepared(self.run.steps[open_question.path]).seen
        ending = ending_of_changes([change], seen, {}) if change else completed()
        if change:
            self._memory.change(self.event, change)
        if asked.form:
            self._memory.note_answer(asked.form, event, asked.field, value)
        answer = Values({"answer": value}, from_person=frozenset({"answer"}))
        self.end(open_question.path, replace(ending, returned=ending.returned.and_then(answer)))

    def _refuse(self, open_question: OpenQuestion, reason: str) -> None:
        open_question.attempts += 1
        if open_question.attempts >= open_question.question.attempts:
            error = f"no right answer in {open_question.attempts} attempts: {reason}"
            self.end(open_question.path, failed(error))
        else:
            hint = {**open_question.message, "text": open_question.question.hint}
            self._say({name: value for name, value in hint.items() if name != "attachment"})

    def turn_page(self, open_question: OpenQuestion, turn: PageTurn) -> None:
        """Show another page of the options."""
        path = open_question.path
        seen = self._prepared(self.run.steps[path]).seen
        content = message(with_options(seen, open_question.question, turn))
        if content and turn.list_id == self._list_id(path):
            self._say(content)

    def _list_id(self, path: Path) -> str:
        return list_id(f"{self.event.get('id')}:{path}")

    def pass_due(self, open_question: OpenQuestion) -> None:
        """Do what is due without an answer: ask again, or end the question."""
        if self._memory.now >= open_question.until:
            self.end(open_question.path, failed("there was no answer in time"))
        elif (every := open_question.question.remind) is not None:
            open_question.remind = self._memory.now + every
            self._say(open_question.message)

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
            self.warnings.append(f"the dry run ends after {seconds:.0f} s; the other actions were not tried")

    def _record(self, path: Path, ending: Ending) -> None:
        """Note the end of an action, and what it releases."""
        step = self.run.steps[path]
        if ending.state in (State.FAILED, State.UNKNOWN):
            self._memory.failures.append(f"{node_of(step)} {step.action.type} {ending.state}: {ending.error}")
        self.run, effects = end(self.run, path, ending)
        self._note(effects)

    def _note(self, effects: Effects) -> None:
        self.warnings += effects.complaints
        self._ready = sorted([*self._ready, *effects.released])

    def _prepared(self, step: Step) -> Prepared:
        kind = self._types[step.action.type]
        return prepare(kind.read(step.action), kind.section(self._bot.settings), step.values, self.event)

    def _execute(self, step: Step) -> Ending | None:
        """Return the end of an action; None if it waits."""
        kind = self._types.get(step.action.type)
        if kind is None:
            return failed(f"there is no action {step.action.type!r}")
        prepared = self._prepared(step)
        self.given[step.path] = prepared.own
        self.warnings += [f"{step.scenario}: {warning}" for warning in prepared.warnings]
        if error := self._obstacle(step, kind):
            return failed(error)
        if reason := unmet(prepared.condition, prepared.seen):
            return replace(skipped(reason), returned=prepared.returned)
        if _is_named(step, self._outcomes.unclear):
            return unknown("its outcome is set to unknown")
        try:
            ending = _EXECUTORS.get(kind.name, Rehearsal.succeed)(self, step, prepared, kind)
        except Refused as refused:
            ending = failed(f"{refused.code}: {refused.detail}")
        return ending and replace(ending, returned=prepared.returned.and_then(ending.returned))

    def _obstacle(self, step: Step, kind: ActionType) -> str:
        """Return why the action cannot run; empty if it can."""
        if _is_named(step, self._outcomes.fail):
            return "its outcome is set to failed"
        settings = kind.section(self._bot.settings)
        if settings.get("enabled") is False:
            return f"settings.yaml switches the action {step.action.type} off"
        return refusal(self._bot.roles, {**settings, **kind.read(step.action).fields}, self.event.get("user_id"))

    # what runs for real, by type

    def send(self, step: Step, prepared: Prepared, kind: ActionType) -> Ending | None:
        content = message(prepared.seen)
        if content is None:
            return failed("there is nothing to send: no text and no attachment")
        if refused := refusal_of(content):
            return failed(f"{refused.code}: {refused.detail}")
        self.sent[step.path] = content
        delay, memory = duration_of(prepared.own, "delay"), self._memory
        at = memory.now + delay if delay else moment_of(prepared.own, "deliver_at", memory.zone) or memory.now
        check_time(at, memory.now, is_far=bool(prepared.own.get("far")))
        self._say(content, at, prepared.own)
        return self.succeed(step, prepared, kind)

    def ask(self, step: Step, prepared: Prepared, kind: ActionType) -> Ending | None:
        asked = question_of(prepared.own, self._bot, step.path[-1] + 1)
        content = message(with_options(prepared.seen, asked, PageTurn(self._list_id(step.path), 0)))
        if content is None:
            return failed("there is nothing to ask: no text")
        self.sent[step.path] = content
        memory = self._memory
        remind = memory.now + asked.remind if asked.remind else None
        memory.questions.append(OpenQuestion(self, step.path, asked, content, memory.now + asked.timeout, remind))
        self._say(content)
        return None

    def set(self, step: Step, prepared: Prepared, kind: ActionType) -> Ending | None:
        expire = duration_of(prepared.own, "expire")
        seconds = None if expire is None else int(expire.total_seconds())
        try:
            changes = changes_of(prepared.own.get("variables"), self._bot.declared, self._memory.zone, seconds)
        except VariableFault as fault:
            return failed(str(fault))
        for change in changes:
            self._memory.change(self.event, change)
        return ending_of_changes(changes, prepared.seen, {})

    def user(self, step: Step, prepared: Prepared, kind: ActionType) -> Ending | None:
        ending = self.succeed(step, prepared, kind)
        if ending and ending.state is State.COMPLETED:
            lifetime = duration_of(prepared.seen, "expire") or default_expire(self._bot.settings)
            self._memory.set_state(self.event, text_of(prepared.seen, "user_state"), lifetime)
        return ending

    def create_promo(self, step: Step, prepared: Prepared, kind: ActionType) -> Ending | None:
        ending, memory = self.succeed(step, prepared, kind), self._memory
        if memory.promos is None or ending is None or ending.state is not State.COMPLETED or self._given(step):
            return ending
        promo = promo_of(self._sampled(step, prepared, kind), memory.now)
        if not text_of(prepared.own, "promo_code"):
            promo = structs.replace(promo, code=memory.promos.free(promo.code))
        return self._with_promo(memory.promos.store(promo))

    def check_promo(self, step: Step, prepared: Prepared, kind: ActionType) -> Ending | None:
        memory, seen = self._memory, prepared.seen
        if memory.promos is None or self._given(step):
            return self.succeed(step, prepared, kind)
        promo = memory.promos.find(text_of(seen, "promo_code") or text_of(seen, "event_text"))
        name, user = text_of(prepared.own, "promo_name"), text_of(seen, "user_id")
        fault = fault_of(promo, name, user, to_ms(memory.now)) if promo else "there is no such promo code"
        if promo is None or fault:
            return Ending(State.FAILED, Values({"promo_available": False, "reason": fault}), fault)
        found = results_of(promo, memory.zone)
        data = {**found, "user_id": promo.user_id or None}
        return completed({**found, "promo_available": True, "promo_data": data}, ["promo_name", "promo_data"])

    def modify_promo(self, step: Step, prepared: Prepared, kind: ActionType) -> Ending | None:
        memory = self._memory
        if memory.promos is None or self._given(step):
            return self.succeed(step, prepared, kind)
        number = whole_of(prepared.own, "promo_id") or whole_of(prepared.seen, "promo_id")
        if (promo := memory.promos.with_id(number)) is None:
            return failed(f"there is no promo with the id {number}")
        own, written = prepared.own, promo_of(self._sampled(step, prepared, kind), memory.now)
        new_names = {"promo_code": "code", "promo_name": "name", "target_user_id": "user_id", "user_id": "user_id"}
        changes = {field: getattr(written, field) for name, field in new_names.items() if own.get(name)}
        if any(own.get(name) for name in ("started_at", "permanent")):
            changes["starts"] = written.starts
        if any(own.get(name) for name in ("expired_at", "expire", "permanent")):
            changes["ends"] = written.ends
        return self._with_promo(memory.promos.change(promo, structs.replace(promo, **changes)))

    def _with_promo(self, promo: Promo) -> Ending:
        return completed(results_of(promo, self._memory.zone), from_person=["promo_name"])

    def http_request(self, step: Step, prepared: Prepared, kind: ActionType) -> Ending | None:
        method_of(prepared.own)
        ending = self.succeed(step, prepared, kind)
        response = ending.returned.results.get("response") if ending else None
        known = response if isinstance(response, Mapping) else {"status": 200, "body": "[body]", "headers": {}}
        values = Values({"response": known}, from_person=frozenset({"response"}))
        try:
            given = "http_request" in self._outcomes.returns or node_of(step) in self._outcomes.returns
            changes = saved(prepared.own, known, self._bot.declared, self._memory.zone) if given else []
        except VariableFault as fault:
            return Ending(State.FAILED, values, str(fault))
        for change in changes:
            self._memory.change(self.event, change)
        made = ending_of_changes(changes, prepared.seen, {})
        return Ending(made.state, made.returned.and_then(values))

    def validator(self, step: Step, prepared: Prepared, kind: ActionType) -> Ending | None:
        return validator.ending(prepared, lambda rule: True)

    def scenario(self, step: Step, prepared: Prepared, kind: ActionType) -> Ending | None:
        ending = splice(self._bot, step, prepared.own)
        self.warnings += [ending.error] if ending.error else []
        return ending

    def for_each(self, step: Step, prepared: Prepared, kind: ActionType) -> Ending | None:
        given = self._outcomes.returns.get(node_of(step), self._outcomes.returns.get(kind.name, {}))
        group = prepared.own.get("group")
        written = [{"id": 1, "name": "Anna"}] if group else prepared.own.get("items")
        items = items_of(given.get("items", written))
        most = min(count_of(prepared.own, "limit") or MOST_ITEMS, MOST_ITEMS)
        if len(items) > most:
            return failed(f"there are {len(items)} items, at most {most} are allowed")
        return for_each(self._bot, step, prepared.own, items)

    def branch(self, step: Step, prepared: Prepared, kind: ActionType) -> Ending | None:
        return branch(self._bot, step, chosen(prepared.own, prepared.seen))

    def succeed(self, step: Step, prepared: Prepared, kind: ActionType) -> Ending | None:
        ending, given = ending_of(self._sampled(step, prepared, kind)), self._given(step)
        if not given and kind.name not in own_actions():
            self.warnings.append(f"{kind.name} of an installed package did not run: what it returns is a sample")
        return replace(ending, returned=ending.returned.and_then(Values(given))) if given else ending

    def _sampled(self, step: Step, prepared: Prepared, kind: ActionType) -> Sampled:
        return Sampled(kind, prepared, kind.read(step.action).fields, self.event)

    def _given(self, step: Step) -> Mapping[str, Any] | None:
        """Return what the caller says that the action returns."""
        return self._outcomes.returns.get(node_of(step), self._outcomes.returns.get(step.action.type))

    def _say(self, content: Mapping[str, Any], at: Any = None, own: Mapping[str, Any] | None = None) -> None:
        to, own = (own or {}).get("to"), own or {}
        chat = f"{self.event.get('channel', '')}:{self.event.get('chat_id') or self.event.get('user_id', '')}"
        self._memory.said.append(Said(content, at or self._memory.now, "" if to else chat, to, own.get("channels")))


def node_of(step: Step) -> str:
    return node_id(step.scenario, step.path[-1] + 1)


def _is_named(step: Step, names: Collection[str]) -> bool:
    return step.action.type in names or node_of(step) in names


_Execute = Callable[[Rehearsal, Step, Prepared, ActionType], Ending | None]
_EXECUTORS: Mapping[str, _Execute] = {
    "send": Rehearsal.send,
    "ask": Rehearsal.ask,
    "set": Rehearsal.set,
    "user": Rehearsal.user,
    "create_promo": Rehearsal.create_promo,
    "check_promo": Rehearsal.check_promo,
    "modify_promo": Rehearsal.modify_promo,
    "http_request": Rehearsal.http_request,
    "validator": Rehearsal.validator,
    "scenario": Rehearsal.scenario,
    "branch": Rehearsal.branch,
    "for_each": Rehearsal.for_each,
}
