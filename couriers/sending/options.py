"""Options of a courier process."""

from dataclasses import dataclass, field
from datetime import timedelta

from core.model.clock import Backoff
from core.model.history_key import DEFAULT_TENANT


@dataclass(frozen=True, slots=True)
class CourierOptions:
    """`lease`: how long a parcel stays with this process without an extension. `max_sleep`: the longest time between
    two claims. `report_url`: where providers send delivery reports, "" if they are not wanted. `answer_url`: of the
    page on which recipients answer, without the token; "" if there is none; `preferences_url`: of that on which they
    choose what they receive. `mailbox`: the e-mail address at which Ada receives replies, "" for none.
    `concurrency`: messages under way at once.
    `tenant`: to which people write who reply to an account that sends for all tenants.
    `secrets`: of the account; they are hidden in what the provider says.
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
    secrets: tuple[str, ...] = field(default=(), repr=False)
