"""The replies of a conversation, the same for every channel. Frozen values."""

from collections.abc import Sequence

from msgspec import Struct


class Button(Struct, frozen=True):
    """A button under a message. `data` comes back in `DialogEvent.button` when it is pressed; at most 64 bytes."""

    label: str
    data: str


Buttons = Sequence[Sequence[Button]]
"""Rows of buttons."""


class Reply(Struct, frozen=True, omit_defaults=True):
    """One answer to a person. A channel without buttons sends the text alone.

    `edit`: the id of the message that the text and the buttons replace; "" for a new message. `notice`: a short text
    that is shown over the chat, as the answer to a pressed button. A reply with an empty `text` is only that.
    """

    text: str = ""
    buttons: Buttons = ()
    edit: str = ""
    notice: str = ""
