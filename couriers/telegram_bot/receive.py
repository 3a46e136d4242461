"""Receives what people write to a bot in Telegram: by long poll, or by the webhook of ADA_BOT_WEBHOOK_URL.

An update that was polled is confirmed by the next call. Telegram keeps what is not confirmed for a day, so no position
is stored.

Answers presses of buttons, shows that the bot is writing, changes buttons, and fetches files.
"""

import asyncio
import io
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

from msgspec.structs import replace

from core.threads.files import MOST_BYTES, FilesUnavailable, ReceivedFile, fetchable, type_of
from core.updates.bot_calls import BotCall, ButtonChange, PressAnswer, TypingMark
from core.updates.events import Event
from couriers.receiving.poller import Page
from couriers.receiving.receiver import Receiver, WebhookReceiver
from couriers.telegram_bot import TOKEN_REFUSED, BotTokenRefused, TelegramUnavailable
from couriers.telegram_bot.client import WRONG_TOKEN, BotClient, Unreadable, check_token, setup_errors
from couriers.telegram_bot.courier import Settings
from couriers.telegram_bot.events import ALLOWED
from couriers.telegram_bot.library import TelegramMethod, exceptions, methods
from couriers.telegram_bot.requests import inline_keyboard

log = logging.getLogger(__name__)

_LONGEST = 200
"""Characters of the answer to a press."""


class TelegramCalls:
    """Makes the calls as one bot."""

    def __init__(self, client: BotClient) -> None:
        self._client = client

    async def make(self, call: BotCall) -> bool:
        """Make a call, which ends the clock on a button, shows for five seconds that the bot is writing, or changes
        buttons. Returns False if Telegram was not reached; a throttle is waited for only to change buttons: the clock
        ends by itself.
        """
        try:
            if isinstance(call, PressAnswer) and call.names_bot:
                call = await self._with_name(call)
            await self._client(_request(call))
        except (exceptions.TelegramBadRequest, exceptions.TelegramRetryAfter) as refusal:
            log.debug("%s: Telegram refused it: %s", call, refusal.message)
            return not (isinstance(call, ButtonChange) and isinstance(refusal, exceptions.TelegramRetryAfter))
        except exceptions.TelegramForbiddenError:
            raise
        except exceptions.AiogramError as fault:  # its text can have the token
            log.debug("%s is repeated: %s", call, type(fault).__name__)
            return False
        return True

    async def _with_name(self, call: PressAnswer) -> PressAnswer:
        """Return the answer with the address at which a private chat with the bot begins. Raises AiogramError."""
        bot = await self._client(methods.GetMe())
        return replace(call, text=f"{call.text}\nt.me/{bot['username']}?start=link")


class TelegramFiles:
    """Fetches the files of messages to one bot."""

    def __init__(self, client: BotClient) -> None:
        self._client = client

    async def fetch(self, event: Event, most: int) -> AsyncIterator[ReceivedFile]:
        """Emit the first files of a message. Raises FilesUnavailable."""
        for one in fetchable(event)[:most]:
            if data := await self._data(str(one["file_id"])):
                yield ReceivedFile(type_of(one), str(one.get("file_name") or ""), data)

    async def _data(self, file_id: str) -> bytes:
        """Return a file; an empty one if Telegram does not return it, because it is gone or too large."""
        target = io.BytesIO()
        try:
            found = await self._client(methods.GetFile(file_id=file_id))
            if found.get("file_size", 0) <= MOST_BYTES and found.get("file_path"):
                await self._client.download(found["file_path"], target)
        except exceptions.TelegramBadRequest:
            return b""
        except exceptions.AiogramError as fault:  # its text can have the token
            raise FilesUnavailable(type(fault).__name__) from None
        return target.getvalue()


def _request(call: BotCall) -> TelegramMethod[Any]:
    if isinstance(call, TypingMark):
        return methods.SendChatAction(chat_id=call.chat_id, action="typing")
    if isinstance(call, ButtonChange):
        message, markup = int(call.message_id), inline_keyboard(call.rows)
        return methods.EditMessageReplyMarkup(chat_id=call.chat_id, message_id=message, reply_markup=markup)
    text, alert = call.text[:_LONGEST] or None, call.alert or None
    return methods.AnswerCallbackQuery(callback_query_id=call.id, text=text, show_alert=alert)


TIMEOUT = 25
"""Seconds that Telegram waits for an update."""
_LIMIT = 100
_AFTER_CONFLICT = 2.0
_AFTER_FAULT = 1.0
_LONGEST_PAUSE = 15.0


class TelegramLongPoll:
    """One per process and bot. `caught_up`: is set when it has got all updates that waited."""

    faults: tuple[type[Exception], ...] = (TelegramUnavailable,)

    def __init__(self, client: BotClient) -> None:
        self._client = client
        self.caught_up = asyncio.Event()
        self._may_have_webhook = True
        self._faults = 0

    async def sign_in(self) -> str:
        """End a webhook, beside which Telegram refuses polling; return the bot's id. Raises TelegramUnavailable,
        BotTokenRefused.
        """
        try:
            await self.end_webhook()
        except WRONG_TOKEN:
            raise BotTokenRefused(TOKEN_REFUSED) from None
        except exceptions.AiogramError as fault:
            raise TelegramUnavailable(f"Telegram is asked again ({type(fault).__name__})") from None
        return str(self._client.id)

    async def end_webhook(self) -> None:
        """End a webhook, once. Raises AiogramError."""
        if self._may_have_webhook:
            await self._client(methods.DeleteWebhook())
        self._may_have_webhook = False

    async def poll(self, position: str) -> Page:
        """Return the next updates; after a fault, which is waited out, none. Raises BotTokenRefused."""
        updates = await self._next(int(position) if position else None)
        if updates is None:
            return Page((), position)
        if len(updates) < _LIMIT:
            self.caught_up.set()
        # all is confirmed without updates; after a week the next id is a random one, perhaps before the position
        return Page(updates, str(updates[-1]["update_id"] + 1) if updates else "")

    async def _next(self, offset: int | None) -> Sequence[Mapping[str, Any]] | None:
        """Return the next updates; None after a fault, which is waited out. Raises BotTokenRefused."""
        try:
            updates = await self._get(offset)
        except WRONG_TOKEN:
            raise BotTokenRefused(TOKEN_REFUSED) from None
        except exceptions.TelegramConflictError as refusal:
            log.warning("another program polls as this bot: %s", refusal.message)
            await asyncio.sleep(_AFTER_CONFLICT)
        except exceptions.TelegramRetryAfter as refusal:
            await asyncio.sleep(refusal.retry_after)
        except exceptions.AiogramError as fault:
            await self._wait_out(fault)
        else:
            self._faults = 0
            return updates
        return None

    async def _get(self, offset: int | None) -> Sequence[Mapping[str, Any]]:
        """Return the next updates, each with its number; one without it is passed over, and confirmed with the next
        one. Raises AiogramError.
        """
        timeout = TIMEOUT if self.caught_up.is_set() else 0
        updates = await self._client(
            methods.GetUpdates(offset=offset, limit=_LIMIT, timeout=timeout, allowed_updates=list(ALLOWED))
        )
        if not isinstance(updates, list):
            raise Unreadable("getUpdates")
        numbered = [update for update in updates if _is_numbered(update)]
        if updates and not numbered:
            raise Unreadable("getUpdates")
        return numbered

    async def _wait_out(self, fault: Exception) -> None:
        """Pause after a fault. Only its kind is logged: its text can contain the token."""
        self._faults += 1
        pause = min(_LONGEST_PAUSE, _AFTER_FAULT * 2 ** min(self._faults - 1, 10))
        log.warning("no updates (%s), again in %s s", type(fault).__name__, pause)
        await asyncio.sleep(pause)


def _is_numbered(update: Any) -> bool:
    return isinstance(update, dict) and isinstance(update.get("update_id"), int)


class TelegramWebhook(WebhookReceiver):
    """The webhook of a bot. Telegram keeps it until it is set again."""

    path = "/v1/inbound/telegram"
    url_setting = "ADA_BOT_WEBHOOK_URL"
    secret_setting = "ADA_INBOUND_TELEGRAM_SECRET"

    async def set(self, client: BotClient) -> None:
        """Set where Telegram posts updates. Any number of processes may do so. Raises AiogramError."""
        await client(methods.SetWebhook(url=self.address, secret_token=self.secret, allowed_updates=list(ALLOWED)))


def open_receiver(settings: Settings, *, polls: bool) -> Receiver:
    """Return the bot; without a webhook, or with `polls`, it is polled. Raises SetupError for a malformed token, and
    for a webhook whose URL or secret cannot be used.
    """
    url = None if polls else settings.webhook_url
    webhook = TelegramWebhook(url, settings.webhook_secret or "") if url else None
    client = BotClient(settings.token, settings.api_url)
    source = TelegramLongPoll(client)
    return Receiver(
        client,
        BotTokenRefused,
        client.close,
        source=None if webhook else source,
        make=TelegramCalls(client).make,
        fetch=TelegramFiles(client).fetch,
        begin=partial(_begin, client, webhook, source),
        keeps_position=True,
        id_of=itemgetter("update_id"),
        caught_up=None if webhook else source.caught_up,
    )


async def _begin(client: BotClient, webhook: TelegramWebhook | None, source: TelegramLongPoll) -> str:
    """Check the token; set the webhook, or end one, beside which Telegram refuses polling. Raises SetupError."""
    account = await check_token(client)
    with setup_errors():
        await (webhook.set(client) if webhook else source.end_webhook())
    return account
