"""The ways in of all channels, the same in every process: what polls, and what receives callbacks."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from core.deliveries.choice_store import Choices
from core.directory import Directory
from core.queue import QueueClient
from core.redis.store import Store
from core.updates.arrival import Arrival
from core.updates.events import Events, dialogs_tube, is_for_dialogs
from core.updates.gathering import Gathering
from core.updates.ingress import MAX_AGE, Ingress, Raw, Read
from core.updates.reachability import Reachability, ReadReach
from providers import max as max_provider
from providers import sms, telegram_bot, vk
from providers.max import events as max_events
from providers.sms import events as sms_events
from providers.telegram_bot import events as telegram_events
from providers.vk import events as vk_events

_REACH: Mapping[str, ReadReach] = {max_provider.CHANNEL: max_events.read_reach}

_READERS: Mapping[str, Read] = {
    sms.CHANNEL: sms_events.read_arrival,
    vk.CHANNEL: vk_events.read_arrival,
    max_provider.CHANNEL: max_events.read_arrival,
    telegram_bot.CHANNEL: telegram_events.read_arrival,
}


def dialogs_ingress(client: QueueClient, tenant: str, directory: Directory | None = None) -> Mapping[str, Ingress]:
    """Return the ways in for the dialogs of the bots, by channel. `directory`: to note who can be reached."""
    return {
        channel: Ingress(
            Events(client, tenant, tube=dialogs_tube(channel)),
            _sources(tenant)[channel],
            _for_dialogs(read),
            reachability=_reachability(directory, tenant, channel),
        )
        for channel, read in _READERS.items()
    }


def events_ingress(
    store: Store, client: QueueClient, tenant: str, max_age: timedelta = MAX_AGE
) -> Mapping[str, Ingress]:
    """Return the ways in for the scenarios of the tenant's bot, by channel."""
    events, gathering = Events(client, tenant, Choices(store)), telegram_gathering(store, client, tenant)
    return {
        channel: Ingress(
            events,
            _sources(tenant)[channel],
            read,
            gathering=gathering,
            reachability=_reachability(Directory(store), tenant, channel),
            max_age=max_age,
        )
        for channel, read in _READERS.items()
    }


def _reachability(directory: Directory | None, tenant: str, channel: str) -> Reachability | None:
    read = _REACH.get(channel)
    return Reachability(directory, tenant, channel, read) if directory and read else None


def telegram_gathering(store: Store, client: QueueClient, tenant: str) -> Gathering:
    """Return what makes one event of an album, and of a join that is reported twice."""
    return Gathering(store, client, tenant, Events(client, tenant), telegram_events.merge)


def _sources(tenant: str) -> Mapping[str, str]:
    """Return by channel the place within which the ids of events are unique. Each Telegram bot numbers its updates by
    itself.
    """
    return {
        sms.CHANNEL: sms_events.SOURCE,
        vk.CHANNEL: vk_events.SOURCE,
        max_provider.CHANNEL: tenant,
        telegram_bot.CHANNEL: tenant,
    }


def _for_dialogs(read: Read) -> Read:
    """Return a reader of what dialogs answer."""

    def read_private(raw: Raw, now: datetime) -> Arrival | None:
        arrival = read(raw, now)
        return arrival if arrival is not None and is_for_dialogs(arrival.event) else None

    return read_private
