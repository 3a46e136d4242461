"""The result of reading a provider's update: a frozen value."""

from msgspec import Struct

from core.updates.events import Event


class Arrival(Struct, frozen=True):
    """An event, or a part of one. `gathered_as`: what the parts of one event have in common, "" for a whole event;
    with it, the event's `id` names the part.
    """

    event: Event
    gathered_as: str = ""
