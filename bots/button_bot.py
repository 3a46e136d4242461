"""The teacher's dialog in a channel with buttons and edits, Telegram or MAX: events are answered, and the messages that
show deliveries are changed.
"""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

from bots.button_data import ButtonData
from bots.conversation.conversation import Conversation
from bots.conversation.status import StatusView
from bots.dialogs import Answering, Dialogs, Send
from bots.event_worker import event_worker
from bots.replies import Reply
from bots.services import BotServices
from core.orders.following import Edit, StatusHandler, StatusTasks
from core.queue import Worker


async def button_workers(services: BotServices, channel: str, send: Send, edit: Edit[Reply]) -> Sequence[Worker]:
    """Return what answers the events of a channel. Raises StoreError."""
    status_tasks = StatusTasks(services.core.client, services.tenant, channel)
    await status_tasks.open()
    button_data = await ButtonData.open(services.core.store, services.tenant)
    view = StatusView(button_data, services.timezone)
    conversation = Conversation(services, button_data, view, status_tasks)
    answering = Answering(Dialogs(services.core.store, services.tenant), conversation.converse, send)
    handler = StatusHandler(services.core.tracker, services.tenant, view.reply, edit)
    return [event_worker(services.core.client, channel, answering.handle), status_tasks.worker(handler)]


class ButtonBot:
    """To `run()` and to `stop()`. Any number of processes may have one."""

    def __init__(self, workers: Sequence[Worker]) -> None:
        self._workers = workers

    async def run(self) -> None:
        """Work until `stop()`; what is in progress is finished, what is in the queue stays there."""
        await asyncio.gather(*(worker.run() for worker in self._workers))

    def stop(self, grace: timedelta | None = None) -> None:
        """End `run`; an answer that takes longer than `grace` goes on in another process."""
        for worker in self._workers:
            worker.stop(grace)
