"""The channels whose bot makes calls at once, and what each of them can show.

In MAX a press is answered only with a new content of its message; a number in an SMS is no press.
"""

from collections.abc import Mapping

from core.queue import QueueClient
from core.updates.bot_calls import BotCalls
from providers import max as max_provider
from providers import telegram_bot, vk

LONGEST_ANSWER: Mapping[str, int] = {telegram_bot.CHANNEL: 200, vk.CHANNEL: 90}
"""Channel in which a press is answered → most characters of the text. Source: answerCallbackQuery; dev.vk.com,
show_snackbar.
"""

_CHANNELS = (telegram_bot.CHANNEL, vk.CHANNEL, max_provider.CHANNEL)


def bot_calls_by_channel(client: QueueClient, tenant: str) -> Mapping[str, BotCalls]:
    """Return the calls of a tenant's bots, by channel."""
    return {channel: BotCalls(client, tenant, channel) for channel in _CHANNELS}
