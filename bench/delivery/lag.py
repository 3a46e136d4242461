"""bench lag: how late the first attempt of a delivery is, with many others pending.

    fill (two processes) ─▶ the server settles ─▶ 300 deliveries due every 20 ms ─▶ a courier process records the lag
                                                  a bare timer between them      ─▶ a process that only sleeps

Ada is compared with the bare `expired` event of the server: each has a fresh server with the same number pending. The
timer runs in the same seconds as Ada and shows how late the machine itself is: a virtual machine that waits for its
host wakes no process in time. The target is checked in the round in which the timer, not Ada, had its lowest p99.
"""

import asyncio
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from redis.asyncio import Redis
from redis.asyncio.client import PubSub

from bench.delivery.programs import CHANNEL, PARCEL
from bench.harness.delivery_samples import TEXT, order
from bench.harness.environment import Environment, environment, wait_for_aof_rewrite
from bench.harness.report import Row, Rows, log_progress, percentile, report_target
from core.deliveries.channels import ChannelFacts, Channels
from core.deliveries.deliveries import Deliveries
from core.model.delivery import NewDelivery, Recipient
from core.redis.store import Store

PROGRAMS = "bench.delivery.programs"
PENDING = (0, 100_000, 1_000_000)
SPACING_MS = 20
HEAD_START_MS = 1500
FILLERS = 2
TARGET_MS = 5.0

EXPIRY_TIMEOUT = 90.0
"""Seconds after the last due time in which an event still counts."""

_KEYS_PAGE = 10_000
_PREFIX = "due:"
_MONTH_MS = 30 * 86_400_000

_PERCENTILES = {"p50": 0.5, "p99": 0.99, "max": 1.0}


def declare_lag(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--pending",
        type=integers,
        default=PENDING,
        metavar="N,N,…",
        help="how many other deliveries are pending (0,100000,1000000)",
    )
    parser.add_argument("--count", type=int, default=300, metavar="N", help="how many deliveries fall due (300)")
    parser.add_argument("--rounds", type=int, default=5, help="how often Ada is measured with each number (5)")
    parser.add_argument("--only", choices=["ada", "expired"], help="measure only this system")


def integers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


async def measure_lag(arguments: Namespace, rows: Rows) -> None:
    for pending in arguments.pending:
        if arguments.only != "expired":
            await measure_ada(arguments, pending, rows)
        if arguments.only != "ada":
            async with environment() as env:
                lags = await expiry_lags(env, pending, arguments.count)
            rows.show(row_of("expired", pending, arguments.count, lags))


async def measure_ada(arguments: Namespace, pending: int, rows: Rows) -> None:
    p99s = []
    async with environment() as env:
        await register_channel(env)
        await fill(env, pending)
        for _ in range(arguments.rounds):
            lags, timer_lags = await ada_lags(env, arguments.count)
            rows.show(row_of("ada", pending, arguments.count, lags))
            rows.show(row_of("timer", pending, arguments.count, timer_lags))
            p99s.append((percentile(timer_lags, 0.99), percentile(lags, 0.99)))
    timer_p99, ada_p99 = min(p99s)
    what = f"ada with {pending:,} pending, p99 ms (the timer in the same round: {timer_p99:.2f})"
    report_target(what, ada_p99, f"≤ {TARGET_MS:g}", ada_p99 <= TARGET_MS)


def row_of(system: str, pending: int, count: int, lags: Sequence[float]) -> Row:
    """Return the percentiles of the lags that arrived; `arrived` is how many of `n` did."""
    percentiles = {
        f"{name}_ms": round(percentile(lags, share), 3) if lags else None for name, share in _PERCENTILES.items()
    }
    return {"system": system, "pending": pending, "n": count, **percentiles, "arrived": len(lags)}


async def ada_lags(env: Environment, count: int) -> tuple[Sequence[float], Sequence[float]]:
    """Returns the lags (ms) of Ada, and those of a bare timer in the same seconds."""
    courier = await env.start("courier", PROGRAMS, "courier", env.url, str(count))
    await courier.facts(60)
    due_times = list(due_times_from_now(count))
    first_wake = due_times[0] + SPACING_MS // 2
    timer = await env.start("timer", PROGRAMS, "timer", str(first_wake), str(count), str(SPACING_MS))
    await enqueue(env, due_times)
    log_progress(f"{count} deliveries fall due from now on, every {SPACING_MS} ms")
    timeout = count * SPACING_MS / 1000 + 60
    found: list[Sequence[float]] = []
    for child in (courier, timer):
        found.append((await child.facts(timeout))["lags"])
        await env.stop_child(child)
    lags, timer_lags = found
    return lags, timer_lags


async def enqueue(env: Environment, due_times: Sequence[int]) -> None:
    store = await Store.open(env.url)
    await Deliveries(store, Channels(store)).enqueue_many([(delivery_due(moment), None) for moment in due_times])
    await store.close()


def due_times_from_now(count: int) -> Iterator[int]:
    """Return the due times in Unix ms. The first one is a little later, so that all are enqueued before it."""
    first = round(time.time() * 1000) + HEAD_START_MS
    return (first + number * SPACING_MS for number in range(count))


def delivery_due(moment: int) -> NewDelivery:
    recipient = Recipient(moment, contacts={CHANNEL: [str(moment)]})
    return order(TEXT, [recipient], [CHANNEL], datetime.fromtimestamp(moment / 1000, UTC))


async def register_channel(env: Environment) -> None:
    store = await Store.open(env.url)
    await Channels(store).register(CHANNEL, ChannelFacts(PARCEL))
    await store.close()


async def fill(env: Environment, count: int) -> None:
    """Enqueues `count` deliveries that are due in a month."""
    if not count:
        return
    began = time.monotonic()
    shares = [count // FILLERS] * (FILLERS - 1) + [count - count // FILLERS * (FILLERS - 1)]
    fillers = [await env.start("filler", PROGRAMS, "fill", env.url, str(share)) for share in shares]
    await asyncio.gather(*(filler.facts(timeout=1800) for filler in fillers))
    seconds = time.monotonic() - began
    log_progress(f"{count:,} pending deliveries set up in {seconds:.1f} s ({count / seconds:,.0f}/s)")
    await wait_for_aof_rewrite(env.redis)


async def expiry_lags(env: Environment, pending: int, count: int) -> Sequence[float]:
    """Returns the lags (ms) of the `expired` events that arrived in time."""
    began = time.monotonic()
    await fill_keys(env.redis, pending)
    if pending:
        log_progress(f"{pending:,} keys with a time to live set up in {time.monotonic() - began:.1f} s")
        await wait_for_aof_rewrite(env.redis)
    await env.redis.config_set("notify-keyspace-events", "Ex")
    lags = await receive_lags(env.redis, list(due_times_from_now(count)))
    log_progress(f"{len(lags)} of {count} `expired` events arrived within {EXPIRY_TIMEOUT:.0f} s")
    return lags


async def fill_keys(redis: Redis, count: int) -> None:
    """Sets keys that expire in a month, no two in the same millisecond."""
    for start in range(0, count, _KEYS_PAGE):
        async with redis.pipeline(transaction=False) as pipe:
            for number in range(start, min(start + _KEYS_PAGE, count)):
                pipe.set(f"pending:{number}", "", px=_MONTH_MS + number)
            await pipe.execute()


async def receive_lags(redis: Redis, due_times: Sequence[int]) -> list[float]:
    """Returns how late (ms) the event of each key was. Events that did not come within EXPIRY_TIMEOUT are missing."""
    async with redis.pubsub() as subscriber:
        await subscriber.subscribe("__keyevent@0__:expired")
        await subscriber.get_message(timeout=5)
        for due in due_times:
            await redis.set(f"{_PREFIX}{due}", "", pxat=due)
        return await _receive(subscriber, len(due_times), due_times[-1] / 1000 + EXPIRY_TIMEOUT)


async def _receive(subscriber: PubSub, count: int, until: float) -> list[float]:
    lags: list[float] = []
    while len(lags) < count and (left := until - time.time()) > 0:
        message = await subscriber.get_message(ignore_subscribe_messages=True, timeout=left)
        now = time.time() * 1000
        if message and message["data"].startswith(_PREFIX):
            lags.append(now - float(message["data"].removeprefix(_PREFIX)))
        await asyncio.sleep(0)
    return lags
