"""VK as a community. One `execute` sends up to 2,500 messages.

The table of VK's answers is in `outcomes.py`.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

from couriers.provider_calls import http_url
from couriers.sending import (
    Content,
    Feature,
    Limits,
    Message,
    MessageFiles,
    Outcome,
    ReadMark,
    Reason,
    Rejected,
    Sent,
    SetupError,
    Split,
)
from couriers.vk import outcomes
from couriers.vk.calls import MAX_CALLS, MAX_CODE, MAX_PEERS, MessageKey, execute_code, group_into_calls, message_key
from couriers.vk.channel import CHANNEL as RECORD
from couriers.vk.channel import KEYBOARD
from couriers.vk.client import FAILURES, TokenRefused, VkClient, VkError, VkUnavailable, find_community, read_marks
from couriers.vk.content import LONGEST_TEXT, Contents, RepeatableCalls, VkDraft, VkUploads

INVALID_ADDRESS = Rejected(Reason.RECIPIENT_UNREACHABLE, "not a peer id of VK")
TOO_LARGE = Split(Rejected(Reason.CONTENT_REFUSED, "more than one request can carry"))


@dataclass(frozen=True)
class Settings:
    """The fields are ADA_VK_TOKEN and so on."""

    token: str = field(repr=False)  # of a community, with the right to send messages
    api_url: str | None = None  # "…/method/" of a sandbox in place of VK
    long_poll: bool = False  # read marks; the community needs long poll with the event message_read
    timeout: timedelta = timedelta(seconds=30)  # of one request, which sends up to 2,500 messages
    most_file_mb: int = 50  # of one attachment; a larger one is not shown
    allow_private: bool = field(default=False, metadata={"setting": "ADA_WEBHOOK_ALLOW_PRIVATE"})  # addresses of files

    def __post_init__(self) -> None:
        if self.api_url:
            http_url("ADA_VK_API_URL", self.api_url)


class Vk:
    """Implements `couriers.sending.Courier`. Safe for concurrent attempts."""

    channel = "vk"
    batch = MAX_CALLS * MAX_PEERS
    parcel = batch
    most_texts = MAX_CALLS
    remembers = timedelta(hours=1)
    shows = RECORD.shows
    limits = Limits(text=LONGEST_TEXT, caption=LONGEST_TEXT, keyboard=KEYBOARD)

    def __init__(self, client: VkClient, community: int, files: MessageFiles, *, long_poll: bool = False) -> None:
        calls = RepeatableCalls(client)
        self._client, self._files = client, files
        self._contents = Contents(calls, VkUploads(calls, files))
        self._community, self._has_long_poll = community, long_poll
        self.account = f"club{community}"

    def as_text(self, content: Content) -> frozenset[Feature]:
        """Return the buttons if they are too many for a keyboard."""
        return KEYBOARD.as_text(content)

    async def attempt(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        prepared = [_plain(one) if one.content is None else await self._prepare(one, one.content) for one in messages]
        sent = await self._send([one.key for one in prepared if isinstance(one, VkDraft)])
        return [await self._outcome(one, sent) if isinstance(one, VkDraft) else one for one in prepared]

    async def _outcome(self, draft: VkDraft, sent: Mapping[MessageKey, Outcome]) -> Outcome:
        """Return the outcome of a draft; a reply to a message that is gone is sent as a message of its own."""
        if draft.otherwise and outcomes.is_parameter_refused(sent[draft.key]):
            return await self._outcome(draft.otherwise, await self._send([draft.otherwise.key]))
        return self._named(draft, sent[draft.key])

    async def _prepare(self, message: Message, content: Content) -> VkDraft | Outcome:
        """Return the draft of what is to be sent; the outcome if that is known already."""
        draft = _plain(message)
        return await self._contents.draft(draft.key, content, message.seed) if isinstance(draft, VkDraft) else draft

    def _named(self, draft: VkDraft, outcome: Outcome) -> Outcome:
        """Name the dialog of a sent message, so that a read mark finds it, and what is not shown."""
        if not isinstance(outcome, Sent) or not (self._has_long_poll or draft.not_shown):
            return outcome
        return replace(outcome, peer=str(draft.key.peer) if self._has_long_poll else "", not_shown=draft.not_shown)

    async def read_marks(self) -> AsyncIterator[ReadMark]:
        if self._has_long_poll:
            async for mark in read_marks(self._client, self._community):
                yield mark

    async def _send(self, keys: Sequence[MessageKey]) -> dict[MessageKey, Outcome]:
        calls = group_into_calls(keys)
        code = execute_code(calls)
        if len(calls) > MAX_CALLS or (len(code) > MAX_CODE and len(keys) > 1):
            return dict.fromkeys(keys, TOO_LARGE)
        if not calls:
            return {}
        try:
            return outcomes.outcomes_of(await self._client.request("execute", {"code": code}), calls)
        except VkError as error:
            return dict.fromkeys(keys, outcomes.request_outcome(error.code, len(set(keys))))
        except FAILURES as error:
            return dict.fromkeys(keys, outcomes.outcome_of_error(error))

    async def close(self) -> None:
        await self._client.close()
        await self._files.close()


def _plain(message: Message) -> VkDraft | Outcome:
    key = message_key(message)
    return INVALID_ADDRESS if key is None else VkDraft(key)


async def open(settings: Settings, directory: Path) -> Vk:  # noqa: A001 - the interface's name
    """Check the token and return the courier; `directory` is not used.

    Raises SetupError if VK cannot be reached or refuses the token.
    """
    client = VkClient(settings.token, settings.api_url, settings.timeout)
    try:
        community = await find_community(client)
    except (VkUnavailable, TokenRefused) as fault:
        await client.close()
        raise SetupError(str(fault)) from None
    except BaseException:  # whatever it is, also a cancellation: the connections are closed
        await client.close()
        raise
    files = MessageFiles(settings.most_file_mb * 2**20, allow_private=settings.allow_private)
    return Vk(client, community, files, long_poll=settings.long_poll)
