"""Receives what people write to a bot in MAX: by long poll, or by the webhook of ADA_MAX_WEBHOOK_URL."""

from functools import partial

from couriers.max.bot_calls import MaxCalls
from couriers.max.client import MaxClient
from couriers.max.errors import MaxTokenRefused
from couriers.max.long_poll import MaxLongPoll
from couriers.max.settings import Settings
from couriers.max.webhook import MaxWebhook
from couriers.receiving.receiver import Receiver


def open_receiver(settings: Settings, *, polls: bool) -> Receiver:
    """Return the bot; without a webhook, or with `polls`, it is polled. Raises SetupError for a webhook whose URL or
    secret cannot be used.
    """
    url = None if polls else settings.webhook_url
    webhook = MaxWebhook(url, settings.webhook_secret or "") if url else None
    client = MaxClient(settings.token, settings.api_url, settings.timeout, settings.ca)
    return Receiver(
        client,
        MaxTokenRefused,
        client.close,
        source=None if webhook else MaxLongPoll(client),
        keep_subscription=partial(webhook.keep, client) if webhook else None,
        make=MaxCalls(client).make,
    )
