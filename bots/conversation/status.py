"""The status of a delivery as its sender sees it (D-17), and its buttons: cancel, retry, who was not reached.

The content of a button is `d.<action>.<shard>.<unix ns>`; with the id of the person who presses it, this names
a delivery, so it never reaches another person's. The buttons do not belong to a dialog: they work as long as the
history is kept.
"""

from datetime import tzinfo

from bots.button_data import ButtonData
from bots.catalogue import text
from bots.conversation.state import State, Turn
from bots.dialog_event import DialogEvent
from bots.replies import Button, Reply
from bots.services import BotServices
from core.errors import Refused
from core.model.history import History
from core.model.history_key import HistoryKey
from core.model.people import User
from core.model.states import DeliveryState, Status
from core.orders import Caller
from core.orders.following import StatusTask, StatusTasks
from scenarios.sending.person import language_of
from scenarios.sending.status import missed_text, status_buttons, status_text


class StatusView:
    """Shows a history. Pure."""

    def __init__(self, button_data: ButtonData, timezone: tzinfo) -> None:
        self._button_data = button_data
        self._timezone = timezone

    def reply(self, history: History, followed: StatusTask, notice: str = "") -> Reply:
        """Return the text and the buttons of the message that shows the delivery."""
        language = language_of(followed.locale)
        buttons = [[self._button(verb, label, history, followed)] for verb, label in status_buttons(history, language)]
        return Reply(status_text(history, language, self._timezone), buttons, followed.message, notice)

    def _button(self, verb: str, label: str, history: History, followed: StatusTask) -> Button:
        content = f"d.{verb}.{history.key.shard}.{history.key.ns}"
        return Button(label, self._button_data.sign(followed.channel, followed.address, content))


class StatusConversation:
    """Answers the buttons of a status. One per process and tenant."""

    def __init__(self, services: BotServices, view: StatusView, status_tasks: StatusTasks) -> None:
        self._services = services
        self._view = view
        self._status_tasks = status_tasks

    async def pressed(self, event: DialogEvent, user: User, state: State, content: str) -> Turn:
        """Answer a button; the state of the dialog does not change."""
        _, action, shard, ns = content.split(".")
        key = HistoryKey(int(shard), str(user.id), int(ns))
        followed = StatusTask(str(key), event.channel, event.address, event.message, user.locale)
        act = {"cancel": self._cancel, "retry": self._retry, "missed": self._missed}[action]
        try:
            return Turn([await act(key, followed, event)], state)
        except Refused as refusal:
            if refusal.code not in ("HISTORY_NOT_FOUND", "QUIET_HOURS", "CANCELLED"):
                raise
            return Turn([Reply(notice=text(f"status_{refusal.code.lower()}", user.locale))], state)

    async def _cancel(self, key: HistoryKey, followed: StatusTask, event: DialogEvent) -> Reply:
        deliveries, tenant = self._services.core.deliveries, self._services.tenant
        before = await deliveries.read(key, tenant, limit=1)
        if before.state is not DeliveryState.SCHEDULED:
            is_cancelled = before.state is DeliveryState.CANCELLED
            notice = "status_cancelled" if is_cancelled else "status_too_late"
            return self._view.reply(before, followed, text(notice, followed.locale))
        await deliveries.cancel(key, tenant)
        return self._view.reply(await deliveries.read(key, tenant, limit=1), followed)

    async def _retry(self, key: HistoryKey, followed: StatusTask, event: DialogEvent) -> Reply:
        """Retry the failed recipients; a second press finds none. The follower shows the status."""
        services, locale = self._services, followed.locale
        count = await services.core.sending.retry(key, Caller(services.tenant), [Status.FAILED])
        if not count:
            return Reply(notice=text("retry_nothing", locale))
        await self._status_tasks.begin(followed, event.id)
        return Reply(notice=text("retry_begun", locale, count=count))

    async def _missed(self, key: HistoryKey, followed: StatusTask, event: DialogEvent) -> Reply:
        services, language = self._services, language_of(followed.locale)
        return Reply(await missed_text(services.core.deliveries, key, services.tenant, language))
