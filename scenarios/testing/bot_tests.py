"""The tests of a bot: files in `tests/` beside its scenarios, played on a server of their own (C-99, C-110).

a student signs up:
  at: 2026-12-01 09:00
  steps:
    - user: /start
    - bot: What is your name?
    - wait: 1d
    - bot: {contains: name}
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from msgspec import Struct

from core.errors import Refused
from core.model.text.text_marks import plain_text
from core.redis.store import Store
from core.updates.events import person_of
from scenarios.bot import Bot, Place
from scenarios.bot.data import Data, MapNode, Node, plain, plain_mapping
from scenarios.bot.model import split_name
from scenarios.bot.suggestion import did_you_mean
from scenarios.bot.times import read_duration
from scenarios.check import Checked
from scenarios.execution.active_bot import ActiveBot
from scenarios.loader.composer import compose
from scenarios.loader.files import decoded
from scenarios.loader.reading import Problem, Problems
from scenarios.placeholders.values import as_list, as_moment, as_text, is_list
from scenarios.rehearsal import Outcomes
from scenarios.schema.rules import complaint
from scenarios.schema.variables import VariableFault, change_of
from scenarios.stores.forms import ROW, Forms
from scenarios.stores.variables import Variables
from scenarios.testing.conversation import ACTS, Conversation, NoSuchButton
from scenarios.testing.played_bot import NO_JOBS, TENANT, JobsOfBot, PlayedBot, SaidMessage, open_store
from scenarios.words import SentenceError, Text

FOLDER = "tests"
PERSON = "7"
FIRST_MOMENT = datetime(2026, 1, 1, 9, tzinfo=UTC)
FIELDS = ("at", "channel", "variables", "fail", "unknown", "returns", "jobs", "steps")
STEPS = (*ACTS, "bot", "wait", "variables", "form", "fail", "returns", "jobs")
_EXPECTED = {"contains": "contains", "matches": "regex", "starts_with": "starts_with"}


class BotTestVerdict(Struct, frozen=True):
    """The result of a test. `problem`: why it failed, with the actions that failed, "" if it passed; `place`: of the
    step. `samples`: the places of actions that have returned a sample, because the test does not say what they return.
    """

    name: str
    place: Place
    problem: str = ""
    samples: Mapping[Place, Text] = {}


class _Failed(SentenceError):
    """The bot did not do what the step says."""


async def run_tests(folder: Path, bot: Bot, jobs: JobsOfBot = NO_JOBS) -> tuple[list[BotTestVerdict], list[Problem]]:
    """Play all tests of a bot's folder; return their verdicts, and what is wrong in the files. `jobs`:
    those that the bot may start.
    """
    problems, verdicts = Problems(), []
    active = ActiveBot(folder, loaded=Checked(bot, ()))
    async with open_store() as store:
        for path in sorted((folder / FOLDER).rglob("*.yaml")):
            file = path.relative_to(folder).as_posix()
            root = compose(decoded(path, folder), file, problems, lambda text, place: text)
            for name, node in root.pairs if isinstance(root, MapNode) else ():
                if isinstance(node, MapNode):
                    verdicts.append(await _Test(active, name.text, file, node, jobs).verdict(store))
                else:
                    at = Place(file, name.line, name.column)
                    verdicts.append(BotTestVerdict(name.text, at, "a test is a mapping"))
    return verdicts, problems.in_order()


class _Test:
    """One test. `_heard`: how many messages of the bot the steps so far have named."""

    _talk: Conversation

    def __init__(self, active: ActiveBot, name: str, file: str, node: MapNode, jobs: JobsOfBot) -> None:
        self._jobs = jobs
        self._name = name
        self._file = file
        self._node = node
        self._active = active
        self._zone = active.bot.zone(UTC)
        self._at = Place(file, node.line, node.column)
        self._heard = 0

    async def verdict(self, store: Store) -> BotTestVerdict:
        try:
            given = plain_mapping(self._node)
            _known(given, FIELDS, "a test")
            async with PlayedBot.open(store, self._active, self._begin(given), self._zone, self._jobs) as bot:
                self._talk = Conversation(bot)
                problem = await self._problem(given)
                failures = await bot.new_failures() if problem else ()
                return BotTestVerdict(self._name, self._at, "; ".join([problem, *failures]), bot.samples)
        except _Failed as reason:
            return BotTestVerdict(self._name, self._at, str(reason))

    async def _problem(self, given: Mapping[str, Data]) -> str:
        """Play the test; return how it fails, "" if it does not."""
        try:
            await self._prepare(given)
            await self._play_all()
        except (_Failed, NoSuchButton, VariableFault, Refused) as reason:
            return str(reason)
        return ""

    def _begin(self, given: Mapping[str, Data]) -> datetime:
        if (at := given.get("at")) is None:
            return FIRST_MOMENT
        moment = as_moment(at, self._zone)
        if moment is None:
            raise _Failed(f"at: {at!r} is no moment, such as 2026-12-01 09:00")
        return moment if moment.tzinfo else moment.replace(tzinfo=self._zone)

    async def _prepare(self, given: Mapping[str, Data]) -> None:
        self._talk.channel = str(given.get("channel") or self._talk.channel)
        self._bot.outcomes = _outcomes(given)
        await self._play_jobs(given.get("jobs"), PERSON)
        variables, about = Variables(self._bot.services.core.store, TENANT), self._talk.about(PERSON)
        for name, value in _mapping(given.get("variables"), "variables").items():
            change = change_of(name, value, self._active.bot.declared, self._zone)
            await variables.change(f"test:{name}", about, [change])

    async def _play_all(self) -> None:
        for step in getattr(self._node.get("steps"), "items", ()):
            self._at = Place(self._file, step.line, step.column)
            await self._play(step)
        self._nothing_more()

    @property
    def _bot(self) -> PlayedBot:
        return self._talk.bot

    async def _play(self, node: Node) -> None:
        step = plain(node)
        if not isinstance(step, Mapping):
            raise _Failed("a step is a mapping, such as `user: /start`")
        _known(step, (*STEPS, "as", "in", "channel"), "a step")
        usual, self._talk.channel = self._talk.channel, str(step.get("channel") or self._talk.channel)
        self._talk.group = str(step.get("in") or "")
        for name, act in self._acts().items():
            if name in step:
                await act(step[name], str(step.get("as") or PERSON))
        self._talk.channel = usual

    def _acts(self) -> Mapping[str, Callable[[Data, str], Awaitable[None]]]:
        return {
            "fail": self._fail,
            "returns": self._return,
            "jobs": self._play_jobs,
            **{what: partial(self._do, what) for what in ACTS},
            "wait": self._wait,
            "bot": self._expect,
            "variables": self._compare_variables,
            "form": self._compare_form,
        }

    async def _do(self, what: str, given: Data, person: str) -> None:
        self._nothing_more()
        await self._talk.act(what, given, person)

    async def _wait(self, duration: Data, _: str) -> None:
        self._nothing_more()
        found = read_duration(duration)
        if found is None:
            raise _Failed(f"{duration!r} is no duration, such as 1d 2h")
        await self._bot.wait(found)

    async def _fail(self, names: Data, _: str) -> None:
        self._bot.outcomes = Outcomes([str(one) for one in as_list(names)], (), self._bot.outcomes.returns)

    async def _return(self, results: Data, _: str) -> None:
        self._bot.outcomes = Outcomes(self._bot.outcomes.fail, self._bot.outcomes.unclear, _returns(results))

    async def _play_jobs(self, kinds: Data, _: str) -> None:
        """Have steps and effects of jobs return what the test says, in place of their calls."""
        for kind, results in _mapping(kinds, "jobs").items():
            if kind not in self._jobs.kinds:
                raise _Failed(did_you_mean(f"ADA_JOBS has no job {kind!r}", kind, self._jobs.kinds))
            self._bot.of_jobs[kind] = _mapping(results, f"what the job {kind} does")

    async def _expect(self, expected: Data, _: str) -> None:
        for one in _listed(expected):
            said = next(iter(self._bot.said[self._heard :]), None)
            if said is None:
                raise _Failed(f"the bot says nothing; expected {one!r}")
            self._heard += 1
            if difference := _difference(one, said):
                raise _Failed(difference)

    async def _compare_variables(self, expected: Data, person: str) -> None:
        seen = await self._talk.variables(person)
        for name, value in _mapping(expected, "variables").items():
            parts = split_name(name)
            if parts is None or name not in self._active.bot.declared:
                raise _Failed(did_you_mean(f"there is no variable {name!r}", name, self._active.bot.declared))
            found = seen[parts[0]].get(parts[1])
            if found != value and as_text(found) != as_text(value):
                raise _Failed(f"{name} is {found!r}, expected {value!r}")

    async def _compare_form(self, expected: Data, person: str) -> None:
        forms = Forms(self._bot.services.core.store)
        for form, answers in _mapping(expected, "form").items():
            rows = await forms.rows_of(TENANT, form, person_of(self._talk.about(person)))
            found = [{ROW: "", **row.answers} for row in rows]
            wanted = [_mapping(one, f"the form {form}") for one in _listed(answers)]
            is_short = is_list(answers) and len(answers) != len(found)
            if is_short or any(_differ(row, one) for row, one in zip(found or [{}], wanted, strict=False)):
                raise _Failed(f"the form {form} has {found!r}, expected {answers!r}")

    def _nothing_more(self) -> None:
        if left := self._bot.said[self._heard :]:
            raise _Failed(f"the bot also says {_text(left[0])!r}")


def _known(given: Mapping[str, Data], names: tuple[str, ...], what: str) -> None:
    for name in given:
        if name not in names:
            raise _Failed(did_you_mean(f"{what} has no {name!r}", name, names))


def _differ(row: Mapping[str, Data], wanted: Mapping[str, Data]) -> bool:
    return any(as_text(row.get(name)) != as_text(value) for name, value in wanted.items())


def _listed(value: Data) -> Sequence[Data]:
    return value if is_list(value) else [value]


def _mapping(value: Data, what: str) -> Mapping[str, Data]:
    """Return a mapping; an empty one for nothing. Raises `_Failed`."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise _Failed(f"{what} is a mapping, not {value!r}")
    return value


def _outcomes(given: Mapping[str, Data]) -> Outcomes:
    fail, unclear = ([str(one) for one in as_list(given.get(name))] for name in ("fail", "unknown"))
    return Outcomes(fail, unclear, _returns(given.get("returns")))


def _returns(results: Data) -> dict[str, Mapping[str, Data]]:
    return {action: _mapping(one, f"what {action} returns") for action, one in _mapping(results, "returns").items()}


def _text(said: SaidMessage) -> str:
    return plain_text(said.message.text, said.message.mode)


def _difference(expected: Data, said: SaidMessage) -> str:
    """Return what is not as expected; "" if all is."""
    wanted = expected if isinstance(expected, Mapping) else {"text": expected}
    return next((found for name, value in wanted.items() if (found := _unlike(name, value, said))), "")


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
    if name == "chat" and said.to is not None:
        return f"chat: the message was sent with `to`, expected to: {said.to!r}"
    return "" if found == wanted or as_text(found) == as_text(wanted) else f"{name}: {found!r}, expected {wanted!r}"


def _of_message(said: SaidMessage, name: str) -> Data:
    """Return what else a test may expect of a message."""
    if name == "buttons":
        return [str(one["text"]) for row in said.message.inline for one in row]
    if name not in (seen := {"to": said.to, "channels": said.channels, "chat": said.chat}):
        raise _Failed(did_you_mean(f"a message has no {name!r}", name, ("text", "buttons", *seen, *_EXPECTED)))
    return seen[name]
