"""bench lag: how late a delivery's first attempt is, with so many others pending, beside the bare `expired` mechanism.

    fill (two processes) ─▶ the server settles ─▶ 300 deliveries due every 20 ms ─▶ a courier process looks at the clock
                                                  between them, a bare timer    ─▶ a process that only sleeps

Ada and `expired` get a fresh server each, with the same numbers pending, one after the other. The timer runs in the
same seconds as Ada and tells what the machine itself is late by: a virtual machine that waits for its host wakes nobody
in time. So Ada is judged by the round in which the timer, not Ada, had its lowest p99.
"""

import asyncio
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from bench.baselines import keyspace_expiry as expired
from bench.delivery.samples import SHORT, order
from bench.delivery.stopwatch import CHANNEL, PARCEL
from bench.harness.ground import Ground, ground, settle
from bench.harness.rows import Row, Rows, percentile, say, verdict
from core.history.channels import ChannelFacts, Channels
from core.history.deliveries import Deliveries
from core.model.delivery import Order, Recipient
from core.redis.store import Store

PENDING = (0, 100_000, 1_000_000)
SPACING_MS = 20
HEAD_START_MS = 1500
FILLERS = 2
WANTED_MS = 5.0


def declare(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--pending",
        type=numbers,
        default=PENDING,
        metavar="N,N,…",
        help="how many others are pending (0,100000,1000000)",
    )
    parser.add_argument("--count", type=int, default=300, metavar="N", help="how many deliveries fall due (300)")
    parser.add_argument("--rounds", type=int, default=5, help="how often Ada is measured with each number (5)")
    parser.add_argument("--only", choices=["ada", "expired"], help="leave the other one out")


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


async def measure(arguments: Namespace, rows: Rows) -> None:
    for pending_others in arguments.pending:
        if arguments.only != "expired":
            await measure_ada(arguments, pending_others, rows)
        if arguments.only != "ada":
            async with ground() as place:
                lags = await of_expired(place, pending_others, arguments.count)
            rows.show(row_of("expired", pending_others, arguments.count, lags))


async def measure_ada(arguments: Namespace, pending_others: int, rows: Rows) -> None:
    found = []
    async with ground() as place:
        await register(place)
        await fill(place, pending_others)
        for _ in range(arguments.rounds):
            lags, timer = await of_ada(place, arguments.count)
            rows.show(row_of("ada", pending_others, arguments.count, lags))
            rows.show(row_of("timer", pending_others, arguments.count, timer))
            found.append((percentile(timer, 0.99), percentile(lags, 0.99)))
    machine, ours = min(found)
    what = f"ada with {pending_others:,} pending, p99 ms (the timer meanwhile {machine:.2f})"
    verdict(what, ours, f"≤ {WANTED_MS:g}", ours <= WANTED_MS)


def row_of(system: str, pending_others: int, count: int, lags: Sequence[float]) -> Row:
    """Over those that arrived; `arrived` says how many of `n` did."""
    known = {f"{name}_ms": round(percentile(lags, share), 3) if lags else None for name, share in _SHARES.items()}
    return {"system": system, "pending": pending_others, "n": count, **known, "arrived": len(lags)}


_SHARES = {"p50": 0.5, "p99": 0.99, "max": 1.0}


async def of_ada(place: Ground, count: int) -> tuple[Sequence[float], Sequence[float]]:
    """Ada's lags, and a bare timer's."""
    courier = await place.start("courier", "bench.delivery.stopwatch", place.url, str(count))
    await courier.facts(60)
    moments = list(moments_from_now(count))
    between = (str(moments[0] + SPACING_MS // 2), str(count), str(SPACING_MS))
    timer = await place.start("timer", "bench.baselines.timer", *between)
    store = await Store.open(place.url)
    await Deliveries(store, Channels(store)).enqueue_many([(due(moment), None) for moment in moments])
    await store.close()
    say(f"{count} deliveries fall due from now on, every {SPACING_MS} ms")
    patience = count * SPACING_MS / 1000 + 60
    found: list[Sequence[float]] = []
    for child in (courier, timer):
        found.append((await child.facts(within=patience))["lags"])
        await place.end(child)
    ours, machine = found
    return ours, machine


def moments_from_now(count: int) -> Iterator[int]:
    """Unix ms; a little later, so that all are enqueued before the first is due."""
    first = round(time.time() * 1000) + HEAD_START_MS
    return (first + number * SPACING_MS for number in range(count))


def due(moment: int) -> Order:
    recipient = Recipient(moment, contacts={CHANNEL: [str(moment)]})
    return order(SHORT, [recipient], [CHANNEL], datetime.fromtimestamp(moment / 1000, UTC))


async def register(place: Ground) -> None:
    store = await Store.open(place.url)
    await Channels(store).register(CHANNEL, ChannelFacts(PARCEL))
    await store.close()


async def fill(place: Ground, count: int) -> None:
    if not count:
        return
    began = time.monotonic()
    shares = [count // FILLERS] * (FILLERS - 1) + [count - count // FILLERS * (FILLERS - 1)]
    fillers = [await place.start("filler", "bench.delivery.fill", place.url, str(share)) for share in shares]
    await asyncio.gather(*(filler.facts(within=1800) for filler in fillers))
    seconds = time.monotonic() - began
    say(f"{count:,} pending deliveries set up in {seconds:.1f} s ({count / seconds:,.0f}/s)")
    await settle(place.redis)


async def of_expired(place: Ground, pending_others: int, count: int) -> Sequence[float]:
    began = time.monotonic()
    await expired.fill(place.redis, pending_others)
    if pending_others:
        say(f"{pending_others:,} keys with a time to live set up in {time.monotonic() - began:.1f} s")
        await settle(place.redis)
    await place.redis.config_set("notify-keyspace-events", "Ex")
    lags = await expired.lags(place.redis, list(moments_from_now(count)))
    say(f"{len(lags)} of {count} `expired` events arrived within {expired.PATIENCE:.0f} s")
    return lags
