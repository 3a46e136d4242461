"""Reads Redis streams."""

from collections.abc import Mapping


def entries(found: object) -> list[tuple[str, Mapping[str, str]]]:
    """XREAD as RESP3 (a map of streams) or RESP2 (a list) answers it."""
    if not found:
        return []
    if isinstance(found, Mapping):
        pages = next(iter(found.values()))
        return (
            [(entry_id, fields) for page in pages for entry_id, fields in page]
            if pages and _nested(pages)
            else list(pages)
        )
    assert isinstance(found, list)
    return list(found[0][1])


def _nested(pages: list[object]) -> bool:
    return isinstance(pages[0], list) and bool(pages[0]) and isinstance(pages[0][0], tuple | list)
