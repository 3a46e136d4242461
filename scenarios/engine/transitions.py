"""The engine: `begin` makes a run of an event's scenarios, `end` records an outcome and moves what it concerns.

Pure: both return a new run and its effects. Every move is in the table of states.py, and the moves of one call belong
together: the caller stores them in one atomic step (C-21, C-29).

A guard limits how many actions one event may start, and how deep scenarios may splice in others (C-90). Its complaint
names the loop, so that an author finds it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from scenarios.bot import Action, Scenario
from scenarios.bot.data import Data
from scenarios.engine.run import (
    ACTION_FAILED,
    DEFAULT_LIMITS,
    OUTCOMES,
    Cause,
    Effects,
    Ending,
    Path,
    Run,
    RunLimits,
    Splice,
    State,
    Step,
    Values,
    failed,
    may_move,
)
from scenarios.words import Text, in_language, sentence, without_place

_NO_VALUES = Values()


def refusal(steps: Mapping[Path, Step], step: Step, splice: Splice, limits: RunLimits) -> Text:
    """Return why this `scenario` action may not splice; empty if it may."""
    for scenario in splice.scenarios:
        names = [*ancestors(steps, step), scenario.name]
        if len(names) > limits.depth + 1:
            return sentence("scenarios_splice_others_most", text=describe(names), most=limits.depth)
    if complaint := too_many(len(steps), splice.scenarios, limits):
        return sentence(
            "and_also", first=complaint, second=describe([*ancestors(steps, step), splice.scenarios[0].name])
        )
    return ""


def too_many(present: int, scenarios: Sequence[Scenario], limits: RunLimits) -> Text:
    """Return a complaint if these scenarios would make more actions than one event may start."""
    wanted = present + sum(len(scenario.actions) for scenario in scenarios)
    if wanted <= limits.actions:
        return ""
    names = ", ".join(scenario.name for scenario in scenarios)
    return sentence("one_event_would_start", names=names, count=wanted, most=limits.actions)


def ancestors(steps: Mapping[Path, Step], step: Step) -> list[str]:
    """Return the scenarios from the event to this action, each spliced in by the one before."""
    return [steps[step.path[:length]].scenario for length in range(2, len(step.path) + 1, 2)]


def describe(names: Sequence[str]) -> Text:
    """Return the loop that the last name closes, or, without a loop, the whole way."""
    *way, last = names
    if last not in way:
        return sentence("spliced_into_each_other", names=" → ".join(names))
    loop = way[len(way) - 1 - way[::-1].index(last) :]
    return sentence("loop_scenarios", names=" → ".join([*loop, last]))


class IllegalMove(Exception):
    """The table of states has no such transition: the caller has ended an action that was not released."""


def begin(
    scenarios: Sequence[Scenario], limits: RunLimits = DEFAULT_LIMITS, at: int = 0, language: str = ""
) -> tuple[Run, Effects]:
    """Return a run of these scenarios, side by side. Actions without a chain, and first actions, are released (C-24,
    C-26). `language`: that of the person, for `{error}`.

    A scenario for which the limit of actions leaves no room is left out, with a complaint.
    """
    moves = _Moves(Run(limits=limits, language=language), at)
    for number, scenario in enumerate(scenarios):
        if complaint := too_many(moves.size, (scenario,), limits):
            moves.complaints.append(complaint)
        else:
            moves.insert(scenario, (number,))
    return moves.result()


def end(run: Run, path: Path, ending: Ending, at: int = 0) -> tuple[Run, Effects]:
    """Record the outcome of a released action, and release or drop what waits for it.

    An action that has ended keeps its first outcome, and nothing moves a second time (C-29). Raises IllegalMove if the
    action is still held.
    """
    if run.steps[path].is_over:
        return run, Effects()
    moves = _Moves(run, at)
    moves.end(path, ending)
    return moves.result()


class _Moves:
    """The moves of one call, on a copy of the run's steps."""

    def __init__(self, run: Run, at: int) -> None:
        self._run = run
        self._steps = dict(run.steps)
        self._followers = run.followers  # copied where it changes
        self._unfinished = run.unfinished
        self._at = at
        self._released: list[Path] = []
        self._dropped: list[Path] = []
        self.complaints: list[Text] = []

    @property
    def size(self) -> int:
        return len(self._steps)

    def result(self) -> tuple[Run, Effects]:
        run = replace(self._run, steps=self._steps, followers=self._followers, unfinished=self._unfinished)
        return run, Effects(tuple(sorted(self._released)), tuple(sorted(self._dropped)), tuple(self.complaints))

    def end(self, path: Path, ending: Ending) -> None:
        step = self._steps[path]
        language = step.language({"language": self._run.language})
        ending = _with_error(self._guarded(step, ending), language)
        self._move("end", replace(self._steps[path], state=ending.state, ending=ending, ended_at=self._at))
        if ending.splice is not None:
            self._splice(self._steps[path], ending.splice)
        if ending.handler is not None:
            self._insert_handler(self._steps[path], ending.handler)
        self._wake(path)
        for above in (path[:length] for length in range(len(path) - 2, 1, -2)):
            self._insert_next(above)
            if self._has_inner(above):
                self._wake(above)

    def _guarded(self, step: Step, ending: Ending) -> Ending:
        """Return the ending, or a failure in place of a splice that the loop guard refuses (C-90); a handler that it
        refuses is left out.
        """
        if ending.handler and (complaint := refusal(self._steps, step, as_splice(ending), self._run.limits)):
            self.complaints.append(complaint)
            ending = replace(ending, handler=None)
        if ending.splice is None:
            return ending
        if complaint := refusal(self._steps, step, ending.splice, self._run.limits):
            self.complaints.append(complaint)
            return failed("RUN_TOO_LONG", complaint)
        return ending

    def _splice(self, step: Step, splice: Splice) -> None:
        """Insert the scenarios after the action before `step`, and let the next action follow the last one inserted.

        After parallel branches, or none, the next action follows the action before `step` (C-33, C-34). If `step`
        failed, or its own chain_drop ends the chain, the next action stays behind it.
        """
        followers = self._followers.get(step.path, ())
        for number in range(min(splice.at_once or len(splice.scenarios), len(splice.scenarios))):
            self._insert_branch(step, splice, number)
        if step.cuts or step.state is not State.COMPLETED or splice.collect is not None:
            return
        last = None if splice.parallel else _last_path(step.path, splice)
        for path in followers:
            self._follow(path, last, step)

    def _insert_branch(self, step: Step, splice: Splice, number: int) -> None:
        given = splice.given[number] if splice.given else {}
        parameters = Values(variables=given, from_person=frozenset(given))
        self.insert(splice.scenarios[number], (*step.path, number), step, parameters)

    def _insert_next(self, path: Path) -> None:
        """Begin further branches of an action that has only so many at once, as far as others are over."""
        step = self._steps.get(path)
        splice = step.collecting if step else None
        if step is None or splice is None or not splice.at_once:
            return
        begun = {one[len(path)] for one in self._inside(path)}
        open_ = {one[len(path)] for one in self._inside(path) if not self._steps[one].is_over}
        rest = range(len(begun), len(splice.scenarios))
        for number in rest[: splice.at_once - len(open_)]:
            self._insert_branch(step, splice, number)

    def _inside(self, path: Path) -> list[Path]:
        """Return the actions that an action has spliced in, directly or through others."""
        return [one for one in self._steps if len(one) > len(path) and one[: len(path)] == path]

    def insert(
        self, scenario: Scenario, prefix: Path, splicer: Step | None = None, parameters: Values = _NO_VALUES
    ) -> None:
        """Create the actions of a scenario: of the event itself, or in place of the `scenario` action `splicer`."""
        after = splicer.after if splicer else None
        values = splicer.passed_on.and_then(parameters) if splicer else Values()
        given = _given_by(splicer).and_then(parameters) if splicer else Values()
        self._add_actions(scenario, prefix, after, values, given)

    def _insert_handler(self, step: Step, handler: Scenario) -> None:
        """Create the actions for the end of `step`; they see what it passes on, and nothing follows the last of them
        (C-104).
        """
        self._add_actions(handler, _handler_prefix(step), None, step.passed_on, step.passed_on)

    def _add_actions(self, scenario: Scenario, prefix: Path, after: Path | None, values: Values, given: Values) -> None:
        """Create actions, the first behind `after`, each other behind the one before it or that it names."""
        followers = dict(self._followers)
        named: dict[str, Path] = {}
        for number, action in enumerate(scenario.actions):
            path = (*prefix, number)
            if action.after in named:
                after, given = named[action.after], Values()
            self._create(Step(path, scenario.name, action, State.HOLD, after, values, given))
            if after is not None:
                followers[after] = (*followers.get(after, ()), path)
            after, given = path, Values()
            if action.step:
                named[action.step] = path
        self._followers = followers
        for number in range(len(scenario.actions)):
            self._decide((*prefix, number))

    def _create(self, step: Step) -> None:
        """Add a step. One without a chain, or without an action before it, is released at once (C-24, C-26)."""
        held = step.action.chain is not None and step.after is not None
        self._unfinished += 1
        if not held:
            cause = Cause.UNCHAINED if step.action.chain is None else Cause.FIRST
            values = step.values if cause is Cause.UNCHAINED else step.given
            step = replace(step, state=State.PENDING, cause=cause, values=values, moved_at=self._at)
            self._released.append(step.path)
        _check_move("create", None, step.state)
        self._steps[step.path] = step

    def _follow(self, path: Path, last: Path | None, splicer: Step) -> None:
        """Let an action follow `last`, or the action before the splicer, or, without that, none."""
        step = self._steps[path]
        if last is not None:
            step = replace(step, after=last)
        else:
            step = replace(step, after=splicer.after, given=_given_by(splicer).and_then(step.given))
        self._steps[path] = step
        if step.after is not None:
            behind = tuple(one for one in self._followers[splicer.path] if one != path)
            ahead = (*self._followers.get(step.after, ()), path)
            self._followers = {**self._followers, splicer.path: behind, step.after: ahead}
        self._decide(path)

    def _wake(self, path: Path) -> None:
        """Release or drop what waits for an action that has ended."""
        for follower in self._waiting_for(path):
            self._decide(follower)

    def _decide(self, path: Path) -> None:
        """Release or drop a held action, if nothing it waits for is left. A drop is an outcome, too (C-27)."""
        waiting = [path]
        while waiting:
            step = self._steps[waiting.pop()]
            if step.state is not State.HOLD:
                continue
            if step.after is None:
                self._release(step, Cause.FIRST, step.given)
            elif self._steps[step.after].is_over and not self._is_handled(step.after):
                waiting += self._leave_hold(step, self._steps[step.after])

    def _release(self, step: Step, cause: Cause, values: Values, by: Path | None = None) -> None:
        released = replace(step, state=State.PENDING, cause=cause, caused_by=by, values=values, moved_at=self._at)
        self._move("release", released)
        self._released.append(step.path)

    def _leave_hold(self, step: Step, before: Step) -> list[Path]:
        """Release or drop an action after the one before it; returns those that now have to be decided."""
        values = before.passed_on.and_then(self._collected(before)).and_then(step.given)
        if not before.cuts and before.state in (step.action.chain or ()):
            self._release(step, Cause.MATCHED, values, before.path)
            return []
        cause = Cause.CUT if before.cuts else Cause.UNMATCHED
        culprit = before.caused_by if before.cause is Cause.CUT else before.path
        dropped = replace(step, state=State.DROP, cause=cause, caused_by=culprit, values=values, moved_at=self._at)
        self._move("drop", dropped)
        self._dropped.append(step.path)
        return self._waiting_for(step.path)

    def _collected(self, step: Step) -> Values:
        """Return the results of the branches of an action for which the next one waits: of each what it was given, how
        it ended, and what was asked for of the results of its actions, of which later ones replace earlier ones.
        """
        if (splice := step.collecting) is None:
            return _NO_VALUES
        found: list[dict[str, Data]] = [{**given, "outcome": str(State.COMPLETED)} for given in splice.given]
        for path in sorted(self._inside(step.path)):
            one, ending = self._steps[path], self._steps[path].ending
            if ending is None or path[len(step.path)] >= len(found):
                continue
            branch = found[path[len(step.path)]]
            branch |= {name: value for name, value in ending.returned.results.items() if name in (splice.collect or ())}
            if one.state in (State.FAILED, State.UNKNOWN):
                branch["outcome"] = str(State.FAILED)
        return Values({"results": found}, from_person=frozenset({"results"}))

    def _has_inner(self, path: Path) -> bool:
        """Return whether the next action waits for actions that this one has brought into the run."""
        step = self._steps.get(path)
        return step is not None and bool(step.collecting or (step.ending and step.ending.handler))

    def _is_handled(self, path: Path) -> bool:
        """Return whether the actions for which the next one waits are still under way."""
        if not self._has_inner(path):
            return False
        step = self._steps[path]
        prefix = step.path if step.collecting else _handler_prefix(step)
        return any(not self._steps[one].is_over for one in self._inside(path) if one[: len(prefix)] == prefix)

    def _waiting_for(self, path: Path) -> list[Path]:
        """Return the held actions that wait for this one."""
        return [one for one in self._followers.get(path, ()) if self._steps[one].state is State.HOLD]

    def _move(self, verb: str, step: Step) -> None:
        _check_move(verb, self._steps[step.path].state, step.state)
        if step.state in OUTCOMES:
            self._unfinished -= 1
        self._steps[step.path] = step


def _check_move(verb: str, before: State | None, after: State) -> None:
    if not may_move(verb, before, after):
        raise IllegalMove(f"{verb}: {before} to {after}")


def _with_error(ending: Ending, language: str) -> Ending:
    """Return the ending with its `error`, in the language of the person, and its `code` for the chain, if the action
    failed or may have.
    """
    if ending.state not in (State.FAILED, State.UNKNOWN):
        return ending
    said = in_language(without_place(ending.error, ending.code), language or "en")
    told = Values({"error": said, "code": ending.code or ACTION_FAILED}, from_person=frozenset({"error"}))
    return replace(ending, returned=ending.returned.and_then(told))


def _handler_prefix(step: Step) -> Path:
    """Return the path of the handler of a step: it stands behind what the step has spliced in."""
    spliced = step.ending.splice.scenarios if step.ending and step.ending.splice else ()
    return (*step.path, len(spliced))


def as_splice(ending: Ending) -> Splice:
    """Return all scenarios that an ending brings into the run."""
    return Splice((*(ending.splice.scenarios if ending.splice else ()), *((ending.handler,) if ending.handler else ())))


def handled(ending: Ending, action: Action, scenarios: Mapping[str, Scenario]) -> Ending:
    """Return the ending with the scenario that the action has for it: `on_failure` if it failed or may have,
    `otherwise` if it ended as drop by itself (C-104).
    """
    names = {State.FAILED: action.on_failure, State.UNKNOWN: action.on_failure, State.DROP: action.otherwise}
    return replace(ending, handler=scenarios.get(names.get(ending.state, "")))


def _given_by(splicer: Step) -> Values:
    """Return what the `scenario` action itself adds to the values of the action before it."""
    return splicer.given if splicer.ending is None else splicer.given.and_then(splicer.ending.returned)


def _last_path(prefix: Path, splice: Splice) -> Path | None:
    """Return the path of the last action that a splice of one scenario inserts; `None` if it has no actions."""
    count = len(splice.scenarios[-1].actions) if splice.scenarios else 0
    return (*prefix, len(splice.scenarios) - 1, count - 1) if count else None
