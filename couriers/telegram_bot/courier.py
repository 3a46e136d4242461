"""Sends messages through the Bot API. The table of Telegram's answers is in `outcomes.py`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from couriers.announcing_connector import announcing
from couriers.sending import (
    EVERY_FEATURE,
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
    malformed,
)
from couriers.telegram.keyboard import KEYBOARD, keyboards_as_text
from couriers.telegram_bot import outcomes
from couriers.telegram_bot.client import FAILURES, BotClient
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

Json = Mapping[str, Any]

INVALID_ADDRESS = Rejected(Reason.RECIPIENT_UNREACHABLE, "neither the id of a chat nor the @name of a group")


class TelegramBot:
    """Implements `couriers.sending.Courier`. Safe for concurrent attempts."""

    channel = "telegram-bot"
    batch = 1
    parcel = 100
    remembers = NEVER
    announces: Literal[True] = True
    shows = EVERY_FEATURE | {Feature.ANSWER}
    limits = Limits(text=LONGEST_TEXT, caption=LONGEST_CAPTION, splits=True, keyboard=KEYBOARD, follows_group=True)

    def __init__(self, account: str, bot: BotClient, moved_groups: KnownIds) -> None:
        self.account = account
        self._bot = bot
        self._moved_groups = moved_groups

    def as_text(self, content: Content) -> frozenset[Feature]:
        return keyboards_as_text(content) & self.shows

    async def attempt(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        return [await self._attempt(message) for message in messages]

    async def _attempt(self, message: Message) -> Outcome:
        """Remove what is to be removed, then edit or send."""
        if malformed("telegram-bot", message.address):
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
                return Partly(outcome, _reference(sent)) if sent else outcome
            sent += answer if isinstance(answer, list) else [answer]
        if not sent:
            return Rejected(Reason.CONTENT_REFUSED, f"nothing is left without {', '.join(planned.not_shown)}")
        is_no_reply = message.content and message.content.reply_to and "reply_to_message" not in sent[0]
        return Sent(_reference(sent), not_shown=planned.not_shown + ((Feature.REPLY_TO,) if is_no_reply else ()))

    async def _request(self, address: str, request: Request) -> Any:
        """Make a request; a second time if the group has become a supergroup, because then nothing was done. Raises one
        of FAILURES.
        """
        chat = self._current(address)
        try:
            return await self._bot(_to(chat, request))
        except exceptions.TelegramMigrateToChat as moved:
            chat = str(moved.migrate_to_chat_id)
            self._moved_groups.store(address, chat)
            return await self._bot(_to(chat, request))

    def _current(self, address: str) -> str:
        """Return the id of the supergroup that a group became, otherwise the address itself."""
        return self._moved_groups.get(address) or address

    async def close(self) -> None:
        await self._bot.close()


def _reference(sent: Sequence[Json]) -> str:
    return ",".join(str(message["message_id"]) for message in sent)


def _to(chat: str, request: Request) -> Request:
    return request.model_copy(update={"chat_id": chat})
