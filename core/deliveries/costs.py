"""Messages and costs of a tenant, by month, channel and sender (W-27).

`lua/delivery/modules/costs.lua` counts in the step that writes an outcome, so the numbers are those of the histories,
and stay when these are dropped. A message counts that was sent or may have been; a part as often as it was sent. Months
are those of UTC.
"""

import asyncio
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import groupby

from msgspec import Struct

from core.redis.store import Store

_NUMBER = re.compile(r"\d+(?:[.,]\d+)?")
_Counts = Mapping[tuple[str, str], int]
"""`messages` or `parts`, and the price → how many."""


class Cost(Struct, frozen=True):
    """Messages and costs of a sender over a channel in a month. `sender`: its id; "" in a total of all. `parts`: what
    is paid; 0 if the channel is not paid in parts. `sums`: one for each currency, in the form in which the operator has
    written the price of a part, such as "58.80 ₽"; empty without a price. `unpriced`: parts that were sent without one.
    """

    month: str
    channel: str
    sender: str
    messages: int
    parts: int
    sums: Sequence[str]
    unpriced: int = 0


class Costs:
    """Reads what was sent and paid. One per process."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def read(self, tenant: str, months: Sequence[str]) -> list[Cost]:
        """Return the costs of months (`yyyy-mm`): the months in their order, in each the channels and senders by name.
        Raises StoreError.
        """
        read = [self._month(tenant, month) for month in months]
        return [cost for costs in await asyncio.gather(*read) for cost in costs]

    async def _month(self, tenant: str, month: str) -> list[Cost]:
        found: dict[tuple[str, str], dict[tuple[str, str], int]] = defaultdict(lambda: defaultdict(int))
        for counts in await self._store.command_each("HGETALL", self._store.keys_of_shards("costs", tenant, month)):
            for field, count in counts.items():
                what, channel, price, sender = field.split("\x1f", 3)
                found[channel, sender][what, price] += int(count)
        return [_cost(month, channel, sender, found[channel, sender]) for channel, sender in sorted(found)]


def _cost(month: str, channel: str, sender: str, counts: _Counts) -> Cost:
    parts = {price: count for (what, price), count in counts.items() if what == "parts"}
    priced = {price: count for price, count in parts.items() if _NUMBER.search(price)}
    unpriced = sum(parts.values()) - sum(priced.values())
    sums = added(price_of(price, count) for price, count in priced.items())
    return Cost(month, channel, sender, counts.get(("messages", ""), 0), sum(parts.values()), sums, unpriced)


def totals(costs: Iterable[Cost]) -> list[Cost]:
    """Return what all senders together have sent over each channel in each month. `costs`: as `Costs.read` has them."""
    return [
        _total(month, channel, list(of_channel))
        for (month, channel), of_channel in groupby(costs, lambda one: (one.month, one.channel))
    ]


def _total(month: str, channel: str, costs: Sequence[Cost]) -> Cost:
    sums = added(text for one in costs for text in one.sums)
    counts = [sum(getattr(one, name) for one in costs) for name in ("messages", "parts", "unpriced")]
    return Cost(month, channel, "", counts[0], counts[1], sums, counts[2])


def price_of(price: str, count: int) -> str:
    """Return the price of many parts, in the form of that of one: "4.20 ₽" → "58.80 ₽"."""
    return _NUMBER.sub(lambda found: f"{Decimal(found[0].replace(',', '.')) * count:.2f}", price, count=1)


def added(prices: Iterable[str]) -> list[str]:
    """Return the sum of prices of each currency, in the order in which the currencies come."""
    sums: dict[str, Decimal] = defaultdict(Decimal)
    for price in prices:
        if found := _NUMBER.search(price):
            sums[_NUMBER.sub("\0", price, count=1)] += Decimal(found[0].replace(",", "."))
    return [form.replace("\0", f"{value:.2f}") for form, value in sums.items()]
