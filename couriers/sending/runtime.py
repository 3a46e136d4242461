"""The courier runtime, once for all channels: claims parcels and writes the outcomes into histories.

    claim ─▶ the account of the task's tenant ─▶ which entries are open ─▶ who can be served now ─▶ attempts ─▶ settle
                └─ none, or halted: the parcel waits in the queue           │ the others are postponed │ meanwhile:
                                                                                       extend with the outcomes so far

A courier receives messages and returns outcomes (`couriers.sending.interface`). Retries, throttles, leases, cancelling,
stopping and the history are here. All recipients who can be served now are served first (D-23); a throttle applies only
to its scope.

An account sends for one tenant, or for all of them. A parcel is sent by the account of its tenant and by no other; it
waits uncounted, until it expires: a second for an account that may be signing in just now, otherwise a minute. A
throttle, a learned rate and a halt concern one account. All accounts share one worker, so an idle one costs nothing;
they come and go while the process runs.

`lua/queue/functions/claim.lua` gives a parcel; `couriers.sending.parcel_executor` attempts it;
`lua/queue/functions/settle.lua` writes the end.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from core.answers import AnswerNumbers, AnswerTokens
from core.deliveries.channels import ChannelFacts, Channels
from core.deliveries.delivery_reports import DeliveryReports
from core.deliveries.histories.reader import HistoryReader
from core.deliveries.received import Choices, ReceivedMessages, ReplyAddresses
from core.directory.directory import Directory
from core.directory.preferences import PreferenceTokens, Subscriptions
from core.errors import StoreError
from core.model.history_key import HistoryKey
from core.model.states import Reason
from core.orders.sending_policy import SenderRights
from core.queue import Claim, Queue, Task, Worker, WorkerOptions
from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.store import Store
from core.sentence import Text
from core.uploads import Uploads
from couriers.sending.account_throttle import AccountThrottle
from couriers.sending.attempt_pool import AttemptPool
from couriers.sending.bot_replies import BotReplies
from couriers.sending.day_messages import DayMessages
from couriers.sending.exchange_notes import ExchangeNotes
from couriers.sending.files import UploadedFiles
from couriers.sending.interface import NEVER, Courier, KeepsIds
from couriers.sending.known_ids import StoredIds
from couriers.sending.parcel_executor import ParcelExecutor
from couriers.sending.read_marks import ReadMarks, ReceivedTexts
from couriers.sending.services import CourierOptions, ParcelServices
from couriers.sending.shown import display_of

log = logging.getLogger(__name__)

EVERY_TENANT = ""
"""In place of a tenant: the account sends for all of them. It is the only one of its process, and ends it when it is
halted."""

# Concurrent attempts of a courier that sends many messages in one call: a silent one leaves the others most of them.
_LEAST_ATTEMPTS = 4

# Most parcels of one process at a time, however small they are.
_MAX_PARCELS = 200

# Recipients of a parcel, for the room of a process whose accounts come later.
_PARCEL = 100

# How long a parcel waits in the queue for an account.
_WAITS_MS = 60_000

# How long a missing account is looked for every second: it signs in when a process starts, or a folder appears.
_SIGNS_IN_MS, _SOON_MS = 10_000, 1000

OnRefusal = Callable[[str, HistoryKey, Reason], Awaitable[None]]
"""Reports to the administrators of a tenant that a delivery is not sent: its sender may not write any more."""
OnHalt = Callable[[str, Text], Awaitable[None]]
"""Reports that the account of a tenant needs an operator, and why."""


@dataclass
class _Account:
    services: ParcelServices
    listening: "asyncio.Task[None]" = field(repr=False)
    parcels: set["asyncio.Task[None]"] = field(default_factory=set, repr=False)
    halted: Text = ""


class Runtime:
    """One courier process. `on_halt`: see `OnHalt`; the account of every tenant stops the process instead.
    `on_refusal`: see `OnRefusal`.
    """

    def __init__(
        self,
        store: Store,
        channel: str,
        options: CourierOptions | None = None,
        on_halt: OnHalt | None = None,
        on_refusal: OnRefusal | None = None,
    ) -> None:
        self._store = store
        self.channel = channel
        self._options = options or CourierOptions()
        self._on_halt = on_halt
        self._on_refusal = on_refusal
        self._queue = Queue(store)
        self._files = UploadedFiles(Uploads(store))
        self._accounts: dict[str, _Account] = {}
        self._missing: dict[str, int] = {}
        self._worker: Worker | None = None
        self._is_stopping = False

    @property
    def only(self) -> Courier | None:
        """Return the courier of every tenant, None if each tenant has its own."""
        account = self._accounts.get(EVERY_TENANT)
        return account.services.courier if account else None

    @property
    def claims(self) -> int:
        """Return how many claims this process has made."""
        return self._worker.claims if self._worker else 0

    @property
    def halted(self) -> Text:
        """Return why the account of every tenant needs an operator, "" otherwise."""
        account = self._accounts.get(EVERY_TENANT)
        return account.halted if account else ""

    async def add(self, courier: Courier, tenant: str = EVERY_TENANT, options: CourierOptions | None = None) -> None:
        """Send the messages of a tenant through its courier from now on, and close it in the end. The channel is known
        then, so that deliveries may name it. `EVERY_TENANT` is added before `run`. Raises StoreError.
        """
        try:
            await self._register(courier, ChannelFacts(courier.parcel))
        except StoreError:
            await courier.close()
            raise

        async def halt(said: Text) -> None:
            await self._halt(tenant, said)

        if isinstance(courier, KeepsIds):
            courier.ids = StoredIds(self._store, courier.channel, courier.account)
        services = self._services(courier, options or self._options, halt)
        whose = (options or self._options).tenant if tenant == EVERY_TENANT else tenant
        texts = ReceivedTexts(self._store, courier, whose)
        replies = BotReplies(self._store, courier, whose, (options or self._options).files_limit)
        listening = asyncio.create_task(
            _listen(services.read_marks, texts, replies), name=f"what comes in {self.channel}"
        )
        self._accounts[tenant] = _Account(services, listening)
        self._missing.pop(tenant, None)

    async def remove(self, tenant: str) -> None:
        """Send them no longer; return when the parcels under way have ended."""
        if account := self._accounts.get(tenant):
            del self._accounts[tenant]
            await self._close(account)

    async def run(self) -> None:
        """Deliver until `stop()`, or until the account of every tenant is halted: then the tasks stay queued."""
        try:
            self._worker = self._made_worker()
            await self._worker.run()
        finally:
            for account in self._accounts.values():
                await self._close(account)
            self._files.close()

    async def step(self) -> Claim:
        """Deliver one parcel, if one waits, and return its claim: in place of `run`, for tests that say when something
        happens.
        """
        self._worker = self._worker or self._made_worker()
        return await self._worker.step()

    def stop(self) -> None:
        """Finish the attempts under way and return the other entries to the queue."""
        self._is_stopping = True
        if self._worker:
            self._worker.stop()
        for account in self._accounts.values():
            account.services.account.interrupt()

    def _made_worker(self) -> Worker:
        """Return a worker with capacity for two full parcels: the next one is claimed before the first one ends, and
        the others are left to other processes. It claims nothing while the account of every tenant is throttled.
        """
        parcel = self.only.parcel if self.only else _PARCEL
        worker = Worker(
            self._store,
            self.channel,
            self._deliver,
            options=WorkerOptions(
                lease=self._options.lease,
                max_sleep=self._options.max_sleep,
                max_tasks=min(2 * parcel, _MAX_PARCELS),
                max_entries=2 * parcel,
            ),
            account=self.only.account if self.only else "",
            on_throttle=self._signal,
        )
        if self._is_stopping:
            worker.stop()
        return worker

    def _services(
        self, courier: Courier, options: CourierOptions, halt: Callable[[Text], Awaitable[None]]
    ) -> ParcelServices:
        """Return what the parcels of an account need in this process."""
        reports = DeliveryReports(self._store)
        attempts = max(min(_LEAST_ATTEMPTS, options.concurrency), options.concurrency // courier.batch)
        account = AccountThrottle(self._queue, courier.channel, courier.account, lambda: self._is_stopping)
        return ParcelServices(
            courier=courier,
            options=options,
            queue=self._queue,
            reader=HistoryReader(self._store),
            delivery_reports=reports,
            attempt_pool=AttemptPool(attempts),
            account=account,
            is_stopping=lambda: self._is_stopping,
            release_capacity=self._release_capacity,
            halt=halt,
            sender_rights=SenderRights(self._store, options.staff_writes_to_all),
            report_refusal=self._report_refusal,
            read_marks=ReadMarks(self._store, reports, courier),
            choices=Choices(self._store),
            files=self._files,
            answer_tokens=AnswerTokens(self._store),
            preference_tokens=PreferenceTokens(self._store),
            subscriptions=Subscriptions(self._store, Directory(self._store)),
            exchange_notes=ExchangeNotes(self.channel, options.secrets),
            received=ReceivedMessages(self._store),
            reply_addresses=ReplyAddresses(self._store, self.channel),
            answer_numbers=AnswerNumbers(self._store),
            day_messages=DayMessages(
                self._store, courier, account, options.lease, lambda: self._is_stopping, options.concurrency
            ),
        )

    async def _report_refusal(self, task: Task, key: HistoryKey, why: Reason) -> None:
        if self._on_refusal:
            await self._on_refusal(task.tenant, key, why)

    def _release_capacity(self, task: Task, entries: int) -> None:
        assert self._worker
        self._worker.release_capacity(task, entries)

    def _signal(self) -> None:
        for account in self._accounts.values():
            account.services.account.signal()

    async def _halt(self, tenant: str, said: Text) -> None:
        """Stop an account until it is added anew: it cannot send until an operator acts."""
        account = self._accounts.get(tenant)
        if account is None or account.halted:
            return
        account.halted = said
        if tenant == EVERY_TENANT:
            log.error("stopped until you repair it: %s", said)
            self.stop()
            courier = account.services.courier
            await self._register(courier, ChannelFacts(courier.parcel, halted=str(said)))
        else:
            account.services.account.until = time.monotonic() + _WAITS_MS / 1000  # for the parcels under way
            if self._on_halt:
                await self._on_halt(tenant, said)

    async def _register(self, courier: Courier, facts: ChannelFacts) -> None:
        options, announces = self._options, courier.remembers == NEVER
        display = display_of(courier, options.answer_url, is_mailed=bool(options.mailbox))
        await Channels(self._store).register(courier.channel, facts, announces=announces, display=display)

    async def _deliver(self, task: Task, claim: Claim) -> None:
        account = self._accounts.get(EVERY_TENANT) or self._accounts.get(task.tenant)
        if account is None or account.halted:
            await self._queue.release(task, due=task.claimed + (_WAITS_MS if account else self._wait_of(task)))
            return
        under_way = asyncio.current_task()
        assert under_way is not None
        account.parcels.add(under_way)
        under_way.add_done_callback(account.parcels.discard)
        await ParcelExecutor(account.services, task, claim).run()

    def _wait_of(self, task: Task) -> int:
        """Return how long a parcel waits for an account that is missing (ms)."""
        since = self._missing.setdefault(task.tenant, task.claimed)
        return _SOON_MS if task.claimed < since + _SIGNS_IN_MS else _WAITS_MS

    async def _close(self, account: _Account) -> None:
        if account.parcels:
            await asyncio.wait(account.parcels)
        await cancel_and_wait(account.listening)
        await account.services.courier.close()


async def _listen(marks: ReadMarks, texts: ReceivedTexts, replies: BotReplies) -> None:
    await asyncio.gather(marks.run(), texts.run(), replies.run())
