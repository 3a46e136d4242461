"""Memory of a scheduled delivery: at most 1.2 kB with one recipient and 200 characters."""

import pytest

from core.model.delivery import Recipient
from tests.support.servers import on_both_servers
from tests.support.stack import HOUR, Stack, order

COUNT = 2000
# Redis 7.0 allocates names and members separately; Valkey 9 embeds them.
FACTOR = {"redis": 1.1}
LATIN = "The lecture of Thursday is moved to room 404. " * 5
CYRILLIC = "Лекция в четверг переносится в аудиторию 404. " * 5


async def bytes_per_delivery(stack: Stack, text: str, *channels: str) -> float:
    """Bytes of one scheduled delivery, indexes included."""
    contacts = {channel: ["+79990000001"] for channel in channels}
    recipient = Recipient(123456, contacts=contacts)
    before = await used(stack)
    at = stack.now() + HOUR
    deliveries = [(order(recipient, text=text[:200], channels=channels, deliver_at=at), None) for _ in range(COUNT)]
    await stack.deliveries.enqueue_many(deliveries)
    return (await used(stack) - before) / COUNT


async def used(stack: Stack) -> int:
    """Used memory, without the buffers of connections and of the append-only file."""
    info = await stack.redis.info("memory")
    return int(info["used_memory"]) - int(info["mem_clients_normal"]) - int(info["mem_aof_buffer"])


@on_both_servers
@pytest.mark.parametrize(
    ("text", "channels", "most"),
    [
        (LATIN, ("telegram",), 1200),
        (CYRILLIC, ("telegram",), 1400),
        (LATIN, ("telegram", "vk", "sms"), 1400),
        (CYRILLIC, ("telegram", "vk", "sms"), 1600),
    ],
    ids=["latin-1", "cyrillic-1", "latin-3", "cyrillic-3"],
)
async def test_a_scheduled_delivery_is_small(
    stack: Stack, text: str, channels: tuple[str, ...], most: int, request: pytest.FixtureRequest
) -> None:
    await stack.deliver(Recipient(1), deliver_at=stack.now() + HOUR)
    bytes_each = await bytes_per_delivery(stack, text, *channels)
    print(f"{round(bytes_each)} bytes")  # noqa: T201 - a figure of docs/performance.md
    await stack.redis.flushall()
    assert bytes_each <= most * FACTOR.get(request.node.callspec.params["server"], 1)
