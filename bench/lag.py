"""bench lag: how late a delivery's first attempt is, with so many others pending, beside the bare `expired` mechanism.

    fill (two processes) ─▶ the server settles ─▶ 300 deliveries due every 20 ms ─▶ a courier process looks at the clock

Ada and `expired` get a fresh server each, with the same numbers pending, one after the other.
"""

import asyncio
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from bench import expired
from bench.ground import Ground, ground, settle
from bench.rows import Row, Rows, percentile, say, verdict
from bench.samples import SHORT, order
from bench.stopwatch import CHANNEL, PARCEL
from core.channels import Channels, Facts
from core.histories import Histories
from core.orders import Order, Recipient
from core.store import Store

PENDING = (0, 100_000, 1_000_000)
SPACING_MS = 20
HEAD_START_MS = 1000
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
    parser.add_argument("--only", choices=["ada", "expired"], help="leave the other one out")


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


async def measure(arguments: Namespace, rows: Rows) -> None:
    for pending_others in arguments.pending:
        if arguments.only != "expired":
            async with ground() as place:
                lags = await of_ada(place, pending_others, arguments.count)
            rows.show(row_of("ada", pending_others, arguments.count, lags))
            worst = percentile(lags, 0.99)
            verdict(f"ada with {pending_others:,} pending, p99 ms", worst, f"≤ {WANTED_MS:g}", worst <= WANTED_MS)
        if arguments.only != "ada":
            async with ground() as place:
                lags = await of_expired(place, pending_others, arguments.count)
            rows.show(row_of("expired", pending_others, arguments.count, lags))


def row_of(system: str, pending_others: int, count: int, lags: Sequence[float]) -> Row:
    """Over those that arrived; `arrived` says how many of `n` did."""
    known = {f"{name}_ms": round(percentile(lags, share), 3) if lags else None for name, share in _SHARES.items()}
    return {"system": system, "pending": pending_others, "n": count, **known, "arrived": len(lags)}


_SHARES = {"p50": 0.5, "p99": 0.99, "max": 1.0}


async def of_ada(place: Ground, pending_others: int, count: int) -> Sequence[float]:
    store = await Store.open(place.url)
    await Channels(store).register(CHANNEL, Facts(PARCEL))
    await fill(place, pending_others)
    courier = await place.start("courier", "bench.stopwatch", place.url, str(count))
    await courier.facts(60)
    moments = list(moments_from_now(count))
    await Histories(store, Channels(store)).enqueue_many([(due(moment), None) for moment in moments])
    say(f"{count} deliveries fall due from now on, every {SPACING_MS} ms")
    await store.close()
    lags: Sequence[float] = (await courier.facts(within=count * SPACING_MS / 1000 + 60))["lags"]
    return lags


def moments_from_now(count: int) -> Iterator[int]:
    """Unix ms; a little later, so that all are enqueued before the first is due."""
    first = round(time.time() * 1000) + HEAD_START_MS
    return (first + number * SPACING_MS for number in range(count))


def due(moment: int) -> Order:
    recipient = Recipient(moment, contacts={CHANNEL: [str(moment)]})
    return order(SHORT, [recipient], [CHANNEL], datetime.fromtimestamp(moment / 1000, UTC))


async def fill(place: Ground, count: int) -> None:
    if not count:
        return
    began = time.monotonic()
    shares = [count // FILLERS] * (FILLERS - 1) + [count - count // FILLERS * (FILLERS - 1)]
    fillers = [await place.start("filler", "bench.fill", place.url, str(share)) for share in shares]
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
