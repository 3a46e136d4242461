"""The usual endings of an executed action. Pure; shared by the actions and the dry run."""

from collections.abc import Iterable, Mapping

from scenarios.bot.data import Data
from scenarios.engine import Ending, State, Values
from scenarios.words import Text


def completed(results: Mapping[str, Data] | None = None, from_person: Iterable[str] = ()) -> Ending:
    """Return the action completed with these results. `from_person`: the names of those that a person has written."""
    return Ending(State.COMPLETED, Values(results or {}, from_person=frozenset(from_person)))


def failed(error: Text) -> Ending:
    """Return the action failed; later actions see the error as `{error}`."""
    return Ending(State.FAILED, error=error)


def skipped(reason: Text) -> Ending:
    """Return the ending of an action that does not apply: it ends as drop, and `show RUN` has the reason."""
    return Ending(State.DROP, error=reason)


def unknown(error: Text, results: Mapping[str, Data] | None = None) -> Ending:
    """Return the ending of an action that may have done what it should; later actions see the error as `{error}`."""
    return Ending(State.UNKNOWN, Values(results or {}), error)
