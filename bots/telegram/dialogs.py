"""The teachers' dialogs: updates are answered, and the messages that show deliveries are changed."""

from aiogram import Bot

from bots.button_data import ButtonData
from bots.conversation.conversation import Conversation
from bots.conversation.status import StatusView
from bots.dialogs import Answering, Dialogs
from bots.following import Follower, Following
from bots.services import Services
from bots.telegram.mode import Mode, Work
from bots.telegram.sending import Replies
from bots.updates import update_worker
from core.updates.channels import dialogs_ingress
from core.updates.telegram_updates import ALLOWED, CHANNEL


async def open_dialogs(bot: Bot, services: Services) -> Work:
    """Raises StoreError."""
    replies, following = Replies(bot), Following(services.queue, services.tenant, CHANNEL)
    ingress = dialogs_ingress(services.queue, services.tenant)[CHANNEL]
    await ingress.open()
    await following.open()
    button_data = await ButtonData.open(services.store, services.tenant)
    view = StatusView(button_data, services.timezone)
    conversation = Conversation(services, button_data, view, following)
    answering = Answering(Dialogs(services.store, services.tenant), conversation.converse, replies.send)
    follower = Follower(services.tracker, services.tenant, view.reply, replies.edit)
    return Work(ingress, [update_worker(services.queue, CHANNEL, answering.handle), following.worker(follower)])


DIALOGS = Mode(ALLOWED, open_dialogs)
