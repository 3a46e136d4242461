"""Calls before the message is sent: uploads, edits, removals. They may be made twice, so nothing is unclear then."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from couriers.max import outcomes
from couriers.max.client import FAILURES, MaxClient
from couriers.max.pauses import Throttles
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


class MaxCallRefused(Exception):
    """MAX refuses this call for good; other calls may go on."""


class MaxCallDeferred(Exception):
    """This call cannot be made now, so the message is not sent now. `outcome`: what that means for the message."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(getattr(outcome, "detail", ""))
        self.outcome = outcome


class MaxCaller:
    """Makes the calls, and says what a failure means for the message."""

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
