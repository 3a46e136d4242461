"""Which content types a body may have."""

from aiohttp import hdrs, web

from core.errors import Refused

JSON = frozenset({"application/json"})
# The last two are what HTTP libraries call raw bytes when they are not told better.
LINES = frozenset(
    {"application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines", "application/json",
     "application/octet-stream"}
)  # fmt: skip


def check(request: web.Request, allowed: frozenset[str]) -> None:
    """Raises `Refused` CONTENT_TYPE_UNSUPPORTED. A body without any type is taken for what is wanted."""
    told = request.headers.get(hdrs.CONTENT_TYPE)
    if told in allowed or told is None or not request.body_exists:
        return
    name, _, parameters = told.lower().partition(";")
    if name.strip() not in allowed or ("charset" in parameters and "utf-8" not in parameters):
        raise Refused("CONTENT_TYPE_UNSUPPORTED", f"{min(allowed)} in UTF-8 is wanted.")
