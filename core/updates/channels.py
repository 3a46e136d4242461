"""The ways in of all channels, the same in every process: what polls, and what receives callbacks."""

from collections.abc import Mapping
from datetime import timedelta

from core.deliveries.choice_store import Choices
from core.queue import QueueClient
from core.redis.store import Store
from core.updates import sms, telegram_events, telegram_updates, vk_events
from core.updates.events import Events
from core.updates.gathering import Gathering
from core.updates.ingress import MAX_AGE, DialogIngress, EventIngress, Ingress
from core.updates.presses import Presses
from core.updates.updates import Updates


def dialogs_ingress(client: QueueClient, tenant: str) -> Mapping[str, Ingress]:
    """For the dialogs of the bots, by channel."""
    return {
        channel: DialogIngress(Updates(client, tenant, channel, source), read)
        for channel, source, read in (
            (sms.CHANNEL, sms.SOURCE, sms.read_update),
            (vk_events.CHANNEL, vk_events.SOURCE, vk_events.update_of),
            (telegram_updates.CHANNEL, tenant, telegram_updates.read_update),
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
            (sms.CHANNEL, sms.SOURCE, sms.read_arrival),
            (vk_events.CHANNEL, vk_events.SOURCE, vk_events.read_arrival),
            (telegram_updates.CHANNEL, tenant, telegram_events.read_arrival),
        )
    }


def telegram_gathering(store: Store, client: QueueClient, tenant: str) -> Gathering:
    """Makes one event of an album, and of a join that is reported twice."""
    return Gathering(store, client, tenant, Events(client, tenant), telegram_events.merge)
