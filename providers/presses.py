"""The channels in which a press of a button is answered: with a text that the person sees, or without one.

In MAX a press is answered only with a new content of its message; a number in an SMS is no press.
"""

from collections.abc import Mapping

from core.queue import QueueClient
from core.updates.presses import Presses
from providers import telegram_bot, vk

LONGEST_TEXT: Mapping[str, int] = {telegram_bot.CHANNEL: 200, vk.CHANNEL: 90}
"""Channel → most characters of the text. Source: answerCallbackQuery; dev.vk.com, show_snackbar."""


def presses_by_channel(client: QueueClient, tenant: str) -> Mapping[str, Presses]:
    """Return the presses of a tenant's buttons, by channel."""
    return {channel: Presses(client, tenant, channel) for channel in LONGEST_TEXT}
