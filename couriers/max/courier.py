"""MAX through its Bot API with plain aiohttp.

It sends as the bot of ADA_MAX_TOKEN to people who have started that bot, and to groups that have it. An address is the
id of a person, or the negative id of a group. The table of MAX's answers is in `outcomes.py`.

A message whose answer was lost is searched for in its chat. This can prove that the message is there, never that it is
not: MAX may store it a moment later. A message counts as found if the bot sent it since the call began, its text is the
same, and it belongs to no other call: no answer has named it, and this process had no other call with this text to this
address under way, and none whose end is unknown. What another process sent with the same text to the same person within
these seconds cannot be distinguished (docs/decisions/0116).
"""

import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from couriers.max import outcomes
from couriers.max.calls import MaxCallDeferred, MaxCaller, MaxCallRefused, MaxUploads, Repetitions, Throttles
from couriers.max.channel import CHANNEL as RECORD
from couriers.max.client import FAILURES, MaxClient, Settings, check_token
from couriers.max.content import LIMITS as KEYBOARD
from couriers.max.content import LONGEST, Body, MaxDraft, draft, edited_body, files_of
from couriers.provider_calls import announcing
from couriers.sending import (
    NEVER,
    Content,
    Deferred,
    Feature,
    KnownIds,
    Limits,
    Message,
    MessageFiles,
    Outcome,
    Partly,
    Reason,
    Rejected,
    Sent,
    Unknown,
    malformed,
)

_LOOKED_AT = 50
_EARLIER_MS = 1000
"""The greatest lag of MAX's clock behind ours."""
_KEPT = 10_000

Json = dict[str, Any]
K = TypeVar("K")

__all__ = ["Max", "Settings", "open"]
INVALID_ADDRESS = Rejected(Reason.RECIPIENT_UNREACHABLE, "not the id of a person or group of MAX")
NOTHING_LEFT = Rejected(Reason.CONTENT_REFUSED, "nothing is left that MAX can show")
_NOT_READY_PAUSES = (1, 2, 4, 8, 16, 32, *[60] * 14)
"""Seconds: MAX processes an uploaded file for a quarter of an hour at most."""
_NOT_STARTED_PAUSES = (2,)
"""Seconds: just after its start a dialog may not be found."""


class PresenceCall:
    """One call that sends. `is_alone`: no other one with this text to this address was under way meanwhile."""

    def __init__(self) -> None:
        self.began_ms = time.time_ns() // 1_000_000
        self.is_alone = True


class Presence:
    """The search of one courier. `dialogs`: the id of the dialog by the id of the person, as the answers name it."""

    def __init__(self, client: MaxClient, dialogs: KnownIds, bot: str) -> None:
        self._client = client
        self._dialogs = dialogs
        self._bot = bot
        self._under_way: dict[tuple[str, str], list[PresenceCall]] = {}
        self._named: OrderedDict[str, None] = OrderedDict()
        self._unknown: OrderedDict[tuple[str, str], None] = OrderedDict()

    @contextmanager
    def call(self, address: str, text: str) -> Iterator[PresenceCall]:
        """Note a call while it is under way."""
        key, call = (address, text), PresenceCall()
        others = self._under_way.setdefault(key, [])
        others.append(call)
        if len(others) > 1 or key in self._unknown:
            for one in others:
                one.is_alone = False
        try:
            yield call
        finally:
            others.remove(call)
            if not others:
                self._under_way.pop(key, None)

    def learn(self, address: str, message: Json) -> None:
        """Note a message that an answer names, and the id of its dialog."""
        _keep(self._named, message["body"]["mid"])
        chat = message.get("recipient", {}).get("chat_id")
        if isinstance(chat, int) and not address.startswith("-"):
            self._dialogs.store(address, str(chat))

    async def find(self, address: str, text: str, call: PresenceCall) -> str:
        """Return the id of the message, "" if its presence is not proven."""
        found = await self._find(address, text, call)
        if found:
            _keep(self._named, found)
        else:
            _keep(self._unknown, (address, text))
        return found

    async def _find(self, address: str, text: str, call: PresenceCall) -> str:
        chat = address if address.startswith("-") else self._dialogs.get(address)
        if not (chat and text):
            return ""
        try:
            answer = await self._client.request("GET", "messages", {"chat_id": chat, "count": str(_LOOKED_AT)})
        except FAILURES:
            return ""
        found = next((mid for mid in self._mids(answer.body, text, call) if mid not in self._named), "")
        return found if call.is_alone else ""  # another one may have begun meanwhile

    def _mids(self, body: Any, text: str, call: PresenceCall) -> Iterator[str]:
        try:
            for one in reversed(body["messages"]):
                is_ours = str(one["sender"]["user_id"]) == self._bot
                is_new = one["timestamp"] >= call.began_ms - _EARLIER_MS
                if is_ours and is_new and one["body"]["text"].strip() == text.strip():
                    yield str(one["body"]["mid"])
        except (KeyError, TypeError, AttributeError):
            return  # not what MAX promises


def _keep(newest: "OrderedDict[K, None]", key: K) -> None:
    newest[key] = None
    if len(newest) > _KEPT:
        newest.popitem(last=False)


class Max:
    """Implements `couriers.sending.Courier`. Safe for concurrent attempts."""

    channel = "max"
    batch = 1
    parcel = 100
    remembers = NEVER
    announces: Literal[True] = True
    shows = RECORD.shows
    limits = Limits(text=LONGEST, splits=True, splits_content=True, keyboard=KEYBOARD)

    def __init__(self, account: str, client: MaxClient, files: MessageFiles, dialogs: KnownIds) -> None:
        self.account = account
        self._client, self._files = client, files
        self._throttles = Throttles()
        self._calls = MaxCaller(client, self._throttles)
        self._uploads = MaxUploads(self._calls, files)
        self._presence = Presence(client, dialogs, account)
        self._repetitions = {
            outcomes.NOT_READY: Repetitions(_NOT_READY_PAUSES),
            outcomes.NOT_STARTED: Repetitions(_NOT_STARTED_PAUSES),
        }

    def as_text(self, content: Content) -> frozenset[Feature]:
        """Return the buttons if they are too many for a keyboard."""
        return KEYBOARD.as_text(content)

    async def attempt(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        return [await self._attempt(message) for message in messages]

    async def _attempt(self, message: Message) -> Outcome:
        if malformed("max", message.address):
            return INVALID_ADDRESS
        if message.content is None:
            return await self._send(message, draft(message.text))
        try:
            return await self._show(message, message.content)
        except MaxCallDeferred as deferred:
            return deferred.outcome

    async def _show(self, message: Message, content: Content) -> Outcome:
        """Remove what is to be removed, transfer the files, then edit or send. Raises CallDeferred."""
        not_removed = () if await self._is_removed(message.address, content.remove) else (Feature.REMOVE,)
        files, missing = await self._uploads.attach(message.seed, content.attachments)
        planned = draft(message.text, content, files, [*missing, *not_removed])
        if content.edit and await self._is_edited(message, content, files):
            return Sent(content.edit, not_shown=planned.not_shown)
        return await self._send(message, planned)

    async def _is_removed(self, address: str, removed: str) -> bool:
        """Remove messages; return False if MAX refuses one. A message that is gone counts as removed."""
        done = [await self._is_done("DELETE", address, mid) for mid in filter(None, removed.split(","))]
        return all(done)

    async def _is_edited(self, message: Message, content: Content, files: Sequence[Json]) -> bool:
        """Edit the last part of a message, which has the buttons; return False if MAX refuses. Without files it keeps
        those that are there.
        """
        mid = content.edit.rpartition(",")[2]
        body = edited_body(message.text, content, files or await self._files_of(message.address, mid))
        return body is not None and await self._is_done("PUT", message.address, mid, body)

    async def _files_of(self, address: str, mid: str) -> list[Json]:
        """Return the files of a message; none if MAX does not show the message."""
        try:
            found = await self._calls.call("GET", "messages", {"message_ids": mid}, address=address)
        except MaxCallRefused:
            return []
        return [file for one in found.get("messages") or () for file in files_of(one)]

    async def _is_done(self, method: str, address: str, mid: str, body: dict[str, object] | None = None) -> bool:
        try:
            await self._calls.call(method, "messages", {"message_id": mid}, body, address)
        except MaxCallRefused as refusal:
            return method == "DELETE" and str(refusal) == outcomes.GONE
        return True

    async def _send(self, message: Message, planned: MaxDraft) -> Outcome:
        """Send the parts in order. A part that was sent is not sent again."""
        mids, not_shown = list[str](), planned.not_shown
        for body in planned.bodies:
            outcome = await self._send_one(message, body)
            if isinstance(outcome, Rejected) and outcome.reason is Reason.CONTENT_REFUSED and "link" in body.json:
                outcome = await self._send_one(message, body.without_reply())
                not_shown = (*not_shown, Feature.REPLY_TO)
            if not isinstance(outcome, Sent):
                return Partly(outcome, ",".join(mids)) if mids else outcome
            mids.append(outcome.reference)
        return Sent(",".join(mids), not_shown=not_shown) if mids else NOTHING_LEFT

    async def _send_one(self, message: Message, body: Body) -> Outcome:
        address = message.address
        with self._presence.call(address, body.shown) as call:
            outcome = await self._post(message, body)
            if isinstance(outcome, Unknown) and (mid := await self._presence.find(address, body.shown, call)):
                return Sent(mid)
        return self._with_wait(message, outcome)

    async def _post(self, message: Message, body: Body) -> Outcome:
        address = message.address
        target = {"chat_id" if address.startswith("-") else "user_id": address}
        self._throttles.begins(address)
        try:
            with announcing(message.announce):
                answer = await self._client.request("POST", "messages", target, body.json)
        except FAILURES as error:
            return outcomes.outcome_of_error(error)
        outcome = outcomes.outcome_of(answer)
        if isinstance(outcome, Sent):
            self._throttles.accepted(address)
            self._presence.learn(address, answer.body["message"])
        return outcome

    def _with_wait(self, message: Message, outcome: Outcome) -> Outcome:
        """Return the outcome with the wait that MAX did not name; what is refused at first is tried again."""
        match outcome:
            case Deferred(Reason.THROTTLED):
                return self._throttles.refused(message.address, outcome)
            case Deferred(detail=outcomes.NOT_READY):
                wait = self._repetitions[outcomes.NOT_READY].next((message.seed, message.recipient))
                return replace(outcome, after=wait) if wait else Rejected(Reason.CONTENT_REFUSED, outcome.detail)
            case Rejected(Reason.PRIVACY, detail=detail):
                wait = self._repetitions[outcomes.NOT_STARTED].next((message.seed, message.recipient))
                return Deferred(Reason.PRIVACY, wait, detail=detail) if wait else outcome
        return outcome

    async def close(self) -> None:
        await self._client.close()
        await self._files.close()


async def open(settings: Settings, directory: Path) -> Max:  # noqa: A001 - the interface's name
    """Check the token and return the courier. `directory` keeps the ids of dialogs.

    Raises SetupError if MAX cannot be reached or refuses the token.
    """
    client = MaxClient(settings.token, settings.api_url, settings.timeout, settings.ca)
    try:
        me = await check_token(client)
    except BaseException:  # whatever it is, also a cancellation: the connections are closed
        await client.close()
        raise
    files = MessageFiles(settings.most_file_mb * 2**20, allow_private=settings.allow_private)
    return Max(str(me["user_id"]), client, files, KnownIds(directory / "dialogs"))
