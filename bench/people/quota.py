"""bench people quota: enqueues without a role, with a quota, and with a role that is read from the directory.

`Sending` is called directly, by many callers at a time; each sender sends four times, as many as a trainer may. The
ways are measured in turn, because the speed of the machine changes.
"""

import asyncio
import itertools
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from bench.harness.delivery_samples import TENANT, TEXT, recipient_of
from bench.harness.environment import Environment, environment
from bench.harness.measurements import server_cpu_seconds
from bench.harness.report import Rows, log_progress, median
from bench.people.directory import PeopleSizes
from core.deliveries.channels import Channels
from core.deliveries.deliveries import Deliveries
from core.directory import Directory
from core.model.delivery import NewDelivery, Quota, Sender
from core.orders import Caller, Order, Sending, SendingPolicy
from core.redis.store import Store

LIMIT = 4
RULES = SendingPolicy({"trainer": Quota(LIMIT, timedelta(days=1))})
CHANNELS = ("telegram",)
_CALLERS = 32
_MONTH = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Way:
    """One kind of sender. An administrator's order names the role itself; for others the directory is asked."""

    name: str
    role: str | None
    is_admin: bool


FREE = Way("no role", None, is_admin=True)
WAYS = (
    FREE,
    Way("quota", "trainer", is_admin=True),
    Way("no role, directory asked", None, is_admin=False),
    Way("quota, directory asked", "trainer", is_admin=False),
)


@dataclass(frozen=True, slots=True)
class SendRun:
    """Deliveries per second, and µs of the server's CPU for each."""

    rate: float
    server_us: float


async def measure_quota(sizes: PeopleSizes, rows: Rows) -> None:
    runs: defaultdict[str, list[SendRun]] = defaultdict(list)
    async with environment() as env, open_sending(env) as sending:
        senders = itertools.count(1)
        for _ in range(sizes.rounds + 1):
            for way in WAYS:
                runs[way.name].append(await measure_sends(env, sending, way, senders, sizes.sends))
    show({name: found[1:] for name, found in runs.items()}, sizes.sends, rows)


@asynccontextmanager
async def open_sending(env: Environment) -> AsyncIterator[Sending]:
    store = await Store.open(f"{env.url}?client_name=bench")
    try:
        yield Sending(store, Deliveries(store, Channels(store)), Directory(store), RULES)
    finally:
        await store.close()


async def measure_sends(env: Environment, sending: Sending, way: Way, senders: Iterator[int], count: int) -> SendRun:
    caller, pending = Caller(TENANT, is_admin=way.is_admin), orders(way, senders, count)

    async def send_all() -> None:
        for order in pending:
            await sending.send(order, caller)

    cpu, began = await server_cpu_seconds(env.redis), time.perf_counter()
    await asyncio.gather(*(send_all() for _ in range(_CALLERS)))
    seconds, used = time.perf_counter() - began, await server_cpu_seconds(env.redis) - cpu
    log_progress(f"{way.name}: {count / seconds:,.0f}/s, {used / count * 1e6:.0f} µs of the server each")
    return SendRun(count / seconds, used / count * 1e6)


def orders(way: Way, senders: Iterator[int], count: int) -> Iterator[Order]:
    """Return `LIMIT` orders of each sender, due in a month."""
    recipients = [recipient_of(1, CHANNELS)]
    due = datetime.now(UTC) + _MONTH
    for _ in range(count // LIMIT):
        sender = Sender(next(senders), role=way.role)
        for _ in range(LIMIT):
            yield Order(NewDelivery(TENANT, sender, TEXT, (), CHANNELS, deliver_at=due), recipients)


def show(runs: Mapping[str, Sequence[SendRun]], count: int, rows: Rows) -> None:
    """Show the medians. A ratio compares two ways of the same round."""
    for name, found in runs.items():
        pairs = list(zip(found, runs[FREE.name], strict=True))
        rows.show(
            {
                "part": "quota",
                "sender": name,
                "n": count,
                "deliveries_per_s": round(median([run.rate for run in found])),
                "to_no_role": round(median([own.rate / free.rate for own, free in pairs]), 2),
                "server_us": round(median([run.server_us for run in found]), 1),
                "server_us_more": round(median([own.server_us - free.server_us for own, free in pairs]), 1),
            }
        )
