"""The channels whose bot makes calls at once, and what each of them can show."""

from collections.abc import Mapping

from core.queue import QueueClient
from core.updates.bot_calls import BotCalls
from couriers.channel import receiving


def longest_answer(channel: str) -> int:
    """Return the most characters of the answer to a press, 0 if the channel has none."""
    found = receiving().get(channel)
    return found.longest_answer if found else 0


def bot_calls_by_channel(client: QueueClient, tenant: str) -> Mapping[str, BotCalls]:
    return {channel: BotCalls(client, tenant, channel) for channel, one in receiving().items() if one.makes_calls}
