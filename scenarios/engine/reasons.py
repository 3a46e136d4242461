"""Describes in words why an action was released or dropped (C-39). Pure."""

from collections.abc import Mapping

from scenarios.engine import Cause, Path, Run, Step
from scenarios.engine.graph import words


def explain(step: Step, numbers: Mapping[Path, int], run: Run) -> str:
    """Return what released or dropped a step, in words, and the error if it failed."""
    ending = step.ending
    error = ending.error if ending is not None else ""
    return _cause(step, numbers, run) + (f"; {error}" if error else "")


def _cause(step: Step, numbers: Mapping[Path, int], run: Run) -> str:
    if step.cause is Cause.UNCHAINED:
        return "it has no chain, so it runs at once"
    if step.cause is Cause.FIRST or step.caused_by is None:
        return "it has a chain, but no action is before it"
    before = f"action {numbers[step.caused_by]} ended as {run.steps[step.caused_by].state}"
    if step.cause is Cause.CUT:
        return f"{before}, which its chain_drop names"
    return f"{before}; the chain is {words(step.action.chain or frozenset())}"
