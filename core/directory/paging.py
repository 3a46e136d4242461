"""Pages of sorted ids. A cursor names the last id of the page before, so pages neither overlap nor skip what stays.

Ids are sorted as text, by their bytes in UTF-8 (10 before 9).
"""

from collections.abc import AsyncIterator, Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from core.directory.records import PAGE
from core.errors import malformed_cursor
from core.model.text.characters import from_unreserved, to_unreserved
from core.redis.store import Store

T = TypeVar("T")


class DirectoryPage(Struct, Generic[T], frozen=True):
    """A part of a list. `next`: the cursor of the next page, None on the last."""

    items: Sequence[T]
    next: str | None = None


async def pages_of_ids(
    store: Store, key: str, after: str = "", size: int = PAGE, end: str = "+"
) -> AsyncIterator[list[str]]:
    """Emit the ids of a sorted set after an id and up to `end`, at most `size` at a time."""
    while True:
        start = f"({after}" if after else "-"
        page: list[str] = await store.command("ZRANGEBYLEX", key, start, end, "LIMIT", 0, size)
        if page:
            yield page
        if len(page) < size:
            return
        after = page[-1]


async def all_ids(store: Store, key: str) -> list[str]:
    """Return all ids of a sorted set, read in pages."""
    return [one async for page in pages_of_ids(store, key) for one in page]


async def page_of_ids(store: Store, key: str, cursor: str | None, limit: int) -> tuple[list[str], str | None]:
    """Return at most `limit` ids of a sorted set, and the cursor of the next page. Raises Invalid CURSOR_MALFORMED."""
    found: list[str] = []
    async for page in pages_of_ids(store, key, read_cursor(cursor), min(limit + 1, PAGE)):
        found += page
        if len(found) > limit:
            return found[:limit], write_cursor(found[limit - 1])
    return found, None


def write_cursor(last: str) -> str:
    return to_unreserved(last)


def read_cursor(cursor: str | None) -> str:
    """Return the id after which a page begins; "" for the first page. Raises Invalid CURSOR_MALFORMED."""
    if cursor is None:
        return ""
    last = from_unreserved(cursor)
    if not last or "\0" in last or write_cursor(last) != cursor:
        raise malformed_cursor()
    return last
