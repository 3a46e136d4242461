"""The state of a dialog and the result of one turn. Frozen values."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from bots.replies import Reply

IDLE = ""
EMAIL, CODE = "email", "code"
SELECT, TEXT, TIME, CONFIRM, SENT = "select", "text", "time", "confirm", "sent"
"""The steps of a conversation: the input that the bot waits for."""


class State(Struct, frozen=True, omit_defaults=True):
    """The dialog with one person. `step`: what the bot waits for.

    The rest is of the dialog of a teacher. `dialog`: its id. `kind`, `page`: which tab and page are shown. `chosen`:
    `group:<id>` and `supergroup:<id>`. `deliver_at`: None for now.
    """

    step: str = IDLE
    dialog: str = ""
    kind: str = "group"
    page: int = 0
    chosen: Sequence[str] = ()
    text: str = ""
    deliver_at: datetime | None = None


class Turn(Struct, frozen=True):
    """The result of one turn: what is answered, in this order, and the new state."""

    replies: Sequence[Reply]
    state: State = State()


IDLE_STATE = State()


def say(text: str, state: State = IDLE_STATE) -> Turn:
    """Return a turn with one text as its reply."""
    return Turn([Reply(text)], state)
