"""Reads lists of the API page by page, and quotes ids in paths."""

from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import quote

from cli.client.http_client import HttpClient

_PAGE = "500"


async def items(api: HttpClient, path: str, name: str, query: Mapping[str, str]) -> AsyncIterator[dict[str, Any]]:
    """Emit all items of a list, in the order of the API. `name`: the field of a page that has them."""
    cursor: str | None = ""
    while cursor is not None:
        page = await api.call("GET", path, query={**query, "limit": _PAGE, **({"cursor": cursor} if cursor else {})})
        for item in page[name]:
            yield item
        cursor = page["next"]


def quoted(given: str) -> str:
    """Return an id as a part of a path."""
    return quote(given, safe="")
