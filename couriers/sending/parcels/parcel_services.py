"""The services that all parcels of a courier process share. `couriers.sending.runtime` makes it for
`couriers.sending.parcels.parcel_executor`."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from core.answers import AnswerNumbers, AnswerTokens
from core.deliveries.delivery_reports import DeliveryReports
from core.deliveries.histories.reader import HistoryReader
from core.deliveries.numbered_choices import Choices
from core.deliveries.received import ReceivedMessages
from core.deliveries.reply_addresses import ReplyAddresses
from core.directory.preferences import PreferenceTokens
from core.directory.subscriptions import Subscriptions
from core.queue import Queue, Task
from core.sentence import Text
from couriers.sending.account_throttle import AccountThrottle
from couriers.sending.attempt_pool import AttemptPool
from couriers.sending.content.uploaded_files import UploadedFiles
from couriers.sending.day_messages import DayMessages
from couriers.sending.interface import Courier
from couriers.sending.options import CourierOptions
from couriers.sending.parcels.exchange_notes import ExchangeNotes
from couriers.sending.read_marks import ReadMarks

MOST_ANNOUNCED = 8
"""Messages of a process that are announced and not yet sent, at most: a killed process leaves these unknown, too. With
fewer, a fast provider waits for the store."""


@dataclass(frozen=True, slots=True)
class ParcelServices:
    """One per process. `release_capacity(task, entries)`: the worker may claim more.
    `halt(why)`: stop the process until an operator acts. `announcing`: one permit for each message that is being
    announced.
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
