"""Shows people the moments of the API in the zone of their installation, as the console does; JSON keeps UTC."""

from argparse import Namespace
from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from cli.client.http_client import HttpClient

_MOMENTS = ("at", "until", "next", "moved_from", "not_before")


async def zone_of(api: HttpClient, arguments: Namespace) -> tzinfo:
    """Return the zone of the tenant; with `--json` UTC, as nothing is shown."""
    return UTC if arguments.json else ZoneInfo((await api.call("GET", "/v1/me"))["timezone"])


def in_zone(found: Any, zone: tzinfo) -> Any:
    """Return what the API has returned, its moments as `2026-11-28 20:53:18+03:00`."""
    if isinstance(found, Mapping):
        return {name: _moments(one, zone) if _is_moment(name) else in_zone(one, zone) for name, one in found.items()}
    return [in_zone(one, zone) for one in found] if isinstance(found, list) else found


def _is_moment(name: str) -> bool:
    return name in _MOMENTS or name.endswith("_at")


def _moments(found: Any, zone: tzinfo) -> Any:
    """Return a moment, or a list of them; the cursor of a page is none, and stays."""
    if isinstance(found, list):
        return [_moments(one, zone) for one in found]
    if not isinstance(found, str) or "T" not in found:
        return found
    return datetime.fromisoformat(found).astimezone(zone).isoformat(" ", "seconds")
