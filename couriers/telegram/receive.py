"""What people write to a bot that signs in over MTProto: private messages, edits, and presses of buttons.

Telegram pushes each update to all connections of a bot, and keeps messages and edits in an order. A push is only a
signal here: messages are read by updates.getDifference from a position on, which `couriers.receiving.poller` stores, so
nothing is lost while no process runs, and one process reads. Telegram does not keep presses: each process hands on
those that are pushed to it, and a press while none runs is lost. Source: core.telegram.org/api/updates.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace
from telethon import utils
from telethon.errors import BadRequestError, FloodWaitError, ForbiddenError
from telethon.tl import functions, types

from core.threads.files import MOST_BYTES, FilesUnavailable, ReceivedFile, fetchable, type_of
from core.updates.bot_calls import BotCall, ButtonChange, TypingMark
from core.updates.events import Event
from couriers.receiving.poller import Page
from couriers.sending import Content, Outcome
from couriers.telegram.channel import CHANNEL
from couriers.telegram.connection import FAILURES, SERVICE_ACCOUNTS, AccountClient, TelegramConnection
from couriers.telegram.content import keyboard
from couriers.telegram.peers import Peers

log = logging.getLogger(__name__)

FLOOR_SECONDS = 15
"""The position is asked for at least this often, for a push that was lost with a connection."""
_DOWNLOAD_SECONDS = 120.0
_LONGEST_ANSWER = 200
"""Characters of the answer to a press."""


class MtprotoBot:
    """Implements `couriers.sending.bot_replies.BotAccount` and `couriers.receiving.poller.Source`."""

    faults = FAILURES

    def __init__(self, account: str, client: AccountClient, connection: TelegramConnection, peers: Peers) -> None:
        self._account = account
        self._client, self._connection, self._peers = client, connection, peers

    async def sign_in(self) -> str:
        """Return the name of the account among all that are polled: the Bot API polls under the bot's id."""
        return f"{CHANNEL.name}.{self._account}"

    async def poll(self, position: str) -> Page:
        """Return what people have written since a position; without one, from now on. Raises FAILURES."""
        await self._connection.connect()
        while True:
            self._client.news.clear()
            if not position:
                return Page((), _position(await self._connection.request(functions.updates.GetStateRequest())))
            answer = await self._difference(position)
            if not isinstance(answer, types.updates.DifferenceEmpty):
                return _page(answer, position)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._client.news.wait(), FLOOR_SECONDS)
            await self._connection.connect()

    async def _difference(self, position: str) -> Any:
        pts, date, qts = map(int, position.split())
        since = datetime.fromtimestamp(date, UTC)
        return await self._connection.request(functions.updates.GetDifferenceRequest(pts, since, qts))

    async def presses(self) -> AsyncIterator[Event]:
        """Emit the presses of buttons that are pushed to this process, until cancelled."""
        while True:
            yield _press(await self._client.presses.get())

    async def fetch(self, event: Event, most: int) -> AsyncIterator[ReceivedFile]:
        """Emit the first files of a message. Raises FilesUnavailable."""
        for one in fetchable(event)[:most]:
            if data := await self._data(int(one["file_id"])):
                yield ReceivedFile(type_of(one), str(one.get("file_name") or ""), data)

    async def _data(self, message_id: int) -> bytes:
        """Return the file of a message; an empty one if it is gone or too large. Raises FilesUnavailable."""
        try:
            await self._connection.connect()
            wanted = functions.messages.GetMessagesRequest([types.InputMessageID(message_id)])
            (message,) = (await self._connection.request(wanted)).messages
            media = getattr(message, "media", None)
            if media is None or _size(media) > MOST_BYTES:
                return b""
            loading = self._client.download_media(message, bytes)
            return await self._connection.call(loading, _DOWNLOAD_SECONDS) or b""
        except BadRequestError:
            return b""
        except FAILURES as fault:
            raise FilesUnavailable(type(fault).__name__) from None

    async def make(self, call: BotCall) -> bool:
        """Answer a press, show that the bot is writing, or change buttons. Returns False if Telegram was not reached; a
        throttle is waited for only to change buttons: the clock on a button ends by itself.
        """
        try:
            await self._connection.connect()
            if (request := await self._request(call)) is not None:
                await self._connection.request(request)
        except (BadRequestError, ForbiddenError) as refusal:
            log.debug("%s: Telegram refused it: %s", call, refusal)
        except FloodWaitError:
            return not isinstance(call, ButtonChange)
        except FAILURES as fault:
            log.debug("%s is repeated: %s", call, type(fault).__name__)
            return False
        return True

    async def _request(self, call: BotCall) -> Any:
        """Return the request of a call; None if its chat is not found. Raises FAILURES."""
        if isinstance(call, TypingMark | ButtonChange):
            peer = await self._peers.find(str(call.chat_id))
            if isinstance(peer, Outcome):
                return None
            if isinstance(call, TypingMark):
                return functions.messages.SetTypingRequest(peer, types.SendMessageTypingAction())
            markup = keyboard(Content(inline=call.rows))
            return functions.messages.EditMessageRequest(peer, int(call.message_id), reply_markup=markup)
        if call.names_bot:
            bot = await self._connection.call(self._client.get_me())
            call = replace(call, text=f"{call.text}\nt.me/{bot.username}?start=link")
        text, alert = call.text[:_LONGEST_ANSWER] or None, call.alert or None
        return functions.messages.SetBotCallbackAnswerRequest(int(call.id), cache_time=0, message=text, alert=alert)


def _page(answer: Any, position: str) -> Page:
    if isinstance(answer, types.updates.DifferenceTooLong):
        log.warning("Telegram keeps no updates since %s: what people wrote to the bot before is not read", position)
        _, date, qts = position.split()
        return Page((), f"{answer.pts} {date} {qts}")
    state = answer.intermediate_state if isinstance(answer, types.updates.DifferenceSlice) else answer.state
    return Page([*_events(answer)], _position(state))


def _position(state: Any) -> str:
    return f"{state.pts} {int(state.date.timestamp())} {state.qts}"


def _events(difference: Any) -> Iterable[Event]:
    """Emit the events of what people wrote to the bot, or edited."""
    people = {one.id: one for one in difference.users}
    edited = [one.message for one in difference.other_updates if isinstance(one, types.UpdateEditMessage)]
    for kind, messages in (("text", difference.new_messages), ("edited", edited)):
        yield from (_written(kind, one, people) for one in messages if _is_of_person(one, people))


def _is_of_person(message: Any, people: Mapping[int, Any]) -> bool:
    """Return whether a person has written a message in a private chat."""
    if not isinstance(message, types.Message) or message.out or not isinstance(message.peer_id, types.PeerUser):
        return False
    user = message.peer_id.user_id
    return user not in SERVICE_ACCOUNTS and not getattr(people.get(user), "bot", None)


def _written(kind: str, message: Any, people: Mapping[int, Any]) -> Event:
    user, at = message.peer_id.user_id, message.date
    name = f"{user}.{message.id}"
    if kind == "edited":
        at = message.edit_date or at
        name = f"{name}.{int(at.timestamp())}"
    quoted = getattr(message.reply_to, "reply_to_msg_id", None)
    return {
        "id": name,
        "kind": kind,
        **_head(user, people.get(user)),
        "chat_id": user,
        "chat_type": "private",
        "message_id": message.id,
        "event_text": message.message or "",
        "event_date": at.isoformat(),
        "attachments": _attachments(message),
        **({"reply_message_id": str(quoted), "is_reply": True} if quoted else {}),
        **({"is_forward": True} if message.fwd_from else {}),
        **({"media_group_id": message.grouped_id} if message.grouped_id else {}),
    }


def _press(press: Any) -> Event:
    chat = utils.get_peer_id(press.peer)
    return {
        "id": f"press.{press.query_id}",
        "kind": "callback",
        **_head(press.user_id, None),
        "chat_id": chat,
        "chat_type": "private" if isinstance(press.peer, types.PeerUser) else "supergroup",
        "message_id": press.msg_id,
        "callback_id": str(press.query_id),
        "callback_data": (press.data or b"").decode(errors="replace"),
        "event_date": datetime.now(UTC).isoformat(),
    }


def _head(user: int, person: Any) -> dict[str, Any]:
    names = {"username": "username", "first_name": "first_name", "last_name": "last_name", "lang_code": "language_code"}
    known = {ours: value for theirs, ours in names.items() if (value := getattr(person, theirs, None))}
    return {"channel": CHANNEL.name, "user_id": user, "is_bot": False, **known}


def _attachments(message: Any) -> Sequence[Mapping[str, Any]]:
    """Return the files of a message. The id of each is that of its message, which is read again to fetch it."""
    media = message.media
    if isinstance(media, types.MessageMediaContact):
        return [{"type": "contact"}]
    if isinstance(media, types.MessageMediaPhoto):
        return [{"type": "photo", "file_id": str(message.id)}]
    if not isinstance(media, types.MessageMediaDocument):
        return []
    attributes = {type(one): one for one in getattr(media.document, "attributes", None) or ()}
    named = attributes.get(types.DocumentAttributeFilename)
    name = {"file_name": named.file_name} if named else {}
    return [{"type": _kind(attributes), "file_id": str(message.id), **name}]


def _kind(attributes: Mapping[type, Any]) -> str:
    if types.DocumentAttributeSticker in attributes:
        return "sticker"
    if types.DocumentAttributeAnimated in attributes:
        return "animation"
    if video := attributes.get(types.DocumentAttributeVideo):
        return "video_note" if video.round_message else "video"
    if audio := attributes.get(types.DocumentAttributeAudio):
        return "voice" if audio.voice else "audio"
    return "document"


def _size(media: Any) -> int:
    """Return the bytes of a file, 0 if they are not known: those of a photo are few."""
    return int(getattr(getattr(media, "document", None), "size", None) or 0)
