"""The teachers' dialogs: events are answered, and the messages that show deliveries are changed."""

from aiogram import Bot

from bots.button_data import ButtonData
from bots.conversation.conversation import Conversation
from bots.conversation.status import StatusView
from bots.dialogs import Answering, Dialogs
from bots.event_worker import event_worker
from bots.following import Follower, Following
from bots.services import BotServices
from bots.telegram.mode import Mode, Work
from bots.telegram.sending import Replies
from providers.inbound import dialogs_ingress
from providers.telegram_bot import CHANNEL


async def open_dialogs(bot: Bot, services: BotServices) -> Work:
    """Raises StoreError."""
    replies, following = Replies(bot), Following(services.core.client, services.tenant, CHANNEL)
    ingress = dialogs_ingress(services.core.client, services.tenant)[CHANNEL]
    await ingress.open()
    await following.open()
    button_data = await ButtonData.open(services.core.store, services.tenant)
    view = StatusView(button_data, services.timezone)
    conversation = Conversation(services, button_data, view, following)
    answering = Answering(Dialogs(services.core.store, services.tenant), conversation.converse, replies.send)
    follower = Follower(services.core.tracker, services.tenant, view.reply, replies.edit)
    return Work(ingress, [event_worker(services.core.client, CHANNEL, answering.handle), following.worker(follower)])


ALLOWED = ("message", "callback_query")
"""The kinds of updates that dialogs ask for."""

DIALOGS = Mode(ALLOWED, open_dialogs)
