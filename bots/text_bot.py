"""The bot of a channel with text alone, SMS or VK: answers what people write through the channel's courier, and sends
teachers the results of their deliveries.
"""

import asyncio

from bots.conversation.result import result
from bots.conversation.written import WrittenConversation
from bots.delivered_replies import DeliveredReplies
from bots.dialogs import Answering, Dialogs
from bots.following import Follower, Following
from bots.services import Services
from bots.updates import update_worker


class TextBot:
    """To `run()` and to `stop()`. Any number of processes may have one."""

    def __init__(self, services: Services, channel: str) -> None:
        self._following = Following(services.queue, services.tenant, channel)
        replies = DeliveredReplies(services.store, services.sending, services.tenant)
        conversation = WrittenConversation(services, self._following)
        answering = Answering(Dialogs(services.store, services.tenant), conversation.converse, replies.send)
        follower = Follower(services.tracker, services.tenant, result, replies.send_result)
        self._workers = (
            update_worker(services.queue, channel, answering.handle),
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
