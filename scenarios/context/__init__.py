"""What an action gets when it is executed."""

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
