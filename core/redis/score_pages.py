"""Pages of a sorted set by score: no member is passed over when earlier ones vanish while it is read, as by rank."""

from core.redis.store import Store

BEGIN = -1
"""Before the first member; scores are whole numbers from 0."""


async def page_by_score(store: Store, key: str, after: int, most: int) -> list[tuple[str, int]]:
    """Return the members with a score over `after`, each with its score: at most `most`, and those besides whose score
    is that of the last one. Fewer than `most` are the last page. Raises StoreError.
    """
    page = await store.command("ZRANGEBYSCORE", key, f"({after}", "+inf", "WITHSCORES", "LIMIT", 0, most)
    if len(page) == most:
        last = page[-1][1]
        alike = await store.command("ZRANGEBYSCORE", key, last, last, "WITHSCORES")
        page = [*(one for one in page if one[1] != last), *alike]
    return [(member, int(score)) for member, score in page]
