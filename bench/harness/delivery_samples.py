"""The messages that the benchmarks send."""

from collections.abc import Sequence
from datetime import datetime

from core.model.delivery import NewDelivery, Recipient, Sender

TENANT = "default"
SENDER = Sender(42, "Иванов И. И.", "trainer")
TEXT = "Моей пары сегодня не будет"


def order(
    text: str, recipients: Sequence[Recipient], channels: Sequence[str], deliver_at: datetime | None = None
) -> NewDelivery:
    return NewDelivery(TENANT, SENDER, text, recipients, channels, deliver_at=deliver_at)


def address(channel: str, number: int) -> str:
    """Return an ordinary recipient of the sandbox, without a special behaviour."""
    return {"telegram": f"{100_001 + number}", "vk": f"{200_001 + number}", "sms": f"+7999{number:07}"}[channel]


def recipient_of(number: int, channels: Sequence[str]) -> Recipient:
    return Recipient(number, contacts={channel: [address(channel, number)] for channel in channels})
