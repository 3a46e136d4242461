"""Variables: what a bot remembers of a person, of a chat, of a run and for all people (C-93, C-105). Frozen values, as
`variables.yaml` has them.
"""

from msgspec import Struct

from core.model.json_form import JsonValue

SCOPES = ("person", "chat", "run", "bot")
"""The first part of a variable's name, as in `person.age`."""

STORED_SCOPES = ("person", "chat", "bot")
"""Those that outlive the run."""

TYPES = ("text", "number", "date", "choice", "list")


class Variable(Struct, frozen=True):
    """`options`: of a choice. `default`: its value while none is set, None for none. `expire`: how many seconds a value
    lasts; 0: as long as the bot knows the person or the chat.
    """

    type: str = "text"
    options: tuple[str, ...] = ()
    default: JsonValue = None
    expire: int = 0


def split_name(name: str) -> tuple[str, str] | None:
    """Return scope and name of `person.age`; None if it has no known scope."""
    scope, _, short = name.strip().partition(".")
    return (scope, short) if scope in SCOPES and short else None
