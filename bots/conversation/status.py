"""The status of a delivery as its sender sees it (D-17), and its buttons: cancel, retry, who was not reached.

The content of a button is `d.<action>.<shard>.<unix ns>`; with the id of the person who presses it, this names
a delivery, so it never reaches another person's. The buttons do not belong to a dialog: they work as long as the
history is kept.
"""

from collections.abc import Mapping, Sequence
from datetime import tzinfo

from bots.button_data import ButtonData
from bots.catalogue import text
from bots.conversation.state import State, Turn
from bots.dialog_event import DialogEvent
from bots.phrases import moment, verdict_name
from bots.replies import Button, Buttons, Reply
from bots.services import BotServices
from bots.status_tasks import StatusTask, StatusTasks
from core.errors import Refused
from core.model.history import History, RecipientRecord
from core.model.history_key import HistoryKey
from core.model.people import User
from core.model.states import DeliveryState, Reason, Status
from core.orders import Caller

_NAMES = 35
"""Names in the list of those who were not reached; a message has room for them."""
_MOST_OF_NAME = 60
_PAGE = 500
# The first status that a person has in any channel explains why it was not reached.
_WHY = (
    (Status.FAILED, "why_failed"),
    (Status.UNKNOWN, "why_unknown"),
    (Status.SENDING, "why_waiting"),
    (Status.QUEUED, "why_waiting"),
    (Status.EXPIRED, "why_expired"),
    (Status.CANCELLED, "why_cancelled"),
    (Status.SKIPPED, "why_opted_out"),
)


class StatusView:
    """Shows a history. Pure."""

    def __init__(self, button_data: ButtonData, timezone: tzinfo) -> None:
        self._button_data = button_data
        self._timezone = timezone

    def reply(self, history: History, followed: StatusTask, notice: str = "") -> Reply:
        """Return the text and the buttons of the message that shows the delivery."""
        return Reply(self._text(history, followed.locale), self._buttons(history, followed), followed.message, notice)

    def _text(self, history: History, locale: str) -> str:
        counts = history.counts
        is_moved = history.moved_from is not None and history.state is DeliveryState.SCHEDULED
        lines = [
            text(f"status_{verdict_name(history)}", locale, time=moment(history.deliver_at, self._timezone)),
            *([text("status_moved", locale)] if is_moved else []),
            text("status_counts", locale, people=counts["recipients"], reached=counts["reached"]),
            *(_channel_line(channel, record.counts, locale) for channel, record in history.channels.items()),
        ]
        return "\n".join(line for line in lines if line)

    def _buttons(self, history: History, followed: StatusTask) -> Buttons:
        shown: list[list[Button]] = []
        if history.state is DeliveryState.SCHEDULED:
            shown.append([self._button("button_cancel_delivery", "cancel", history, followed)])
        if history.finished_at and history.counts.get(Status.FAILED):
            shown.append([self._button("button_retry", "retry", history, followed)])
        if history.finished_at and history.counts["reached"] < history.counts["recipients"]:
            shown.append([self._button("button_missed", "missed", history, followed)])
        return shown

    def _button(self, name: str, action: str, history: History, followed: StatusTask) -> Button:
        content = f"d.{action}.{history.key.shard}.{history.key.ns}"
        return Button(text(name, followed.locale), self._button_data.sign(followed.channel, followed.address, content))


def _channel_line(channel: str, counts: Mapping[Status, int], locale: str) -> str:
    """Return what a channel has done; "" for a channel in which no recipient has a contact."""
    words = [
        f"{text(f'count_{status}', locale)} {count}"
        for status, count in counts.items()
        if count and status not in (Status.NO_CONTACT, Status.SKIPPED)
    ]
    return f"{channel}: {', '.join(words)}" if words else ""


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
        missed = await self._missed_people(key)
        lines = [f"{_name(one)} – {text(_why(one), followed.locale)}" for one in missed[:_NAMES]]
        if len(missed) > _NAMES:
            lines.append(text("missed_more", followed.locale, count=len(missed) - _NAMES))
        head = text("missed_people" if missed else "missed_nobody", followed.locale, count=len(missed))
        return Reply("\n".join([head, *lines]))

    async def _missed_people(self, key: HistoryKey) -> Sequence[RecipientRecord]:
        cursor, missed = None, list[RecipientRecord]()
        while True:
            page = await self._services.core.deliveries.read(key, self._services.tenant, cursor, _PAGE)
            missed += [one for one in page.recipients if not one.received_in]
            cursor = page.next
            if cursor is None:
                return missed


def _name(one: RecipientRecord) -> str:
    return (one.name or str(one.id))[:_MOST_OF_NAME]


def _why(one: RecipientRecord) -> str:
    """Return the name of the text that explains why a person was not reached."""
    outcomes = list(one.outcomes.values())
    if any(outcome.reason == Reason.BLOCKED for outcome in outcomes):
        return "why_blocked"
    statuses = {outcome.status for outcome in outcomes}
    return next((name for status, name in _WHY if status in statuses), "why_no_contact")
