"""bench memory: what a scheduled delivery costs in the server's memory, its indexes included."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from bench.delivery.samples import order, person
from bench.harness.ground import ground
from bench.harness.rows import Rows, say, verdict
from core.history.channels import Channels
from core.history.deliveries import Deliveries
from core.model.delivery import Order
from core.redis.store import Store

LETTERS = {"ascii": "There is no class with me today. ", "cyrillic": "Моей пары сегодня не будет. "}
LENGTH = 200
CHANNELS = (("telegram",), ("telegram", "vk", "sms"))
PAGE = 500
WANTED = 1200


def declare(parser: ArgumentParser) -> None:
    parser.add_argument("--count", type=int, default=20_000, help="deliveries of each kind (20000)")


async def measure(arguments: Namespace, rows: Rows) -> None:
    for letters, phrase in LETTERS.items():
        text = (phrase * LENGTH)[:LENGTH]
        for channels in CHANNELS:
            each = await bytes_of_each(text, channels, arguments.count)
            rows.show({"text": letters, "channels": len(channels), "n": arguments.count, "bytes": round(each)})
            verdict(f"bytes, {letters}, {len(channels)} channels", each, f"≤ {WANTED}", each <= WANTED)


async def bytes_of_each(text: str, channels: Sequence[str], count: int) -> float:
    """What is there before the first delivery (scripts, connections) is subtracted."""
    async with ground() as place:
        store = await Store.open(place.url)
        histories = Deliveries(store, Channels(store))
        await enqueue(histories, text, channels, 0, PAGE)
        before = (await place.redis.info("memory"))["used_memory"]
        await enqueue(histories, text, channels, PAGE, PAGE + count)
        after = (await place.redis.info("memory"))["used_memory"]
        await store.close()
        say(f"{count:,} deliveries: {(after - before) / 2**20:.1f} MiB")
        each: float = (after - before) / count
        return each


async def enqueue(histories: Deliveries, text: str, channels: Sequence[str], first: int, end: int) -> None:
    for start in range(first, end, PAGE):
        numbers = range(start, min(start + PAGE, end))
        await histories.enqueue_many([(scheduled(text, channels, number), None) for number in numbers])


def scheduled(text: str, channels: Sequence[str], number: int) -> Order:
    at = datetime.now(UTC) + timedelta(days=30, milliseconds=number)
    return order(text, [person(number, channels)], channels, at)
