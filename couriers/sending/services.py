"""The options of a courier process, and the services that its parcels share: those of one account.

`couriers.sending.runtime` makes the services for `couriers.sending.parcel_executor`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, timedelta, tzinfo

from core.answers import AnswerNumbers, AnswerTokens
from core.deliveries.delivery_reports import DeliveryReports
from core.deliveries.histories.reader import HistoryReader
from core.deliveries.received import Choices, ReceivedMessages, ReplyAddresses
from core.directory.preferences import PreferenceTokens, Subscriptions
from core.model.clock import Backoff
from core.model.history_key import DEFAULT_TENANT, HistoryKey
from core.model.states import Reason
from core.orders.sending_policy import SenderRights
from core.queue import Queue, Task
from core.sentence import Text
from core.uploads import MiB
from couriers.sending.account_throttle import AccountThrottle
from couriers.sending.attempt_pool import AttemptPool
from couriers.sending.day_messages import DayMessages
from couriers.sending.exchange_notes import ExchangeNotes
from couriers.sending.files import UploadedFiles
from couriers.sending.interface import Courier
from couriers.sending.read_marks import ReadMarks


@dataclass(frozen=True, slots=True)
class CourierOptions:
    """Options of a courier process. `lease`: how long a parcel stays with this process without an extension.
    `max_sleep`: the longest time between two claims. `concurrency`: messages under way at once. `mailbox`: the e-mail
    address at which Ada receives replies, "" for none.

    `report_url`: where providers send delivery reports, "" if they are not wanted. `answer_url`: of the page on which
    recipients answer, without the token; "" if there is none; `preferences_url`: of that on which they choose what they
    receive. `tenant`: to which people write who reply to an account that sends for all tenants. `staff_writes_to_all`:
    as in `core.orders.sending_policy`. `secrets`: of the account; they are hidden in what the provider says.
    `files_limit`: bytes of all files of a tenant. `timezone`, `tenant_timezones`: in which people read times.
    """

    lease: timedelta = timedelta(seconds=30)
    max_sleep: timedelta = timedelta(seconds=3)
    backoff: Backoff = field(default_factory=Backoff)
    report_url: str = ""
    answer_url: str = ""
    preferences_url: str = ""
    mailbox: str = ""
    concurrency: int = 32
    tenant: str = DEFAULT_TENANT
    staff_writes_to_all: Collection[str] = frozenset()
    secrets: tuple[str, ...] = field(default=(), repr=False)
    files_limit: int = 256 * MiB
    timezone: tzinfo = UTC
    tenant_timezones: Mapping[str, tzinfo] = field(default_factory=dict)


MOST_ANNOUNCED = 8
"""Messages of a process that are announced and not yet sent, at most: a killed process leaves these unknown, too. With
fewer, a fast provider waits for the store."""


@dataclass(frozen=True, slots=True)
class ParcelServices:
    """One per account. `release_capacity(task, entries)`: the worker may claim more.
    `halt(why)`: stop the process until an operator acts. `report_refusal(task, key, why)`: inform the administrators
    that a delivery is not sent, because its sender may not write any more. `announcing`: one permit for each message
    that is being announced.
    """

    courier: Courier
    options: CourierOptions
    queue: Queue
    reader: HistoryReader
    delivery_reports: DeliveryReports
    attempt_pool: AttemptPool
    account: AccountThrottle
    is_stopping: Callable[[], bool]
    release_capacity: Callable[[Task, int], None]
    halt: Callable[[Text], Awaitable[None]]
    sender_rights: SenderRights
    report_refusal: Callable[[Task, HistoryKey, Reason], Awaitable[None]]
    read_marks: ReadMarks
    choices: Choices
    files: UploadedFiles
    answer_tokens: AnswerTokens
    preference_tokens: PreferenceTokens
    subscriptions: Subscriptions
    exchange_notes: ExchangeNotes
    received: ReceivedMessages
    reply_addresses: ReplyAddresses
    answer_numbers: AnswerNumbers
    day_messages: DayMessages
    announcing: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MOST_ANNOUNCED))
