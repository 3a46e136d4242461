"""Errors, one tree. Outcomes are values; these are faults, and each carries the stable `code` that its caller sees.

AdaError
├── Refused              the caller's mistake: nothing was written
│   ├── Invalid          what was asked makes no sense (400/422)
│   ├── NotFound         it does not exist, or not for this tenant (404)
│   ├── Conflict         it can not be done any more, or was done by somebody else (409)
│   └── Forbidden        the key may not (401/403)
├── SetupError           the operator's mistake: a setting, a server; says the command that mends it
│   └── LayoutUnknown    the server's data are of a version that cannot work beside this one
└── StoreError           Redis/Valkey
    ├── StoreUnavailable it could not be reached in time; what was under way is *unknown* and safe to repeat
    ├── StoreFull        its memory is full: nothing was written, and what is accepted goes on
    └── ScriptFault      a Lua script failed; the message names the file and the line
"""


class AdaError(Exception):
    """Any fault of ours. `str()` is the message for people."""


class Refused(AdaError):
    """The caller's mistake. `code` is stable and upper case; `path` points at the field ("recipients.0.id"), "" if
    none.
    """

    def __init__(self, code: str, detail: str, path: str = "") -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.path = path


class Invalid(Refused):
    """What was asked makes no sense."""


class NotFound(Refused):
    """It does not exist, or not for this tenant."""


class Conflict(Refused):
    """It can not be done any more, or was done by somebody else."""


class Forbidden(Refused):
    """The key may not do this."""


class SetupError(AdaError):
    """The set-up is wrong. The message ends with what mends it."""


class LayoutUnknown(SetupError):
    """What is on the server was written by a version of Ada that this one cannot work beside. Nothing was written."""

    code = "LAYOUT_UNKNOWN"


class StoreError(AdaError):
    """Redis/Valkey."""


class StoreUnavailable(StoreError):
    """The server could not be reached in time. What was under way is unknown and safe to repeat."""


class StoreFull(StoreError):
    """The server's memory is full. Nothing was written. Scripts that take work off the server run all the same."""


class ScriptFault(StoreError):
    """A Lua script failed. The message names the file and the line."""


def malformed_cursor() -> Invalid:
    """What is said of a cursor that is none of ours."""
    return Invalid("CURSOR_MALFORMED", "A cursor is taken from `next` of the page before.", "cursor")
