"""The ways in of all channels, the same in every process: what polls, and what receives callbacks."""

from collections.abc import Mapping
from datetime import timedelta

from core.deliveries.choice_store import Choices
from core.queue import QueueClient
from core.redis.store import Store
from core.updates.events import Events
from core.updates.gathering import Gathering
from core.updates.ingress import MAX_AGE, DialogIngress, EventIngress, Ingress
from core.updates.presses import Presses
from core.updates.updates import Updates
from providers import sms, telegram_bot, vk
from providers.sms import events as sms_events
from providers.telegram_bot import events as telegram_events
from providers.telegram_bot import updates as telegram_updates
from providers.vk import events as vk_events


def dialogs_ingress(client: QueueClient, tenant: str) -> Mapping[str, Ingress]:
    """For the dialogs of the bots, by channel."""
    return {
        channel: DialogIngress(Updates(client, tenant, channel, source), read)
        for channel, source, read in (
            (sms.CHANNEL, sms_events.SOURCE, sms_events.read_update),
            (vk.CHANNEL, vk_events.SOURCE, vk_events.update_of),
            (telegram_bot.CHANNEL, tenant, telegram_updates.read_update),
        )
    }


def events_ingress(
    store: Store, client: QueueClient, tenant: str, max_age: timedelta = MAX_AGE
) -> Mapping[str, Ingress]:
    """For the scenarios of the tenant's bot, by channel."""
    events, gathering = Events(client, tenant, Choices(store)), telegram_gathering(store, client, tenant)
    return {
        channel: EventIngress(events, gathering, Presses(client, tenant, channel), source, read, max_age)
        for channel, source, read in (
            (sms.CHANNEL, sms_events.SOURCE, sms_events.read_arrival),
            (vk.CHANNEL, vk_events.SOURCE, vk_events.read_arrival),
            (telegram_bot.CHANNEL, tenant, telegram_events.read_arrival),
        )
    }


def telegram_gathering(store: Store, client: QueueClient, tenant: str) -> Gathering:
    """Makes one event of an album, and of a join that is reported twice."""
    return Gathering(store, client, tenant, Events(client, tenant), telegram_events.merge)
