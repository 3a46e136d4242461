"""The tests of a bot: files in `tests/` beside its scenarios, played without a server (C-99).

a student signs up:
  at: 2026-12-01 09:00
  steps:
    - user: /start
    - bot: What is your name?
    - wait: 1d
    - bot: {contains: name}
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, tzinfo
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct

from core.model.text.text_marks import plain_text
from scenarios.bot import Bot, Place
from scenarios.bot.data import Data
from scenarios.bot.durations import read_duration
from scenarios.bot.nodes import MapNode, Node, plain, plain_mapping
from scenarios.bot.suggestion import did_you_mean
from scenarios.bot.variables import split_name
from scenarios.check.rehearsal.conversation import ACTS, Conversation, NoSuchButton
from scenarios.check.rehearsal.rehearsal import Outcomes
from scenarios.loader.composer import compose
from scenarios.loader.files import decoded
from scenarios.loader.problem import Problem, Problems
from scenarios.placeholders.values import as_moment, as_text
from scenarios.rehearsal.memory import Memory, SaidMessage
from scenarios.schema.validator import as_list, complaint
from scenarios.schema.variables import VariableFault, change_of
from scenarios.words import SentenceError

FOLDER = "tests"
PERSON = "7"
FIRST_MOMENT = datetime(2026, 1, 1, 9, tzinfo=UTC)
FIELDS = ("at", "channel", "variables", "fail", "unknown", "returns", "steps")
STEPS = (*ACTS, "bot", "wait", "variables", "form", "fail", "returns")
_EXPECTED = {"contains": "contains", "matches": "regex", "starts_with": "starts_with"}


class BotTestVerdict(Struct, frozen=True):
    """The result of a test. `problem`: why it failed, "" if it passed; `place`: of the step."""

    name: str
    place: Place
    problem: str = ""


class _Failed(SentenceError):
    """The bot did not do what the step says."""


def run_tests(folder: Path, bot: Bot, zone: tzinfo = UTC) -> tuple[list[BotTestVerdict], list[Problem]]:
    """Play all tests of a bot's folder; return their verdicts, and what is wrong in the files."""
    problems, verdicts = Problems(), []
    for path in sorted((folder / FOLDER).rglob("*.yaml")):
        file = path.relative_to(folder).as_posix()
        root = compose(decoded(path, folder), file, problems, lambda text, place: text)
        for name, node in root.pairs if isinstance(root, MapNode) else ():
            if isinstance(node, MapNode):
                verdicts.append(_Test(bot, name.text, file, node, zone).verdict())
            else:
                verdicts.append(BotTestVerdict(name.text, Place(file, name.line, name.column), "a test is a mapping"))
    return verdicts, problems.in_order()


class _Test:
    """One test. `_heard`: how many messages of the bot the steps so far have named."""

    def __init__(self, bot: Bot, name: str, file: str, node: MapNode, zone: tzinfo) -> None:
        self._name = name
        self._file = file
        self._node = node
        self._zone = bot.zone(zone)
        self._bot = bot
        self._at = Place(file, node.line, node.column)
        self._heard = 0
        self._talk = Conversation(bot, Memory(FIRST_MOMENT, self._zone))

    def verdict(self) -> BotTestVerdict:
        try:
            self._prepare(plain_mapping(self._node))
            steps = self._node.get("steps")
            for step in getattr(steps, "items", ()):
                self._at = Place(self._file, step.line, step.column)
                self._play(step)
            self._nothing_more()
        except (_Failed, NoSuchButton, VariableFault) as reason:
            return BotTestVerdict(self._name, self._at, str(reason))
        return BotTestVerdict(self._name, self._at)

    def _prepare(self, given: Mapping[str, Any]) -> None:
        _known(given, FIELDS, "a test")
        if (at := given.get("at")) is not None:
            moment = as_moment(at, self._zone)
            if moment is None:
                raise _Failed(f"at: {at!r} is no moment, such as 2026-12-01 09:00")
            self._talk.memory.now = moment if moment.tzinfo else moment.replace(tzinfo=self._zone)
        self._talk.channel = str(given.get("channel") or self._talk.channel)
        self._talk.outcomes = _outcomes(given)
        event = {"channel": self._talk.channel, "user_id": PERSON, "chat_id": PERSON}
        for name, value in (given.get("variables") or {}).items():
            self._talk.memory.change(event, change_of(str(name), value, self._bot.declared, self._zone))

    def _play(self, node: Node) -> None:
        step = plain(node)
        if not isinstance(step, Mapping):
            raise _Failed("a step is a mapping, such as `user: /start`")
        _known(step, (*STEPS, "as", "in", "channel"), "a step")
        usual, self._talk.channel = self._talk.channel, str(step.get("channel") or self._talk.channel)
        self._talk.group = str(step.get("in") or "")
        for name, act in self._acts().items():
            if name in step:
                act(step[name], str(step.get("as") or PERSON))
        self._talk.channel = usual

    def _acts(self) -> Mapping[str, Callable[[Any, str], None]]:
        return {
            "fail": self._fail,
            "returns": self._return,
            **{what: partial(self._do, what) for what in ACTS},
            "wait": self._wait,
            "bot": self._expect,
            "variables": self._compare_variables,
            "form": self._compare_form,
        }

    def _do(self, what: str, given: Any, person: str) -> None:
        self._nothing_more()
        self._talk.act(what, given, person)

    def _wait(self, duration: Data, _: str) -> None:
        self._nothing_more()
        found = read_duration(duration)
        if found is None:
            raise _Failed(f"{duration!r} is no duration, such as 1d 2h")
        self._talk.wait(found)

    def _fail(self, names: Data, _: str) -> None:
        self._talk.outcomes = Outcomes([str(one) for one in as_list(names)], (), self._talk.outcomes.returns)

    def _return(self, results: Any, _: str) -> None:
        self._talk.outcomes = Outcomes(self._talk.outcomes.fail, self._talk.outcomes.unclear, results or {})

    def _expect(self, expected: Any, _: str) -> None:
        for one in expected if isinstance(expected, list) else [expected]:
            said = next(iter(self._new()), None)
            if said is None:
                raise _Failed(f"the bot says nothing; expected {one!r}")
            self._heard += 1
            if difference := _difference(one, said):
                raise _Failed(difference)

    def _compare_variables(self, expected: Any, person: str) -> None:
        event = {"channel": self._talk.channel, "user_id": person, "chat_id": person}
        seen = self._talk.memory.seen(self._bot, event)
        for name, value in expected.items():
            parts = split_name(str(name))
            if parts is None or name not in self._bot.declared:
                raise _Failed(did_you_mean(f"there is no variable {name!r}", str(name), self._bot.declared))
            found = seen[parts[0]].get(parts[1])
            if found != value and as_text(found) != as_text(value):
                raise _Failed(f"{name} is {found!r}, expected {value!r}")

    def _compare_form(self, expected: Any, person: str) -> None:
        about = f"{self._talk.channel}:{person}"
        for form, answers in expected.items():
            rows = self._talk.memory.forms.get(str(form), {})
            found = [{"row": row, **values} for (one, row), values in rows.items() if one == about]
            wanted = answers if isinstance(answers, list) else [answers]
            is_short = isinstance(answers, list) and len(answers) != len(found)
            if is_short or any(_differ(row, one) for row, one in zip(found or [{}], wanted, strict=False)):
                raise _Failed(f"the form {form} has {found!r}, expected {answers!r}")

    def _new(self) -> list[SaidMessage]:
        """Return the messages that no step has named, in the order in which they are sent."""
        sent = [one for one in self._talk.memory.said if one.at <= self._talk.memory.now]
        return sorted(sent, key=lambda one: one.at)[self._heard :]

    def _nothing_more(self) -> None:
        if left := self._new():
            raise _Failed(f"the bot also says {_text(left[0])!r}")


def _known(given: Mapping[str, Any], names: tuple[str, ...], what: str) -> None:
    for name in given:
        if name not in names:
            raise _Failed(did_you_mean(f"{what} has no {name!r}", str(name), names))


def _differ(row: Mapping[str, Data], wanted: Mapping[str, Data]) -> bool:
    return any(as_text(row.get(name)) != as_text(value) for name, value in wanted.items())


def _outcomes(given: Mapping[str, Any]) -> Outcomes:
    fail, unclear = ([str(one) for one in as_list(given.get(name))] for name in ("fail", "unknown"))
    return Outcomes(fail, unclear, given.get("returns") or {})


def _text(said: SaidMessage) -> str:
    return plain_text(said.message.text, said.message.mode)


def _difference(expected: Any, said: SaidMessage) -> str:
    """Return what is not as expected; "" if all is."""
    wanted = expected if isinstance(expected, Mapping) else {"text": expected}
    return next((found for name, value in wanted.items() if (found := _unlike(str(name), value, said))), "")


def _unlike(name: str, wanted: Data, said: SaidMessage) -> str:
    """Return how a message differs from one expectation; "" if it does not."""
    text = _text(said)
    if name == "text":
        is_right = as_text(wanted) in (text, said.message.text)
        return "" if is_right else f"the bot says {text!r}, expected {as_text(wanted)!r}"
    if name in _EXPECTED:
        is_right = not complaint({"rule": _EXPECTED[name], "value": wanted}, text, lambda rule: False)
        return "" if is_right else f"the bot says {text!r}, expected a text that {name} {wanted!r}"
    found = _of_message(said, name)
    return "" if found == wanted or as_text(found) == as_text(wanted) else f"{name}: {found!r}, expected {wanted!r}"


def _of_message(said: SaidMessage, name: str) -> Any:
    """Return what else a test may expect of a message."""
    if name == "buttons":
        return [str(one["text"]) for row in said.message.inline for one in row]
    if name in ("to", "channels", "chat"):
        return getattr(said, name)
    raise _Failed(
        did_you_mean(f"a message has no {name!r}", name, ("text", "buttons", "to", "channels", "chat", *_EXPECTED))
    )
