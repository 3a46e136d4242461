"""The messages that show people what becomes of their deliveries: ordered as replies, changed by edits (D-17, C-115).

    follow ─▶ a task of the tube `statuses` ─▶ wait for a change ─▶ order the edit ─▶ the task again, later

Guarantees: any process goes on where another has stopped. A message is changed at most once a second and only if there
is something new; edits keep their order, as all messages of a chat do. A channel without editing gets the result once.
A delivery that is not due yet costs one read a minute, and so does an open question to which nobody answers. It is
followed for a day: later its sender gets the result when it closes.
"""

import logging
from datetime import datetime, timedelta, tzinfo
from hashlib import blake2b

import msgspec
from msgspec.structs import replace

from core.errors import AdaError, NotFound, StoreError
from core.model.clock import Backoff
from core.model.content import ParseMode
from core.model.delivery import Repeat
from core.model.history import History
from core.model.history_key import HistoryKey
from core.model.states import DeliveryState
from core.model.text.text_entities import escaped
from core.queue import Attempt, NewTask, QueueClient, Result, Retry, Tube
from core.services import Services
from scenarios.sending.message import MessageAttributes, content_of, message
from scenarios.sending.orders import Chat, may_write, reply_to
from scenarios.sending.status import data_of, is_asking, result_text, status_buttons, status_text

log = logging.getLogger(__name__)

TUBE = "statuses"
CONCURRENCY = 200

PATIENCE = timedelta(hours=1)
"""After the release a channel without editing gets the status as it is, if the end has not come by then."""

_ATTEMPTS = 1_000_000
"""Each look is an attempt: a delivery may be under way for days."""
_BACKOFF = Backoff(timedelta(seconds=1), timedelta(seconds=30))
_ASKING = timedelta(days=1)
"""So long after the release an open question is followed: providers refuse to change old messages."""
_EVERY = timedelta(seconds=1)
_RARELY = timedelta(seconds=5)
_SCHEDULED = timedelta(minutes=1)
_ANY_TIME = timedelta(days=400)
_FIRST_LOOK = timedelta(seconds=2)
"""In a channel without editing: first comes the answer that the delivery is accepted."""


class _UnderWay(AdaError):
    """The message to change is not sent yet."""


class StatusTask(msgspec.Struct, frozen=True, omit_defaults=True):
    """A delivery and where its status is shown. `message`: the id of the message to change, the key of its delivery
    while the id is not known, "" in a channel without editing. `shown`: its text; `reported`: how many channels had
    reported then; `checks`: how many reads since have found nothing new; `edits`: how often the message
    was changed. `title`: the addressee
    as the sender knows it. `name`: of the step that follows it, for the keys of its messages; `origin`: where its event
    came from. `is_limited`: the address gets only so many messages in a day.
    """

    key: str
    channel: str
    address: str
    message: str
    locale: str
    shown: str = ""
    reported: int = 0
    checks: int = 0
    edits: int = 0
    title: str = ""
    name: str = ""
    origin: str = ""
    is_limited: bool = False


def status_message(history: History, language: str, timezone: tzinfo) -> MessageAttributes:
    """Return the message that shows a delivery, with its buttons."""
    buttons = [
        ({"text": label, "data": data_of(verb, history.key)},) for verb, label in status_buttons(history, language)
    ]
    return MessageAttributes(escaped(status_text(history, language, timezone), ParseMode.HTML), inline=tuple(buttons))


def mark_of(shown: MessageAttributes) -> str:
    """Return what distinguishes a status from the one before: its text and its buttons."""
    return "\n".join([shown.text, *(button["text"] for row in shown.inline for button in row)])


def statuses_tube() -> Tube:
    """Return the tube. Its tasks do not expire: they end with the delivery, which may be due next month."""
    return Tube(TUBE, attempts=_ATTEMPTS, backoff=_BACKOFF)


async def follow(client: QueueClient, tenant: str, followed: StatusTask) -> None:
    """Show a delivery from now on; a repeat changes nothing."""
    body, person = msgspec.json.encode(followed).decode(), f"{followed.channel}:{followed.address}"
    due = None if followed.message else client.store.now() + _FIRST_LOOK
    task = NewTask(body, tenant, lane=followed.key, user=person, due=due)
    await client.queue.put_once(TUBE, task, source=TUBE, name=f"{followed.key} {followed.name}")


class FollowedDeliveries:
    """The followed deliveries of one tenant's bot. `is_stepped`: a test moves the clock; nothing is awaited."""

    def __init__(self, core: Services, tenant: str, timezone: tzinfo, *, is_stepped: bool = False) -> None:
        self._is_stepped = is_stepped
        self._core = core
        self._tenant = tenant
        self._timezone = timezone

    async def handle(self, attempt: Attempt) -> Result:
        """Look at a delivery once. Returns when to look again, until it has ended. Raises Refused."""
        followed = msgspec.json.decode(attempt.body, type=StatusTask)
        try:
            return await self._look(followed)
        except NotFound:
            return None
        except _UnderWay:
            return Retry(_EVERY)
        except StoreError as fault:
            log.warning("the status of %s is shown later: %s", followed.key, fault)
            return Retry(_RARELY)

    async def _look(self, followed: StatusTask) -> Result:
        history = await self._next(followed)
        shown = self._show(history, followed)
        if (mark := mark_of(shown)) != followed.shown and not await self._edit(followed, shown):
            return None
        if history.finished_at is not None and not (followed.message and _goes_on(history, self._core.store.now())):
            return None
        pause, seen = self._pause(history, followed), _seen(followed, history, mark)
        return Retry(pause, body=msgspec.json.encode(seen).decode())

    def _pause(self, history: History, followed: StatusTask) -> timedelta:
        """Return the time until the next look: a message is changed once a second; that of a scheduled delivery, hardly
        ever; that of a question less and less often while nobody answers.
        """
        if history.finished_at is not None:
            return min(_SCHEDULED, _EVERY * (followed.checks + 1))
        if history.state is not DeliveryState.SCHEDULED:
            return _EVERY
        left, longest = history.deliver_at - self._core.store.now(), _ANY_TIME if self._is_stepped else _SCHEDULED
        return max(_EVERY, min(longest, left + _EVERY))  # not before it is sent

    async def _next(self, followed: StatusTask) -> History:
        """Return the history after a channel has reported or the delivery has ended, or after a pause that grows while
        nothing changes. Raises NotFound.
        """
        wait = 0.0 if self._is_stepped else min(_RARELY, _EVERY * followed.checks).total_seconds()
        key = HistoryKey.parse(followed.key)
        history, _ = await self._core.tracker.wait(key, self._tenant, followed.reported + 1, wait)
        if history is None:
            raise NotFound("HISTORY_NOT_FOUND", "There is no such delivery.")
        return history

    def _show(self, history: History, followed: StatusTask) -> MessageAttributes:
        if not followed.message:
            return MessageAttributes(escaped(self._result(history, followed), ParseMode.HTML))
        return status_message(history, followed.locale, self._timezone)

    def _result(self, history: History, followed: StatusTask) -> str:
        if not _is_over(history, self._core.store.now()):
            return followed.shown
        if followed.title:
            return result_text(history, followed.locale, followed.title)
        return status_text(history, followed.locale, self._timezone)

    async def _edit(self, followed: StatusTask, shown: MessageAttributes) -> bool:
        """Order the change. Returns False if the message can never be changed again."""
        edited = await self._message_id(followed.message) if followed.message else ""
        said = message(shown)
        if said is None or (followed.message and not edited):
            return False
        content = content_of(said, (), {}, same_chat=False)
        chat = Chat(self._tenant, followed.channel, followed.address, followed.origin or followed.channel)
        content = replace(content, edit=edited)
        if followed.is_limited and not await may_write(self._core.store, chat, content):
            log.warning("the end of %s is not sent: its address has got too many messages today", followed.key)
            return False
        order, caller = reply_to(chat, said.text, content, self._core.store.now())
        name = f"{followed.name}:status:{followed.reported}.{followed.edits}:{followed.key}"
        await self._core.sending.send(order, caller, Repeat(f"{name}:{_digest(said.text)}", "scenario", is_own=True))
        return bool(edited)

    async def _message_id(self, message: str) -> str:
        """Return the id of the message to change; "" if it was not sent. Raises _UnderWay."""
        if not message.startswith("history:"):
            return message
        try:
            history = await self._core.deliveries.read(HistoryKey.parse(message), self._tenant)
        except NotFound:
            return ""
        if history.finished_at is None:
            raise _UnderWay(message)
        found = [one.reference for who in history.recipients for one in who.outcomes.values() if one.reference]
        return found[-1].rpartition(",")[2] if found else ""


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=8).hexdigest()


def _is_over(history: History, now: datetime) -> bool:
    """Return whether a channel without editing gets the status now."""
    is_overdue = history.released_at is not None and now > history.released_at + PATIENCE
    return history.finished_at is not None or is_overdue


def _seen(followed: StatusTask, history: History, mark: str) -> StatusTask:
    is_new = mark != followed.shown
    checks = 0 if is_new else min(followed.checks + 1, 100)
    return replace(followed, shown=mark, reported=history.reported, checks=checks, edits=followed.edits + is_new)


def _goes_on(history: History, now: datetime) -> bool:
    """Return whether answers to an ended delivery are still shown."""
    until = (history.released_at or history.created_at) + _ASKING
    return is_asking(history) and now < until
