"""What an action gets when it is executed."""

from scenarios.context.context import (
    Context,
    ScenarioServices,
    Waiting,
)

__all__ = [
    "Context",
    "ScenarioServices",
    "Waiting",
]
