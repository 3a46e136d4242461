"""The state of a job's own: a value of the class that the job declares, kept from one iteration to the next.

It is stored with the end of the iteration, and with each item of `each`, in the same step. A repeated iteration begins
with the state of before; where it skips recorded items it gets the state that was stored with them.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import msgspec

from core.errors import Invalid
from core.jobs.record import OwnState
from core.model.json_form import FAULTS, encoded

LARGEST_STATE = 64 * 1024
"""Bytes of JSON."""


@dataclass(frozen=True, slots=True)
class StateClass:
    """The declaration of a kind's state. `migrate` makes what a lower version has stored into what this version
    decodes.
    """

    type: Any
    version: int
    migrate: Callable[[int, Any], Any]

    def load(self, stored: OwnState | None) -> Any:
        """Return the state of a job; a new one if none is stored. Raises Invalid STATE_OF_LATER_VERSION,
        STATE_MALFORMED, and what `migrate` raises.
        """
        if self.type is None:
            return None
        if stored is None:
            return self.type()
        if stored.version > self.version:
            detail = f"The state is of version {stored.version}, this process has version {self.version}."
            raise Invalid("STATE_OF_LATER_VERSION", detail)
        data = stored.data
        if stored.version < self.version:
            data = self.migrate(stored.version, data)
        try:
            return msgspec.convert(data, self.type)
        except msgspec.ValidationError as fault:
            raise Invalid("STATE_MALFORMED", f"The stored state is not what `state` says: {fault}.") from None

    def dump(self, state: Any) -> OwnState | None:
        """Return the state as it is stored; None if the kind declares none. Raises Invalid STATE_NOT_JSON, also if a
        value would be read back as another one; STATE_TOO_LARGE, STATE_MALFORMED.
        """
        if self.type is None:
            return None
        try:
            text = encoded(state)
        except FAULTS as fault:
            raise Invalid("STATE_NOT_JSON", f"The state cannot be stored: {fault}.") from None
        if len(text) > LARGEST_STATE:
            raise Invalid("STATE_TOO_LARGE", f"The state has {len(text)} bytes, at most {LARGEST_STATE}.")
        stored = OwnState(self.version, msgspec.json.decode(text))
        if place := difference("state", state, self.load(stored)):
            raise Invalid("STATE_NOT_JSON", f"{place} would be another value after a crash: declare its type.")
        return stored


def difference(place: str, given: Any, read: Any) -> str:
    """Return the first place at which two values differ, also in their types; "" if they are the same. A whole number
    is the same as int and as float.
    """
    if all(isinstance(one, int | float) and not isinstance(one, bool) for one in (given, read)):
        return "" if given == read else place
    if type(given) is not type(read):
        return place
    if names := _fields(given):
        pairs = [(f"{place}.{name}", getattr(given, name), getattr(read, name, None)) for name in names]
    elif isinstance(given, dict):
        if given.keys() != read.keys() or [*map(type, sorted(given, key=repr))] != [*map(type, sorted(read, key=repr))]:
            return place
        pairs = [(f"{place}[{name!r}]", value, read[name]) for name, value in given.items()]
    elif isinstance(given, list | tuple) and len(given) == len(read):
        pairs = [(f"{place}[{n}]", *both) for n, both in enumerate(zip(given, read, strict=True))]
    else:
        return "" if _is_equal(given, read) else place
    return next(filter(None, (difference(*pair) for pair in pairs)), "")


def _is_equal(given: Any, read: Any) -> bool:
    try:
        return bool(given == read)
    except Exception:  # noqa: BLE001 - a signalling NaN of decimal, or a foreign class
        return False


def _fields(value: Any) -> list[str]:
    if isinstance(value, msgspec.Struct):
        return list(value.__struct_fields__)
    return [field.name for field in fields(value)] if is_dataclass(value) else []


NO_STATE = StateClass(None, 0, lambda _, data: data)
