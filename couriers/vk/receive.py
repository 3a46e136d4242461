"""Receives what people write to a VK community: by long poll, or by callbacks to the HTTP API."""

from couriers.receiving.receiver import Receiver
from couriers.vk.bot_calls import VkCalls
from couriers.vk.client import TokenRefused, VkClient
from couriers.vk.courier import Settings
from couriers.vk.long_poll import VkLongPoll


def open_receiver(settings: Settings, *, polls: bool) -> Receiver:
    """Return the community; with ADA_VK_LONG_POLL, or `polls`, it is polled."""
    client = VkClient(settings.token, settings.api_url)
    source = VkLongPoll(client) if polls or settings.long_poll else None
    return Receiver(client, TokenRefused, client.close, source=source, make=VkCalls(client).make)
