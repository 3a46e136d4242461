"""What a courier sees of core: a `Message` in, an `Outcome` out, the reasons, and `SetupError`. Nothing else.

The runtime behind it (`core.courier.runtime`) claims parcels, throttles, retries and writes histories, once for all
channels. Neighbours: `core.queue` (claims), `core.history` (what is known of recipients), `couriers/` (the channels).
"""

from core.courier.interface import (
    FOREVER,
    NEVER,
    Courier,
    Deferred,
    Halted,
    Message,
    Outcome,
    Rejected,
    Scope,
    Sent,
    Split,
    Unknown,
)
from core.errors import SetupError
from core.model.states import Reason

__all__ = [
    "FOREVER",
    "NEVER",
    "Courier",
    "Deferred",
    "Halted",
    "Message",
    "Outcome",
    "Reason",
    "Rejected",
    "Scope",
    "Sent",
    "SetupError",
    "Split",
    "Unknown",
]
