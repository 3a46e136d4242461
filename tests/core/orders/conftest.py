"""Sending on a real server, with people in the directory and a clock that the test sets."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from core.directory import Directory
from core.model.delivery import Accepted, NewDelivery, Quota, Repeat, Sender
from core.model.hours import QuietHours, TenantQuietHours
from core.model.people import Group, Supergroup, User
from core.orders import AnyAddressee, Caller, Order, Sending, SendingPolicy
from core.redis.store import Store
from tests.support.small_pages import small_pages
from tests.support.stack import TENANT, Stack, person

__all__ = ["small_pages"]

DAY = timedelta(days=1)
RULES = SendingPolicy(
    {"trainer": Quota(4, DAY), "staff": Quota(16, DAY)},
    TenantQuietHours(QuietHours(time(0), time(7), ZoneInfo("Europe/Moscow"))),
)
NOON = datetime(2026, 11, 21, 9, tzinfo=UTC)
"""12:00 in Moscow."""
NIGHT = datetime(2026, 11, 20, 22, 30, tzinfo=UTC)
"""01:30 in Moscow."""
SEND_ONLY, ADMIN = Caller(TENANT), Caller(TENANT, is_admin=True, may_be_urgent=True)
LATER = datetime(2030, 1, 1, 12, tzinfo=UTC)
OFFICE = Sender("office")
TRAINER = Sender(42, "Иванов И. И.", "trainer")


def order(
    *addressees: AnyAddressee,
    sender: Sender = OFFICE,
    urgent: bool = False,
    channels: Sequence[str] = ("echo",),
    **more: Any,
) -> Order:
    """An order; to one person with an address if there are no addressees."""
    text = more.pop("text", "Пары не будет")
    delivery = NewDelivery(more.pop("tenant", TENANT), sender, text, (), channels, **more)
    return Order(delivery, addressees or (person(1),), urgent, far=True)


@dataclass
class Office:
    """Sending of one process. `now` is its clock."""

    stack: Stack
    directory: Directory
    sending: Sending = field(init=False)
    now: datetime = NOON

    def __post_init__(self) -> None:
        self.sending = self.process(self.stack.store)

    def process(self, store: Store, rules: SendingPolicy = RULES) -> Sending:
        """Sending as another process has it."""
        return Sending(store, self.stack.deliveries, Directory(store), rules, clock=lambda: self.now)

    async def send(self, *addressees: AnyAddressee, caller: Caller = ADMIN, repeat: str = "", **more: Any) -> Accepted:
        return await self.sending.send(order(*addressees, **more), caller, Repeat(repeat, "same") if repeat else None)

    async def people(self, count: int, **more: Any) -> None:
        """People 1 to `count` with an address in the channel echo."""
        for number in range(1, count + 1):
            user = User(number, f"Person {number}", contacts={"echo": [f"d{number}"]}, **more)
            await self.directory.users.create(TENANT, user)

    async def group(self, name: str, *members: int, virtual: bool = False) -> None:
        await self.directory.groups.create(TENANT, Group(name, virtual=virtual), members)

    async def supergroup(self, name: str, *groups: str) -> None:
        await self.directory.supergroups.create(TENANT, Supergroup(name, groups=groups))


@pytest.fixture
def office(stack: Stack) -> Office:
    return Office(stack, Directory(stack.store))
