"""Actions of one's own from files: ADA_ACTIONS=slots.py (C-111).

    @action(returns={"free": "the slots that are free"})
    async def free_slots(call: ActionCall, day: str, most: int = 8) -> dict:
        '''Returns the free slots of a day.'''

A parameter is a field: a text, number or flag by its type, a list or mapping as `Any`; what is returned is seen behind
a chain; an exception lets the action fail with its text. Guarantee: a file that changes is read anew for the next
action; one that cannot be read is named in the log, and what it was before goes on.
"""

import asyncio
import inspect
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Annotated, Any, TypeVar

from msgspec import Struct, defstruct, structs

from core.errors import Invalid
from core.model.clock import from_ms
from scenarios.bot.data import Data
from scenarios.bot.event_fields import Event
from scenarios.context import Context
from scenarios.engine import Ending, completed
from scenarios.schema import ActionType, Attributes, Own
from scenarios.schema.attributes import Anything, Flag, Number, Text, Whole
from scenarios.words import sentence

log = logging.getLogger(__name__)

SETTING = "ADA_ACTIONS"
Function = Callable[..., Any]
F = TypeVar("F", bound=Function)
_TYPES: Mapping[type, Any] = {str: Text, int: Whole, float: Number, bool: Flag}


class ActionCall(Struct, frozen=True):
    """One call. `event`: what the person has written or pressed. `seen`: all that a placeholder of the action sees, as
    `seen["person"]["name"]`. `identity`: names this step of this event: the same if it is repeated after a crash.
    """

    event: Event
    seen: Mapping[str, Data]
    identity: str
    now: datetime


def action(
    returns: Mapping[str, str] | None = None, from_person: tuple[str, ...] = (), name: str = ""
) -> Callable[[F], F]:
    """Make an action of a function. `returns`: result → its meaning. `from_person`: the results that a person has
    written, which are shown as they are. `name`: by default that of the function.
    """

    def declared(function: F) -> F:
        function.__ada_action__ = _type_of(function, name, returns or {}, from_person)  # type: ignore[attr-defined]
        return function

    return declared


def _type_of(function: Function, name: str, returns: Mapping[str, str], from_person: tuple[str, ...]) -> ActionType:
    parameters = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
    fields: list[tuple[str, Any, Any]] = [
        (
            one.name,
            Annotated[_TYPES.get(one.annotation, Anything), Own(f"The parameter {one.name} of {function.__name__}.")],
            None if one.default is one.empty else one.default,
        )
        for one in parameters
    ]
    required = tuple(one.name for one in parameters if one.default is one.empty)

    async def execute(context: Context, written: Attributes) -> Ending:
        prepared, now = context.prepared, from_ms(context.services.now_ms())
        return await ended(ActionCall(context.event, prepared.seen, context.identity, now), written)

    async def ended(call: ActionCall, written: Attributes) -> Ending:
        given = structs.asdict(written)
        if missing := [one for one in required if given[one] is None]:
            raise Invalid("FIELD_INVALID", sentence("parameter_is_missing", name=missing[0]), missing[0])
        is_async = inspect.iscoroutinefunction(function)
        found = await (function(call, **given) if is_async else asyncio.to_thread(function, call, **given))
        return completed(dict(found or {}), from_person=set(from_person))

    kind: Any = defstruct(f"{function.__name__}_attributes", fields, bases=(Attributes,), frozen=True)
    text = inspect.getdoc(function) or function.__name__
    return ActionType(
        name or function.__name__, text, kind, returns, placeholder=True, execute=execute,
        from_person=from_person,
    )  # fmt: skip


class ActionFile(Struct):
    """A file as it was last read well. `changed`: ns, of the last try; `fault`: of it, "" if it was read."""

    changed: int = -1
    types: Mapping[str, ActionType] = {}
    fault: str = ""


_files: dict[Path, ActionFile] = {}


def paths() -> list[Path]:
    return [Path(one.strip()).absolute() for one in os.environ.get(SETTING, "").split(",") if one.strip()]


def actions_of_files() -> dict[str, ActionType]:
    """Return the actions of all files, as they are now."""
    return {name: kind for path in paths() for name, kind in _read(path).types.items()}


def faults() -> dict[str, str]:
    """Return the files that cannot be read, with the reason."""
    return {str(path): fault for path in paths() if (fault := _read(path).fault)}


def _read(path: Path) -> ActionFile:
    known = _files.setdefault(path, ActionFile())
    changed = path.stat().st_mtime_ns if path.is_file() else 0
    if changed != known.changed:
        known.changed = changed
        try:
            known.types, known.fault = _types_in(path), ""
        except Exception as error:  # noqa: BLE001 - an author's file may raise anything
            known.fault = f"{type(error).__name__}: {error}"
            log.error("%s: %s; its actions stay as they were", path, known.fault)
    return known


def _types_in(path: Path) -> dict[str, ActionType]:
    spec = spec_from_file_location(f"ada_actions_{path.stem}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    found = [one.__ada_action__ for one in vars(module).values() if hasattr(one, "__ada_action__")]
    if not found:
        raise ValueError("it has no function with @action()")
    return {one.name: one for one in found}


class LiveTypes(Mapping[str, ActionType]):
    """Action types with those of files as they are at the moment; a file replaces no other action."""

    def __init__(self, types: Mapping[str, ActionType]) -> None:
        self._types = types

    def __getitem__(self, name: str) -> ActionType:
        return self._types[name] if name in self._types else actions_of_files()[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**actions_of_files(), **self._types})

    def __len__(self) -> int:
        return len({**actions_of_files(), **self._types})
