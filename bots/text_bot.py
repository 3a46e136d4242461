"""The bot of a channel with text alone, SMS or VK: answers what people write through the channel's courier, and sends
teachers the results of their deliveries.
"""

import asyncio
from datetime import timedelta

from bots.conversation.result import result
from bots.conversation.text_conversation import TextConversation
from bots.delivered_replies import DeliveredReplies
from bots.dialogs import Answering, Dialogs
from bots.event_worker import event_worker
from bots.services import BotServices
from core.orders.following import StatusHandler, StatusTasks


class TextBot:
    """To `run()` and to `stop()`. Any number of processes may have one."""

    def __init__(self, services: BotServices, channel: str) -> None:
        self._status_tasks = StatusTasks(services.core.client, services.tenant, channel)
        replies = DeliveredReplies(services.core.store, services.core.sending, services.tenant)
        conversation = TextConversation(services, self._status_tasks)
        answering = Answering(Dialogs(services.core.store, services.tenant), conversation.converse, replies.send)
        handler = StatusHandler(services.core.tracker, services.tenant, result, replies.send_result)
        self._workers = (
            event_worker(services.core.client, channel, answering.handle),
            self._status_tasks.worker(handler),
        )

    async def run(self) -> None:
        """Work until `stop()`; what is in progress is finished, what is in the queue stays there."""
        await self._status_tasks.open()
        await asyncio.gather(*(worker.run() for worker in self._workers))

    def stop(self, grace: timedelta | None = None) -> None:
        """End `run`; an answer that takes longer than `grace` goes on in another process."""
        for worker in self._workers:
            worker.stop(grace)
