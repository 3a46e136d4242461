"""Calls that the process of a channel's bot makes at once, because it has the token: the answer to a press, the mark
that the bot is writing, other buttons below a message.

    an event ─▶ its scenario ─▶ tube `bot_calls.<channel>` ─▶ the bot's process

Guarantee: a call is made at most half a minute after it was put, or not at all: later the person gains nothing; buttons
are changed within an hour. A press has one answer.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from core.model.clock import Backoff
from core.model.content import Button
from core.queue import Attempt, NewTask, QueueClient, Result, Retry, Tube, Worker, own_name
from core.updates.events import Event, person_of

_EXPIRES = timedelta(seconds=30)
_LEASE = timedelta(seconds=5)
_ATTEMPTS = 3
_BACKOFF = Backoff(timedelta(milliseconds=500), timedelta(seconds=5))
_CONCURRENCY = 50
_CHANGE_EXPIRES, _CHANGE_ATTEMPTS = timedelta(hours=1), 1000


class PressAnswer(msgspec.Struct, frozen=True, tag="press"):
    """The answer to a press. `id`: the provider's, of the press itself. `text`: what the person sees, "" for nothing;
    with `alert` in a window, without it as a note that disappears. `names_bot`: the address of a private chat with the
    bot follows, where the channel has one that people can read.
    """

    id: str
    user_id: int | str
    chat_id: int | str
    text: str = ""
    alert: bool = False
    names_bot: bool = False


class TypingMark(msgspec.Struct, frozen=True, tag="typing"):
    """The mark that the bot is writing. `chat_id`: the provider's id of the chat."""

    chat_id: int | str


class ButtonChange(msgspec.Struct, frozen=True, tag="buttons"):
    """New buttons below a message, which stays as it is otherwise. `press`: the provider's id of the press that they
    answer, as long as it waits for an answer.
    """

    chat_id: int | str
    message_id: int | str
    rows: Sequence[Sequence[Button]]
    press: str = ""


BotCall = PressAnswer | TypingMark | ButtonChange
Make = Callable[[BotCall], Awaitable[bool]]
"""Makes a call to the provider; returns False if another attempt is to be made."""


def calls_tube(channel: str) -> str:
    return f"bot_calls.{channel}"


def calls_worker(client: QueueClient, tube: str, makers: Mapping[str, Make]) -> Worker:
    """Return a worker that makes the calls of several bots, to `run()` and to `stop()`. `makers`: by tenant; they may
    change. A call of another tenant is left to another process.
    """

    async def handle(attempt: Attempt) -> Result:
        make = makers.get(attempt.task.tenant)
        is_made = make is not None and await make(msgspec.json.decode(attempt.body, type=BotCall))
        return None if is_made else Retry()

    return client.worker(tube, handle, _CONCURRENCY, lease=_LEASE)


class BotCalls:
    """The calls in one channel of one tenant."""

    def __init__(self, client: QueueClient, tenant: str, channel: str) -> None:
        self._client = client
        self._tenant = tenant
        self._tube = calls_tube(channel)

    async def open(self) -> None:
        await self._client.tubes.create(Tube(self._tube, expires=_EXPIRES, attempts=_ATTEMPTS, backoff=_BACKOFF))

    async def answer_press(self, event: Event, text: str = "", *, alert: bool = False, names_bot: bool = False) -> bool:
        """Have the press of an event answered. Returns False if this press has an answer already, which stays. Raises
        StoreError.
        """
        person = event["user_id"]
        answer = PressAnswer(str(event["callback_id"]), person, event.get("chat_id") or person, text, alert, names_bot)
        task, source = self._task(answer, event), own_name(self._tenant, self._tube)
        return await self._client.queue.put_once(self._tube, task, source=source, name=answer.id)

    async def show_typing(self, event: Event) -> None:
        """Have the chat of an event show that the bot is writing. Raises StoreError."""
        chat = event.get("dialog_id") or event.get("chat_id") or event["user_id"]
        await self._client.queue.put(self._tube, self._task(TypingMark(chat), event))

    async def change_buttons(self, event: Event, rows: Sequence[Sequence[Button]]) -> None:
        """Have the message of a press show other buttons: once for an event, in the order of the presses. Raises
        StoreError.
        """
        chat, message = event.get("chat_id") or event["user_id"], event.get("message_id")
        if not message:
            return
        change = ButtonChange(chat, message, rows, str(event["callback_id"]))
        task = self._task(
            change,
            event,
            lane=own_name(self._tenant, f"{self._tube}:{chat}:{message}"),
            expires=datetime.now(UTC) + _CHANGE_EXPIRES,
            attempts=_CHANGE_ATTEMPTS,
        )
        source = own_name(self._tenant, f"{self._tube}.buttons")
        await self._client.queue.put_once(self._tube, task, source=source, name=str(event["id"]))

    async def change_message(self, change: ButtonChange, name: str, due: datetime) -> None:
        """Have a message show other buttons at a time, once for a name. Raises StoreError."""
        task = NewTask(
            msgspec.json.encode(change).decode(),
            self._tenant,
            lane=own_name(self._tenant, f"{self._tube}:{change.chat_id}:{change.message_id}"),
            due=due,
            expires=due + _CHANGE_EXPIRES,
            attempts=_CHANGE_ATTEMPTS,
            user=str(change.chat_id),
        )
        source = own_name(self._tenant, f"{self._tube}.buttons")
        await self._client.queue.put_once(
            self._tube, task, source=source, name=f"{name} {change.chat_id} {change.message_id}"
        )

    def worker(self, make: Make) -> Worker:
        """Return a worker that makes the calls of this tenant's bot, to `run()` and to `stop()`."""
        return calls_worker(self._client, self._tube, {self._tenant: make})

    def _task(self, call: BotCall, event: Event, **options: Any) -> NewTask:
        return NewTask(msgspec.json.encode(call).decode(), self._tenant, user=person_of(event), **options)
