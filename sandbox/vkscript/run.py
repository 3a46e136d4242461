"""One run of a program: its variables, its calls to the API, and its limits."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from sandbox.vkscript.errors import RunError

Value: TypeAlias = bool | int | float | str | list["Value"] | dict[str, "Value"] | None
Call: TypeAlias = Callable[[str, Mapping[str, Value]], Value]

MOST_CALLS = 25
MOST_STEPS = 200_000
LONGEST_TEXT = 1_000_000


class Run:
    """The state of one run; `call` answers `API.section.method({…})` by name and parameters."""

    def __init__(self, call: Call) -> None:
        self.variables: dict[str, Value] = {}
        self._call = call
        self._calls = 0
        self._steps = 0

    def step(self) -> None:
        """Count one operation; raises RunError beyond the limit, so that no loop runs for ever."""
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise RunError("Too many operations")

    def api(self, method: str, parameters: Value) -> Value:
        """Make one API call; raises RunError for the 26th."""
        self._calls += 1
        if self._calls > MOST_CALLS:
            raise RunError("Too many API calls")
        if not isinstance(parameters, dict):
            raise RunError("Parameters of an API call must be an object")
        return self._call(method, parameters)

    def copied(self, value: Value) -> Value:
        """Copy what goes into an array or object: values do not share parts, and what is big costs its size."""
        self.step()
        if isinstance(value, list):
            return [self.copied(item) for item in value]
        if isinstance(value, dict):
            return {name: self.copied(item) for name, item in value.items()}
        return value
