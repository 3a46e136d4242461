"""bench memory: bytes of a scheduled delivery in the server, its indexes included."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from bench.harness.delivery_samples import order, recipient_of
from bench.harness.environment import environment
from bench.harness.measurements import server_size
from bench.harness.report import Rows, log_progress, report_target
from core.deliveries.channels import Channels
from core.deliveries.deliveries import Deliveries
from core.model.delivery import NewDelivery
from core.redis.store import Store

LETTERS = {"ascii": "There is no class with me today. ", "cyrillic": "Моей пары сегодня не будет. "}
LENGTH = 200
CHANNELS = (("telegram",), ("telegram", "vk", "sms"))
PAGE = 500
TARGET = 1200


def declare(parser: ArgumentParser) -> None:
    parser.add_argument("--count", type=int, default=20_000, help="deliveries of each kind (20000)")


async def measure(arguments: Namespace, rows: Rows) -> None:
    for letters, phrase in LETTERS.items():
        text = (phrase * LENGTH)[:LENGTH]
        for channels in CHANNELS:
            each = await bytes_of_each(text, channels, arguments.count)
            rows.show({"text": letters, "channels": len(channels), "n": arguments.count, "bytes": round(each)})
            report_target(f"bytes, {letters}, {len(channels)} channels", each, f"≤ {TARGET}", each <= TARGET)


async def bytes_of_each(text: str, channels: Sequence[str], count: int) -> float:
    """Subtracts what is there before the first delivery (scripts, connections)."""
    async with environment() as env:
        store = await Store.open(env.url)
        deliveries = Deliveries(store, Channels(store))
        await enqueue(deliveries, text, channels, 0, PAGE)
        before = (await server_size(env.redis)).bytes
        await enqueue(deliveries, text, channels, PAGE, PAGE + count)
        after = (await server_size(env.redis)).bytes
        await store.close()
        log_progress(f"{count:,} deliveries: {(after - before) / 2**20:.1f} MiB")
        return (after - before) / count


async def enqueue(deliveries: Deliveries, text: str, channels: Sequence[str], first: int, end: int) -> None:
    for start in range(first, end, PAGE):
        numbers = range(start, min(start + PAGE, end))
        await deliveries.enqueue_many([(scheduled(text, channels, number), None) for number in numbers])


def scheduled(text: str, channels: Sequence[str], number: int) -> NewDelivery:
    at = datetime.now(UTC) + timedelta(days=30, milliseconds=number)
    return order(text, [recipient_of(number, channels)], channels, at)
