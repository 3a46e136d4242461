"""Telegram through the Bot API: channel `telegram-bot`.

It sends as the bot of ADA_BOT_TOKEN to people who have started that bot, and to groups that it is a member of. An
address is the id of a chat, or the @name of a public group. The table of Telegram's answers is in `outcomes.py`.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

from couriers.provider_calls import announcing
from couriers.sending import (
    NEVER,
    Content,
    Feature,
    KnownIds,
    Limits,
    Message,
    Outcome,
    Partly,
    Reason,
    Rejected,
    Sent,
    StoredIds,
    StoreError,
    malformed,
)
from couriers.telegram.channel import KEYBOARD
from couriers.telegram_bot import API_URL, outcomes
from couriers.telegram_bot.channel import CHANNEL as RECORD
from couriers.telegram_bot.client import FAILURES, BotClient, TopicNotMade, check_token
from couriers.telegram_bot.library import exceptions, methods
from couriers.telegram_bot.requests import (
    LONGEST_CAPTION,
    LONGEST_TEXT,
    BotRequests,
    Request,
    edit_requests,
    edited_message,
    send_requests,
)

log = logging.getLogger(__name__)

Json = Mapping[str, Any]
_LONGEST_NAME = 128
"""Characters of the name of a topic."""

INVALID_ADDRESS = Rejected(Reason.RECIPIENT_UNREACHABLE, "neither the id of a chat nor the @name of a group")


@dataclass(frozen=True)
class Settings:
    """The fields are ADA_BOT_TOKEN and so on. The token is a part of each URL, so no URL may be shown."""

    token: str = field(repr=False)
    api_url: str = API_URL
    timeout: timedelta = timedelta(seconds=30)  # of one request; after it the outcome is unknown
    webhook_url: str | None = field(default=None, metadata={"setting": "ADA_BOT_WEBHOOK_URL"})
    webhook_secret: str | None = field(default=None, repr=False, metadata={"setting": "ADA_INBOUND_TELEGRAM_SECRET"})

    def __post_init__(self) -> None:
        """Check the forms of the token and of the URL. Raises SetupError."""
        BotClient(self.token, self.api_url)


class TelegramBot:
    """Implements `couriers.sending.Courier`. Safe for concurrent attempts.

    An address `<group>#<key>#<name>` is a topic of the group: it is made, with this name, when the first message with
    this key is sent, and anew if it was deleted. A group without topics gets the message as any other.
    """

    channel = "telegram-bot"
    batch = 1
    parcel = 100
    remembers = NEVER
    announces: Literal[True] = True
    shows = RECORD.shows
    limits = Limits(text=LONGEST_TEXT, caption=LONGEST_CAPTION, splits=True, keyboard=KEYBOARD, follows_group=True)

    def __init__(self, account: str, bot: BotClient, moved_groups: KnownIds) -> None:
        self.account = account
        self._bot = bot
        self._moved_groups = moved_groups
        self.ids: StoredIds | None = None
        self._new_topic = asyncio.Lock()

    def as_text(self, content: Content) -> frozenset[Feature]:
        return KEYBOARD.as_text(content) & self.shows

    async def attempt(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        return [await self._attempt(message) for message in messages]

    async def _attempt(self, message: Message) -> Outcome:
        """Remove what is to be removed, then edit or send."""
        if malformed("telegram-bot", message.address.partition("#")[0]):
            return INVALID_ADDRESS
        if message.content is None:
            return await self._send(message, send_requests(message))
        try:
            not_removed = await self._remove(message.address, message.content)
        except FAILURES as error:
            return outcomes.outcome_before_sending(error, self._current(message.address))
        outcome = await self._edit(message, message.content) or await self._send(message, send_requests(message))
        if not_removed and isinstance(outcome, Sent):
            return replace(outcome, not_shown=(*outcome.not_shown, Feature.REMOVE))
        return outcome

    async def _remove(self, address: str, content: Content) -> bool:
        """Remove messages; return whether it was refused. A message that is gone counts as removed. Raises FAILURES."""
        ids = [int(one) for one in content.remove.split(",") if one.isdecimal()]
        if not ids:
            return bool(content.remove)
        try:
            await self._request(address, methods.DeleteMessages(chat_id=address, message_ids=ids))
        except exceptions.TelegramBadRequest as error:
            return not outcomes.is_gone(error)
        return False

    async def _edit(self, message: Message, content: Content) -> Outcome | None:
        """Edit a message; None if it cannot be edited, so that a new one is sent."""
        for request, not_shown in edit_requests(message, content):
            try:
                await self._request(message.address, request)
            except exceptions.TelegramBadRequest as error:
                if outcomes.needs_caption(error):
                    continue
                if not outcomes.is_not_modified(error):
                    return None
            except FAILURES as error:
                return outcomes.outcome_before_sending(error, self._current(message.address))
            return Sent(edited_message(content), not_shown=not_shown)
        return None

    async def _send(self, message: Message, planned: BotRequests) -> Outcome:
        """Send the parts in order. A part that was sent is not sent again."""
        sent: list[Json] = []
        for request in planned.requests:
            try:
                with announcing(message.announce):
                    answer = await self._request(message.address, request)
            except FAILURES as error:
                chat = self._current(message.address)
                outcome = outcomes.outcome_of(error, chat, is_first_part=not sent)
                return Partly(outcome, _reference(sent, message.address)) if sent else outcome
            sent += answer if isinstance(answer, list) else [answer]
        if not sent:
            return Rejected(Reason.CONTENT_REFUSED, f"nothing is left without {', '.join(planned.not_shown)}")
        is_no_reply = message.content and message.content.reply_to and "reply_to_message" not in sent[0]
        reference = _reference(sent, message.address)
        return Sent(reference, not_shown=planned.not_shown + ((Feature.REPLY_TO,) if is_no_reply else ()))

    async def _request(self, address: str, request: Request) -> Any:
        """Make a request; a second time if the group has become a supergroup, because then nothing was done. Raises one
        of FAILURES.
        """
        group, _, topic = address.partition("#")
        if topic and "message_thread_id" in type(request).model_fields:
            return await self._request_in_topic(group, topic, request)
        chat = self._current(address)
        try:
            return await self._bot(_to(chat, request))
        except exceptions.TelegramMigrateToChat as moved:
            chat = str(moved.migrate_to_chat_id)
            self._moved_groups.store(group, chat)
            return await self._bot(_to(chat, request))

    async def _request_in_topic(self, group: str, topic: str, request: Request) -> Any:
        """Make a request in a topic; in a new one if it was deleted. Raises one of FAILURES."""
        known = await self._topic(group, topic)
        try:
            return await self._request(group, _in_topic(known, request))
        except exceptions.TelegramBadRequest as error:
            if not outcomes.is_topic_gone(error):
                raise
        return await self._request(group, _in_topic(await self._topic(group, topic, gone=known), request))

    async def _topic(self, group: str, topic: str, gone: str = "") -> str:
        """Return the id of a topic, which is made if it is not known; "" for a group that has none, or in which the bot
        may not make one. `gone`: was deleted. Raises one of FAILURES.
        """
        key, _, name = topic.partition("#")
        request = methods.CreateForumTopic(chat_id=group, name=name[:_LONGEST_NAME] or key)
        async with self._new_topic:  # of several messages at once only the first makes it
            try:
                known = await self.ids.get(f"{group}#{key}") if self.ids else ""
                return known if known and known != gone else await self._new(group, key, request, gone)
            except exceptions.TelegramBadRequest as refusal:
                log.warning("telegram-bot: no topic can be made in %s: %s", group, refusal.message)
                return ""
            except (*FAILURES, StoreError) as fault:
                raise TopicNotMade(request, fault) from None

    async def _new(self, group: str, key: str, request: Request, gone: str) -> str:
        """Make a topic and return its id, or that of another process which was faster. Raises FAILURES, StoreError."""
        made = str((await self._request(group, request))["message_thread_id"])
        known = await self.ids.keep(f"{group}#{key}", made, gone) if self.ids else made
        if known != made:
            with suppress(*FAILURES):
                await self._request(group, methods.DeleteForumTopic(chat_id=group, message_thread_id=int(made)))
        return known

    def _current(self, address: str) -> str:
        """Return the id of the supergroup that a group became, otherwise the address itself."""
        group = address.partition("#")[0]
        return self._moved_groups.get(group) or group

    async def close(self) -> None:
        await self._bot.close()


def _reference(sent: Sequence[Json], address: str) -> str:
    """Return the ids of messages; in a topic with its id before each."""
    is_topic = "#" in address and "message_thread_id" in sent[0]
    return ",".join(
        f"{one['message_thread_id']}/{one['message_id']}" if is_topic else str(one["message_id"]) for one in sent
    )


def _in_topic(topic: str, request: Request) -> Request:
    return request.model_copy(update={"message_thread_id": int(topic)}) if topic else request


def _to(chat: str, request: Request) -> Request:
    return request.model_copy(update={"chat_id": chat})


async def open(settings: Settings, directory: Path) -> TelegramBot:  # noqa: A001 - the interface's name
    """Check the token and return the courier. `directory` keeps the ids of groups that became supergroups.

    Raises SetupError if the Bot API cannot be reached or refuses the token.
    """
    bot = BotClient(settings.token, settings.api_url, settings.timeout)
    try:
        account = await check_token(bot)
    except BaseException:  # whatever it is, also a cancellation: the connections are closed
        await bot.close()
        raise
    return TelegramBot(account, bot, KnownIds(directory / "migrated-groups"))
