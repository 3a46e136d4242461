"""Reads the posts of VK's callback API. Pure."""

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta, Struct

ANSWER = "ok"
"""To each event that was stored."""


class InboundVkEvent(Struct, frozen=True):
    """An event of VK's callback API. VK sends further fields, which are those of the event's type."""

    type: Annotated[str, Meta(max_length=256)]
    secret: Annotated[str, Meta(max_length=1024, description="ADA_INBOUND_VK_SECRET")] = ""


Fields = InboundVkEvent


def update_of(event: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the event for `couriers.vk.events`; None if VK asks whose address this is, which a confirmation
    answers.
    """
    return None if event.get("type") == "confirmation" else event
