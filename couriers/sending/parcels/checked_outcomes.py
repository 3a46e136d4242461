"""Checks the outcomes of a courier one by one: what cannot be written is the fault of its own message alone. Pure.

Called by `couriers.sending.parcels.parcel_executor`.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from datetime import timedelta
from typing import Any

from core.model.states import Reason
from core.queue.checks import error_text, storable
from couriers.sending.interface import Outcome, Rejected, Scope, Unknown


def checked(outcome: Outcome) -> Outcome:
    """Return an outcome that can be written, with escapes for what is no character. Unknown in place of a value that is
    no outcome: the message may have been sent.
    """
    try:
        right: Outcome = _checked(outcome, Outcome)
        return right
    except Exception as fault:  # noqa: BLE001 - whatever is wrong with a value of foreign code
        return Unknown(f"the courier has returned what is no outcome: {error_text(fault)}")


def _checked(outcome: Any, wanted: Any) -> Any:
    if not isinstance(outcome, wanted):
        raise TypeError(type(outcome).__name__)
    names = [field.name for field in fields(outcome)]
    return replace(outcome, **{name: _CHECKS[name](getattr(outcome, name)) for name in names})


def _of_type(kind: type, value: Any) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{type(value).__name__} in place of {kind.__name__}")
    return value


def _text(value: Any) -> str:
    return storable(_of_type(str, value))


_CHECKS: Mapping[str, Callable[[Any], Any]] = {
    "reference": _text,
    "peer": _text,
    "number": lambda value: _of_type(int, value),
    "not_shown": lambda value: tuple(map(_text, value)),
    "reason": Reason,
    "after": lambda value: None if value is None else _of_type(timedelta, value),
    "scope": Scope,
    "is_guess": lambda value: _of_type(bool, value),
    "detail": _text,
    "rest": lambda value: _checked(value, Outcome),
    "rejected": lambda value: _checked(value, Rejected),
}
