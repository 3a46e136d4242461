"""The services of core, one of each on one store: the composition root of every process.

The API, the bots, the scenarios and the jobs take these and add what only they use. What core needs from outside (mail,
tokens of sign-ins) is not here: `cli` opens the provider and passes it in.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from core.answers import AnswerLinks, Answers, OpenQuestions
from core.deliveries.channels import Channels
from core.deliveries.deliveries import Deliveries
from core.deliveries.live import LiveEvents
from core.deliveries.tracker import Tracker
from core.directory import Directory
from core.directory.preferences import Preferences, Subscriptions
from core.jobs import Jobs
from core.orders import Sending, SendingPolicy
from core.queue import Queue, QueueClient
from core.redis.store import Store
from core.sessions import DeviceLinks
from core.threads import Relay, Threads


@dataclass(frozen=True, slots=True)
class Services:
    """One of each service. Their methods raise `core.errors`. `client` is the queue as an application uses it."""

    store: Store
    queue: Queue
    client: QueueClient
    channels: Channels
    deliveries: Deliveries
    directory: Directory
    sending: Sending
    tracker: Tracker
    live: LiveEvents
    jobs: Jobs
    answers: Answers
    answer_links: AnswerLinks
    questions: OpenQuestions
    threads: Threads
    relay: Relay
    preferences: Preferences
    subscriptions: Subscriptions
    device_links: DeviceLinks

    @classmethod
    def on(cls, store: Store, policy: SendingPolicy | None = None) -> "Services":
        """Return the services on an open store. `policy`: quotas, quiet hours, office hours; None: there are none.

        The caller closes `live`, `tracker` and `client`, as `open_services` does.
        """
        channels, directory, client = Channels(store), Directory(store), QueueClient(store)
        deliveries, answers = Deliveries(store, channels), Answers(store)
        sending, threads = Sending(store, deliveries, directory, policy), Threads(store)
        subscriptions = Subscriptions(store, directory)
        return cls(
            store=store,
            queue=client.queue,
            client=client,
            channels=channels,
            deliveries=deliveries,
            directory=directory,
            sending=sending,
            tracker=Tracker(store),
            live=LiveEvents(store),
            jobs=Jobs(store),
            answers=answers,
            answer_links=AnswerLinks(store, answers),
            questions=OpenQuestions(store),
            threads=threads,
            relay=Relay(threads, sending, directory, channels, policy),
            preferences=Preferences(store, directory),
            subscriptions=subscriptions,
            device_links=DeviceLinks(store, deliveries, subscriptions),
        )


@asynccontextmanager
async def open_services(store: Store, policy: SendingPolicy | None = None) -> AsyncIterator[Services]:
    """Open the services on an open store, until the end of the block."""
    services = Services.on(store, policy)
    try:
        yield services
    finally:
        await services.live.close()
        await services.tracker.close()
        await services.client.close()
