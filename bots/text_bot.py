"""The bot of a channel with text alone, SMS or VK: answers what people write through the channel's courier, and sends
teachers the results of their deliveries.
"""

import asyncio

from bots.conversation.result import result
from bots.conversation.written import WrittenConversation
from bots.delivered_replies import DeliveredReplies
from bots.dialogs import Answering, Dialogs
from bots.event_worker import event_worker
from bots.following import Follower, Following
from bots.services import BotServices


class TextBot:
    """To `run()` and to `stop()`. Any number of processes may have one."""

    def __init__(self, services: BotServices, channel: str) -> None:
        self._following = Following(services.core.client, services.tenant, channel)
        replies = DeliveredReplies(services.core.store, services.core.sending, services.tenant)
        conversation = WrittenConversation(services, self._following)
        answering = Answering(Dialogs(services.core.store, services.tenant), conversation.converse, replies.send)
        follower = Follower(services.core.tracker, services.tenant, result, replies.send_result)
        self._workers = (
            event_worker(services.core.client, channel, answering.handle),
            self._following.worker(follower),
        )

    async def run(self) -> None:
        """Work until `stop()`; what is in progress is finished, what is in the queue stays there."""
        await self._following.open()
        await asyncio.gather(*(worker.run() for worker in self._workers))

    def stop(self) -> None:
        """End `run`."""
        for worker in self._workers:
            worker.stop()
