"""The stored form of a run: its beginning, and one entry for each action that has ended, in order. Pure.

The engine makes the run of these again: the same beginning and the same endings give the same steps, results and moves.
So a step costs one small entry, whatever it releases.
"""

from collections.abc import Iterable

import msgspec
from msgspec import Struct

from core.model.json_form import JsonObject
from scenarios.bot import Bot, Scenario
from scenarios.engine import Effects, Ending, Path, Run, Splice, State, Values, begin, end, handled
from scenarios.words import Sentence, sentence

LARGEST_ENTRY = 256 * 1024
"""Bytes. An action that returns more has failed."""


class RunEntry(Struct, frozen=True, array_like=True):
    """One ending. `at`: ms. `scenarios`: the full names of those that it splices in; None without a splice."""

    path: Path
    state: State
    at: int
    results: JsonObject = {}
    variables: JsonObject = {}
    from_person: tuple[str, ...] = ()
    error: str = ""
    scenarios: tuple[str, ...] | None = None
    parallel: bool = False
    given: tuple[JsonObject, ...] = ()
    said: Sentence | None = None
    collect: tuple[str, ...] | None = None
    at_once: int = 0


def encode(path: Path, ending: Ending, at: int) -> str:
    """Return the entry of an ending, in the form in which it is stored."""
    content = _encoded(path, ending, at)
    if len(content) > LARGEST_ENTRY:
        error = sentence("action_returned_bytes", size=len(content), most=LARGEST_ENTRY)
        content = _encoded(path, Ending(State.FAILED, error=error), at)
    return content.decode()


def _encoded(path: Path, ending: Ending, at: int) -> bytes:
    returned, splice = ending.returned, ending.splice
    names = tuple(scenario.name for scenario in splice.scenarios) if splice else None
    from_person = tuple(sorted(returned.from_person))
    values = returned.results, returned.variables, from_person, str(ending.error)
    said = ending.error if isinstance(ending.error, Sentence) else None
    parallel, given = (splice.parallel, splice.given) if splice else (False, ())
    waits = (splice.collect, splice.at_once) if splice else (None, 0)
    entry = RunEntry(path, ending.state, at, *values, names, parallel, given, said, *waits)
    return msgspec.json.encode(entry, enc_hook=str)


def decode(stored: str) -> RunEntry:
    return msgspec.json.decode(stored, type=RunEntry)


def apply(run: Run, entry: RunEntry, bot: Bot) -> tuple[Run, Effects]:
    """Return the run after an ending."""
    ending = handled(_ending(entry, bot), run.steps[entry.path].action, bot.scenarios)
    return end(run, entry.path, ending, entry.at)


def replay(names: Iterable[str], began: int, entries: Iterable[RunEntry], bot: Bot) -> Run:
    """Return the run that scenarios and endings have made."""
    run, _ = begin(found(names, bot), at=began)
    for entry in entries:
        run, _ = apply(run, entry, bot)
    return run


def found(names: Iterable[str], bot: Bot) -> list[Scenario]:
    """Return the scenarios with these full names, as far as there are such."""
    return [bot.scenarios[name] for name in names if name in bot.scenarios]


def _ending(entry: RunEntry, bot: Bot) -> Ending:
    returned = Values(entry.results, entry.variables, frozenset(entry.from_person))
    named = None if entry.scenarios is None else tuple(found(entry.scenarios, bot))
    splice = None if named is None else Splice(named, entry.parallel, entry.given, entry.collect, entry.at_once)
    return Ending(entry.state, returned, entry.said or entry.error, splice)
