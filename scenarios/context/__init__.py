"""The context in which an action is executed."""

from scenarios.context.context import (
    Asking,
    Context,
    ScenarioServices,
    Waiting,
)

__all__ = [
    "Asking",
    "Context",
    "ScenarioServices",
    "Waiting",
]
