"""The worker of a channel with text alone, SMS or VK: answers what people write through the channel's courier."""

from bots.conversation.written import WrittenConversation
from bots.delivered_replies import DeliveredReplies
from bots.dialogs import Answering, Dialogs
from bots.services import Services
from bots.updates import update_worker
from core.queue import Worker


def text_worker(services: Services, channel: str) -> Worker:
    """A worker to `run()` and to `stop()`. Any number of processes may have one."""
    answering = Answering(
        Dialogs(services.store, services.tenant),
        WrittenConversation(services).converse,
        DeliveredReplies(services.store, services.sending, services.tenant).send,
    )
    return update_worker(services.queue, channel, answering.handle)
