"""The channels in which people write: their ways in, the same in every process, and the calls of bots."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from importlib import import_module

from core.answers import AnswerNumbers
from core.deliveries.received import Choices, ReceivedMessages
from core.directory import Directory
from core.directory.preferences import OptOuts, Reachability, ReadReach
from core.queue import QueueClient
from core.redis.store import Store
from core.updates.bot_calls import BotCalls
from core.updates.events import Event, Events
from core.updates.ingress import MAX_AGE, Gathering, Ingress, Read
from couriers.channel import Receiving, receiving


def events_ingress(
    store: Store, client: QueueClient, tenant: str, max_age: timedelta = MAX_AGE
) -> Mapping[str, Ingress]:
    """Return the ways in of the tenant's bot, by channel."""
    choices, received, numbers = Choices(store), ReceivedMessages(store), AnswerNumbers(store)
    parts = gathering(store, client, tenant)
    return {
        channel: Ingress(
            Events(
                client,
                tenant,
                choices,
                received=received,
                numbers=numbers,
                opt_outs=OptOuts(Directory(store), tenant),
            ),
            one.source or tenant,
            _reader(one),
            gathering=parts if one.gathers else None,
            reachability=_reachability(Directory(store), tenant, channel, one),
            max_age=max_age,
        )
        for channel, one in receiving().items()
    }


def _reader(one: Receiving) -> Read:
    read: Read = import_module(one.events).read_arrival
    return read


def _reachability(directory: Directory, tenant: str, channel: str, one: Receiving) -> Reachability | None:
    read: ReadReach | None = getattr(import_module(one.events), "read_reach", None)
    return Reachability(directory, tenant, channel, read) if read else None


def gathering(store: Store, client: QueueClient, tenant: str) -> Gathering:
    """Return what makes one event of the parts of an album, and of a join that is reported twice."""
    return Gathering(store, client, tenant, Events(client, tenant, received=ReceivedMessages(store)), _merge)


def _merge(name: str, parts: Sequence[Event]) -> Event:
    merged: Event = import_module(receiving()[str(parts[0]["channel"])].events).merge(name, parts)
    return merged


def longest_answer(channel: str) -> int:
    """Return the most characters of the answer to a press, 0 if the channel has none."""
    found = receiving().get(channel)
    return found.longest_answer if found else 0


def bot_calls_by_channel(client: QueueClient, tenant: str) -> Mapping[str, BotCalls]:
    return {channel: BotCalls(client, tenant, channel) for channel, one in receiving().items() if one.makes_calls}
