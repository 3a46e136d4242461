"""Replays a recorded run of a Hypothesis state machine: a plain list of rule calls, with the invariants after each."""

from collections.abc import Callable, Sequence
from typing import Any, cast

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine


class Drawn:
    """Stands for `st.data()`: each draw returns the next of the given values."""

    def __init__(self, *values: object) -> None:
        self._values = list(values)

    def draw(self, strategy: st.SearchStrategy[Any], label: object = None) -> Any:
        return self._values.pop(0)


def drawn(*values: object) -> st.DataObject:
    """Return the values that a rule draws, in order."""
    return cast("st.DataObject", Drawn(*values))


class RecordedRun:
    """`with RecordedRun(machine, invariants) as run: run(machine.claim, …)`: checks the invariants after every rule.

    At the end of the block the machine is torn down: it completes all work and checks that nothing is left.
    """

    def __init__(self, machine: RuleBasedStateMachine, invariants: Sequence[Callable[[], None]]) -> None:
        self._machine = machine
        self._invariants = invariants

    def __call__(self, rule: Callable[..., None], *arguments: object, **named: object) -> None:
        rule(*arguments, **named)
        for invariant in self._invariants:
            invariant()

    def __enter__(self) -> "RecordedRun":
        return self

    def __exit__(self, *error: object) -> None:
        self._machine.teardown()
