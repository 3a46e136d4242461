"""Calls before the message is sent: uploads, edits, removals. They may be made twice, so nothing is unclear then.

MAX names no pause after a 429 without Retry-After, nor for data that appears a moment later. It takes two messages a
second in one dialog, and thirty in all: a 429 does not say which limit it means. If the dialog got its last two
messages within the second, it is that of the dialog, which then waits alone; otherwise that of the bot.
"""

import re
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Generic, TypeVar

from couriers.max import outcomes
from couriers.max.client import FAILURES, MaxClient
from couriers.sending import (
    Attachment,
    AttachmentType,
    Deferred,
    FileNotLoaded,
    Halted,
    MessageFiles,
    Outcome,
    Reason,
    Rejected,
    Scope,
    Sent,
    Transfers,
    label_of,
)

FIRST, LONGEST = 1.0, 60.0
"""Seconds; doubled with each refusal after the wait."""

_WINDOW, _IN_WINDOW = 1.0, 2
_KEPT = 10_000
_ACCOUNT = ""

V = TypeVar("V")

Json = dict[str, Any]
_TYPES = {
    AttachmentType.PHOTO: ("image",),
    AttachmentType.ANIMATION: ("image", "video"),
    AttachmentType.VIDEO: ("video",),
    AttachmentType.AUDIO: ("audio",),
    AttachmentType.VOICE: ("audio",),
}
"""The types in which MAX shows a file, if its media type is one of them too; otherwise it is a `file`."""
_TOKEN = re.compile(r"[!-~]{1,512}")


class _Newest(OrderedDict[Hashable, V], Generic[V]):
    """Keeps a bounded number of entries: those set last."""

    def __setitem__(self, key: Hashable, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > _KEPT:
            self.popitem(last=False)


@dataclass(frozen=True, slots=True)
class _Wait:
    seconds: float
    until: float


class Throttles:
    """The pauses of one courier."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._sends: _Newest[deque[float]] = _Newest()
        self._waits: _Newest[_Wait] = _Newest()

    def begins(self, address: str) -> None:
        """Note that a message to this address is about to be sent."""
        sends = self._sends.get(address) or deque(maxlen=_IN_WINDOW + 1)
        sends.append(self._clock())
        self._sends[address] = sends

    def accepted(self, address: str) -> None:
        """Note that MAX has taken a message: the next wait is a short one again."""
        for key in (address, _ACCOUNT):
            if key in self._waits and self._waits[key].until < self._clock():
                del self._waits[key]

    def refused(self, address: str, refusal: Deferred) -> Deferred:
        """Return the refusal with its scope and, if MAX names none, its wait."""
        scope = Scope.CHAT if self._is_dialog_too_fast(address) else Scope.ACCOUNT
        if refusal.after is not None:
            return replace(refusal, scope=scope)
        wait = self._wait(address if scope is Scope.CHAT else _ACCOUNT)
        return replace(refusal, scope=scope, after=timedelta(seconds=wait))

    def _is_dialog_too_fast(self, address: str) -> bool:
        """Return whether two messages went to the address within the second before the one that was refused."""
        now = self._clock()
        return sum(now - at < _WINDOW for at in self._sends.get(address, ())) > _IN_WINDOW

    def _wait(self, key: str) -> float:
        """Return the seconds to wait. Refusals during a wait belong to it and do not make it longer."""
        now, last = self._clock(), self._waits.get(key)
        if last is not None and now < last.until:
            return max(last.until - now, 0.1)
        seconds = min(last.seconds * 2, LONGEST) if last is not None else FIRST
        self._waits[key] = _Wait(seconds, now + seconds)
        return seconds


class Repetitions:
    """Waits for what is refused at first: `pauses` in seconds, one after the other, for each message."""

    def __init__(self, pauses: Sequence[float]) -> None:
        self._pauses = pauses
        self._used: _Newest[int] = _Newest()

    def next(self, message: Hashable) -> timedelta | None:
        """Return the next pause of a message; None after the last."""
        used = self._used.get(message, 0)
        if used == len(self._pauses):
            self._used.pop(message, None)
            return None
        self._used[message] = used + 1
        return timedelta(seconds=self._pauses[used])


class MaxCallRefused(Exception):
    """MAX refuses this call for good; other calls may go on."""


class MaxCallDeferred(Exception):
    """This call cannot be made now, so the message is not sent now. `outcome`: what that means for the message."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(getattr(outcome, "detail", ""))
        self.outcome = outcome


class MaxCaller:
    """Makes the calls, and turns a failure into what it means for the message."""

    def __init__(self, client: MaxClient, throttles: Throttles) -> None:
        self._client = client
        self._throttles = throttles

    async def call(
        self, method: str, path: str, query: Mapping[str, str], body: Json | None = None, address: str = ""
    ) -> Json:
        """Return the result of a call that concerns this address. Raises CallRefused, CallDeferred."""
        try:
            answer = await self._client.request(method, path, query, body)
        except FAILURES as error:
            raise MaxCallDeferred(_repeatable(outcomes.outcome_of_error(error))) from None
        outcome = outcomes.outcome_of(answer)
        is_done = answer.status == 200 and isinstance(answer.body, dict) and not answer.body.get("code")
        if isinstance(outcome, Sent) or is_done:
            return dict(answer.body)
        if isinstance(outcome, Rejected):
            raise MaxCallRefused(outcome.detail)
        if isinstance(outcome, Deferred) and outcome.reason is Reason.THROTTLED:
            outcome = self._throttles.refused(address, outcome)
        raise MaxCallDeferred(_repeatable(outcome))

    async def upload(self, url: str, name: str, media_type: str, data: bytes) -> Any:
        """Transfer a file to an address that MAX named. Raises CallRefused, CallDeferred."""
        try:
            answer = await self._client.upload(url, name, media_type, data)
        except FAILURES as error:
            raise MaxCallDeferred(_no_host(error)) from None
        if answer.status != 200:
            raise MaxCallRefused(f"the upload was refused with {answer.status}")
        return answer.body


def _no_host(error: Exception) -> Deferred:
    """Return the outcome for a host of uploads that cannot be reached: other messages go on, by another host."""
    return Deferred(Reason.PROVIDER_DOWN, None, Scope.RECIPIENT, type(error).__name__)


def _repeatable(outcome: Outcome) -> Outcome:
    if isinstance(outcome, Halted | Deferred):
        return outcome
    return Deferred(Reason.PROVIDER_DOWN, None, Scope.RECIPIENT, getattr(outcome, "detail", ""))


class MaxUploads:
    """Makes attachments of files: each is transferred once for each delivery, not for each recipient. The address of an
    upload is on another host. Source: dev.max.ru, POST/uploads.
    """

    def __init__(self, calls: MaxCaller, files: MessageFiles) -> None:
        self._calls = calls
        self._files = files
        self._transfers = Transfers[Json | None]()

    async def attach(self, seed: str, attachments: Sequence[Attachment]) -> tuple[list[Json], list[str]]:
        """Return the attachments of a message, and the files that are not shown. Raises CallDeferred."""
        named = [await self._named(seed, one) for one in attachments]
        missing = [label_of(one) for one, name in zip(attachments, named, strict=True) if name is None]
        return [one for one in named if one is not None], missing

    async def _named(self, seed: str, attachment: Attachment) -> Json | None:
        """Return one attachment; None if it cannot be shown. Raises CallDeferred."""
        if not attachment.provider_id:
            return await self._transfers.get(seed, attachment, lambda: self._transfer(attachment))
        if not _TOKEN.fullmatch(attachment.provider_id):
            return None
        return _attachment(_TYPES.get(attachment.type, ("file",))[0], attachment.provider_id)

    async def _transfer(self, attachment: Attachment) -> Json | None:
        try:
            file = await self._files.load(attachment)
            main = file.media_type.partition("/")[0]
            kind = main if main in _TYPES.get(attachment.type, ()) else "file"
            server = await self._calls.call("POST", "uploads", {"type": kind})
            body = await self._calls.upload(str(server["url"]), file.name, file.media_type, file.data)
            return _attachment(kind, _token_of(server, body))
        except (FileNotLoaded, MaxCallRefused, LookupError, TypeError):  # the last two: MAX answers something else
            return None


def _attachment(kind: str, token: str) -> Json:
    return {"type": kind, "payload": {"token": token}}


def _token_of(server: Json, body: Any) -> str:
    """Return the token of a file: of a video or sound from the first step, of a picture in `photos`. Raises
    LookupError, TypeError.
    """
    if "token" in server:
        return str(server["token"])
    if photos := body.get("photos") if isinstance(body, dict) else None:
        return str(next(iter(photos.values()))["token"])
    return str(body["token"])
