"""The messages that show people what becomes of their deliveries: ordered as replies, changed by edits (C-115).

Guarantees: any process goes on where another has stopped. A message is changed at most once a second. Edits keep their
order, as all messages of a chat do.
"""

from datetime import UTC, datetime, timedelta, tzinfo
from hashlib import blake2b

from msgspec.structs import replace

from core.errors import NotFound
from core.model.content import ParseMode
from core.model.delivery import Repeat
from core.model.history import History
from core.model.history_key import HistoryKey
from core.model.text.text_entities import escaped
from core.orders.following import SendLater, StatusHandler, StatusTask, StatusTasks
from core.queue import Attempt, QueueClient, Result
from core.services import Services
from scenarios.sending.message import MessageAttributes, content_of, message
from scenarios.sending.orders import Chat, reply_to
from scenarios.sending.status import data_of, status_buttons, status_text

BOTS = "scenarios"
"""The tube of the statuses is that of all bots of scenarios."""

PATIENCE = timedelta(hours=1)
"""After the release a channel without editing gets the status as it is, if the end has not come by then."""

_SOON = timedelta(seconds=1)


def status_message(history: History, language: str, timezone: tzinfo) -> MessageAttributes:
    """Return the message that shows a delivery, with its buttons."""
    buttons = [
        ({"text": label, "data": data_of(verb, history.key)},) for verb, label in status_buttons(history, language)
    ]
    return MessageAttributes(escaped(status_text(history, language, timezone), ParseMode.HTML), inline=tuple(buttons))


async def follow(client: QueueClient, tenant: str, followed: StatusTask) -> None:
    """Show a delivery from now on; a repeat changes nothing. `followed.message`: the id of the message to change, the
    key of its delivery while the id is not known, "" in a channel without editing.
    """
    await StatusTasks(client, tenant, BOTS).begin(followed, followed.name)


class FollowedDeliveries:
    """Those of one tenant's bot."""

    def __init__(self, core: Services, tenant: str, timezone: tzinfo) -> None:
        self._core = core
        self._tenant = tenant
        self._timezone = timezone
        self._handler = StatusHandler(core.tracker, tenant, self._show, self._edit)

    async def handle(self, attempt: Attempt) -> Result:
        """Look at a delivery once. Raises Refused."""
        return await self._handler.handle(attempt)

    def _show(self, history: History, followed: StatusTask) -> MessageAttributes:
        if not followed.message and not _is_over(history):
            return MessageAttributes(followed.shown)
        return status_message(history, followed.locale, self._timezone)

    async def _edit(self, followed: StatusTask, shown: MessageAttributes) -> bool:
        """Order the change. Returns False if the message can never be changed again."""
        edited = await self._message_id(followed.message) if followed.message else ""
        said = message(shown)
        if said is None or (followed.message and not edited):
            return False
        content = content_of(said, (), {}, same_chat=False)
        chat = Chat(self._tenant, followed.channel, followed.address, followed.origin or followed.channel)
        now = datetime.now(UTC) + timedelta(milliseconds=self._core.store.clock_offset_ms)
        order, caller = reply_to(chat, said.text, replace(content, edit=edited), now)
        name = f"{followed.name}:status:{followed.reported}:{followed.key}"
        await self._core.sending.send(order, caller, Repeat(f"{name}:{_digest(said.text)}", "scenario", is_own=True))
        return bool(edited)

    async def _message_id(self, message: str) -> str:
        """Return the id of the message to change; "" if it was not sent. Raises SendLater while it is under way."""
        if not message.startswith("history:"):
            return message
        try:
            history = await self._core.deliveries.read(HistoryKey.parse(message), self._tenant)
        except NotFound:
            return ""
        if history.finished_at is None:
            raise SendLater(_SOON)
        found = [one.reference for who in history.recipients for one in who.outcomes.values() if one.reference]
        return found[-1].rpartition(",")[2] if found else ""


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=8).hexdigest()


def _is_over(history: History) -> bool:
    """Return whether a channel without editing gets the status now."""
    is_overdue = history.released_at is not None and datetime.now(UTC) > history.released_at + PATIENCE
    return history.finished_at is not None or is_overdue
