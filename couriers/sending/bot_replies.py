"""What people write to a bot whose courier gets it: to the threads, to the questions of deliveries, and to opt-outs.

    a push, or a poll from the stored position ─▶ BotReplies ─▶ tube `replies` or `answers` ─▶ `core.threads`,
    `core.updates.answer_worker`

As of an account of a person (`couriers.sending.read_marks`), but all that is written in private chats: they are with a
bot. Files are fetched, presses are answered and buttons are changed here, too, because this process has the token.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any, Protocol, runtime_checkable

from core.answers import AnswerNumbers
from core.deliveries.received import Choices, ReceivedMessages
from core.directory import Directory
from core.directory.preferences import OptOuts
from core.errors import Invalid, StoreError
from core.queue import QueueClient
from core.redis.store import Store
from core.threads.files import ReceivedFile, ThreadFiles, files_worker, open_files_tube
from core.threads.incoming import forwards
from core.updates.bot_calls import BotCall, BotCalls
from core.updates.events import Event, Events, is_answer, replies_tube, sends_reply
from core.uploads import Uploads
from couriers.receiving.poller import Poller, PollerLease, Source
from couriers.sending.interface import Courier

log = logging.getLogger(__name__)

_RETRY_SECONDS = 1.0
_START = "/start"


class BotAccount(Source, Protocol):
    """A bot whose courier gets what people write. What it polls are events without a source, whose `user_id` is the
    provider's id of a person.
    """

    def presses(self) -> AsyncIterator[Event]:
        """Emit the presses of buttons as they come, until cancelled."""
        ...

    async def make(self, call: BotCall) -> bool:
        """Make a call of `core.updates.bot_calls`; return False if another attempt is to be made."""
        ...

    def fetch(self, event: Event, most: int) -> AsyncIterator[ReceivedFile]:
        """Emit the first files of a message. Raises FilesUnavailable."""
        ...


@runtime_checkable
class SignsInAsBot(Protocol):
    """A courier that may sign in as a bot has these as well. `bot`: None if the account is none, or another channel
    gets what people write to it; `replies_in`: the channel whose process gets it.
    """

    bot: BotAccount | None
    replies_in: str

    def is_account_of(self, token: str) -> bool:
        """Return whether a token is of the same bot."""
        ...

    def leave_replies_to(self, channel: str) -> None:
        """Let another channel with the same bot get what people write."""
        ...


class BotReplies:
    """One per account. `tenant`: whose bot it is. `files_limit`: bytes of all files of a tenant."""

    def __init__(self, store: Store, courier: Courier, tenant: str, files_limit: int) -> None:
        self._store = store
        self._courier = courier
        self._tenant = tenant
        self._client = QueueClient(store)
        self._received = ReceivedMessages(store)
        self._directory = Directory(store)
        self._opt_outs = OptOuts(self._directory, tenant)
        self._events = Events(
            self._client,
            tenant,
            Choices(store),
            replies_tube(),
            self._received,
            AnswerNumbers(store),
            opt_outs=self._opt_outs,
        )
        self._scenarios = Events(self._client, tenant)
        self._together = forwards(store, self._client, tenant)
        self._files = ThreadFiles(store, self._client, Uploads(store, files_limit))

    async def run(self) -> None:
        """Hand it on until cancelled. Returns at once if the courier has no bot."""
        if not isinstance(self._courier, SignsInAsBot) or self._courier.bot is None:
            return
        while True:
            try:
                await self._run(self._courier.bot)
            except Exception:  # whatever a courier raises here, its messages go on
                log.exception("%s: getting what people write failed", self._courier.channel)
            await asyncio.sleep(_RETRY_SECONDS)

    async def _run(self, bot: BotAccount) -> None:
        channel, lease = self._courier.channel, PollerLease(self._store)
        calls = BotCalls(self._client, self._tenant, channel)
        try:
            for part in (self._events, self._scenarios, calls):
                await part.open()
            await open_files_tube(self._client, channel)
        except StoreError as fault:
            log.warning("%s: what people write is not read yet: %s", channel, fault)
            return
        async with asyncio.TaskGroup() as group:
            group.create_task(lease.run())
            group.create_task(Poller(self._store, bot, self, lease).run())
            group.create_task(self._put_presses(bot))
            group.create_task(calls.worker(bot.make).run())
            group.create_task(files_worker(self._client, channel, {self._tenant: bot.fetch}, self._files).run())

    async def _put_presses(self, bot: BotAccount) -> None:
        async for press in bot.presses():
            while True:
                try:
                    await self.put(press)
                    break
                except StoreError as fault:
                    log.warning("%s: a press is not passed on yet: %s", self._courier.channel, fault)
                    await asyncio.sleep(_RETRY_SECONDS)

    async def put(self, raw: Event) -> bool:
        """Put an event, once, whichever processes get it. Returns False if it is none that is handed on. Raises
        StoreError: then it must be repeated.
        """
        account = self._courier.account
        event = {**raw, "source": account, "user_id": await self._address_of(raw)}
        try:
            return await self._put(account, event)
        except Invalid as refusal:
            log.warning("%s: what a person wrote is ignored: %s", self._courier.channel, refusal.code)
            return False

    async def _put(self, account: str, event: Event) -> bool:
        place, text = f"{event['channel']}.{event['user_id']}", str(event.get("event_text") or "")
        if event["kind"] == "callback" and not (is_answer(event) or sends_reply(event)):
            await self._scenarios.put(account, event)
        elif event["kind"] == "text" and (event.get("is_forward") or event.get("media_group_id")):
            await self._together.add(account, f"together.{place}.{event.get('media_group_id') or 'forwards'}", event)
        elif text.startswith(_START) and not await self._opt_outs.is_asked(
            event["channel"], str(event["user_id"]), text
        ):
            return False  # the person has opened the chat with the bot, and written nothing
        else:
            await self._events.put(account, event)
        return True

    async def _address_of(self, event: Event) -> Any:
        """Return the address under which a person is known: the id, otherwise the name by which it was written to."""
        place, user = (self._tenant, self._courier.channel), str(event["user_id"])
        if not (name := event.get("username")) or await self._is_known(*place, user):
            return user
        return f"@{name}" if await self._is_known(*place, f"@{name}") else user

    async def _is_known(self, tenant: str, channel: str, address: str) -> bool:
        """Return whether an address has got a message that may be replied to, or is of a person."""
        return bool(
            await self._received.last(tenant, channel, address, 0)
            or await self._directory.users.by_contact(tenant, channel, address)
        )
