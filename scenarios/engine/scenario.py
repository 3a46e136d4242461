"""What an author wrote, as the engine needs it: scenarios and their actions. Pure and immutable."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scenarios.engine.states import State, outcomes_in

CONTROL_FIELDS = frozenset({"type", "chain", "chain_drop"})
"""The fields of every action that the engine itself obeys; they are no attributes."""


@dataclass(frozen=True, slots=True)
class Action:
    """One action of a scenario.

    `chain`: the outcomes of the action before it with which it runs; `None`: it does not wait. `chain_drop`: the own
    outcomes that drop everything chained after it. `attributes`: all other fields, as written.
    """

    type: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    chain: frozenset[State] | None = None
    chain_drop: frozenset[State] = frozenset()


@dataclass(frozen=True, slots=True)
class Scenario:
    """A list of actions under its full name, `file.name` or `folder.file.name`."""

    name: str
    actions: tuple[Action, ...] = ()


def action_from(fields: Mapping[str, Any]) -> Action:
    """The action of an author's mapping. `chain: false` and an empty list are the same as no chain.

    Raises ValueError if `chain` or `chain_drop` names no outcome.
    """
    return Action(
        type=str(fields.get("type", "")),
        attributes={name: value for name, value in fields.items() if name not in CONTROL_FIELDS},
        chain=outcomes_in(fields["chain"]) if fields.get("chain") else None,
        chain_drop=outcomes_in(fields["chain_drop"]) if fields.get("chain_drop") else frozenset(),
    )
