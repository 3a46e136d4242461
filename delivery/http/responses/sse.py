"""Server-sent events (HTML Standard, section 9.2): the format, heartbeats on a silent stream, the end at shutdown."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from datetime import timedelta
from typing import Any, TypeVar

from aiohttp import hdrs

T = TypeVar("T")

CONTENT_TYPE = "text/event-stream"
HEADERS = {
    hdrs.CONTENT_TYPE: CONTENT_TYPE,
    hdrs.CACHE_CONTROL: "no-store",
    "X-Accel-Buffering": "no",  # nginx would buffer events
}
HEARTBEAT = b": still here\n\n"


def encode_event(event_id: int | str, name: str, data: bytes) -> bytes:
    """Return one event. `event_id` and `data` have no line breaks."""
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (str(event_id).encode(), name.encode(), data)


async def with_heartbeats(
    items: AsyncGenerator[T, None], interval: timedelta, end: Awaitable[object]
) -> AsyncIterator[T | None]:
    """Emit the items, and None after every `interval` without one. Ends with the items, or with `end`."""
    ending = asyncio.ensure_future(end)
    upcoming = asyncio.ensure_future(anext(items, None))
    try:
        while not ending.done():
            await asyncio.wait(
                {upcoming, ending}, timeout=interval.total_seconds(), return_when=asyncio.FIRST_COMPLETED
            )
            if not upcoming.done():
                yield None
                continue
            item = upcoming.result()
            if item is None:
                return
            yield item
            upcoming = asyncio.ensure_future(anext(items, None))
    finally:
        await cancel_and_join(upcoming, ending)
        await items.aclose()


async def cancel_and_join(*futures: "asyncio.Future[Any]") -> None:
    """Cancel the futures and wait until they have ended, whatever they raise."""
    for future in futures:
        future.cancel()
    await asyncio.gather(*futures, return_exceptions=True)
