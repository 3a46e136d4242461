"""MAX through its Bot API with plain aiohttp.

It sends as the bot of ADA_MAX_TOKEN to people who have started that bot, and to groups that have it. An address is the
id of a person, or the negative id of a group. The table of MAX's answers is in `outcomes.py`.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from couriers.announcing_connector import announcing
from couriers.max import outcomes
from couriers.max.calls import MaxCallDeferred, MaxCaller, MaxCallRefused, MaxUploads
from couriers.max.channel import CHANNEL as RECORD
from couriers.max.client import FAILURES, MaxClient, Settings, check_token
from couriers.max.content import LIMITS as KEYBOARD
from couriers.max.content import LONGEST, Body, MaxDraft, draft, edited_body, files_of
from couriers.max.pauses import Repetitions, Throttles
from couriers.max.presence import Presence
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

__all__ = ["Max", "Settings", "open"]

Json = dict[str, Any]

INVALID_ADDRESS = Rejected(Reason.RECIPIENT_UNREACHABLE, "not the id of a person or group of MAX")
NOTHING_LEFT = Rejected(Reason.CONTENT_REFUSED, "nothing is left that MAX can show")

_NOT_READY_PAUSES = (1, 2, 4, 8, 16, 32, *[60] * 14)
"""Seconds: MAX processes an uploaded file for a quarter of an hour at most."""
_NOT_STARTED_PAUSES = (2,)
"""Seconds: just after its start a dialog may not be found."""


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
        return frozenset() if KEYBOARD.fits(content) else frozenset({Feature.INLINE, Feature.REPLY})

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
