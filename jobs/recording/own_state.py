"""The state of a job's own: a value of the class that the job declares, kept from one iteration to the next.

It is stored with the end of the iteration, and with each item of `each`, in the same step. A repeated iteration begins
with the state of before; where it skips recorded items it gets the state that was stored with them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from core.errors import Invalid
from core.jobs.record import OwnState

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
        """Return the state as it is stored; None if the kind declares none. Raises Invalid STATE_NOT_JSON,
        STATE_TOO_LARGE.
        """
        if self.type is None:
            return None
        try:
            data = msgspec.to_builtins(state, str_keys=True)
            size = len(msgspec.json.encode(data))
        except (TypeError, ValueError, OverflowError, RecursionError) as fault:
            raise Invalid("STATE_NOT_JSON", f"The state cannot be stored: {fault}.") from None
        if size > LARGEST_STATE:
            raise Invalid("STATE_TOO_LARGE", f"The state has {size} bytes, at most {LARGEST_STATE}.")
        return OwnState(self.version, data)


NO_STATE = StateClass(None, 0, lambda _, data: data)
