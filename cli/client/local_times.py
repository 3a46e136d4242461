"""Moments in the zone of the installation: those that people write, and those that they are shown, as in the console.
JSON keeps UTC. Also how long something took.
"""

from argparse import Namespace
from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from cli.client.http_client import HttpClient
from cli.command import WRONG_USAGE, CommandFailed
from core.model.clock import from_wall

TIMES = "14:30, 'tomorrow 9:00', '25.11 9:00' or 2026-11-25T09:00, with a zone if it is not that of the installation"
_MOMENTS = ("at", "until", "next", "moved_from", "not_before")


async def zone_of(api: HttpClient, arguments: Namespace) -> tzinfo:
    """Return the zone of the tenant; with `--json` UTC, as nothing is shown."""
    return UTC if arguments.json else ZoneInfo((await api.call("GET", "/v1/me"))["timezone"])


async def read_times(api: HttpClient, arguments: Namespace, *names: str) -> None:
    """Replace what a person has written for these options, such as `tomorrow 9:00`, by a moment with its zone. Raises
    CommandFailed.
    """
    written = {name: value for name in names if (value := getattr(arguments, name)) and not _has_zone(value)}
    if written:
        zone = ZoneInfo((await api.call("GET", "/v1/me"))["timezone"])
        for name, text in written.items():
            setattr(arguments, name, read_moment(name, text, zone).isoformat())


def read_moment(option: str, text: str, zone: tzinfo) -> datetime:
    """Return the moment that a person has written. A clock time alone is the next one. Raises CommandFailed."""
    from core.orders.check import TimePassed, read_time  # imports aiohttp and redis, which most verbs do not need

    now = datetime.now(UTC)
    try:
        typed = read_time(text, now, zone)
        if typed and typed.skipped:
            raise CommandFailed(f"--{option}: the clock is put forward over {typed.skipped} of that day", WRONG_USAGE)
        found = typed.at if typed else _iso_moment(text)
        return found.astimezone(zone) if found.tzinfo else from_wall(found, zone, now)
    except TimePassed:
        raise CommandFailed(f"--{option}: {text} has passed", WRONG_USAGE) from None
    except (ValueError, OverflowError):
        raise CommandFailed(
            f"--{option} {text!r} is no time: write 14:30, 'tomorrow 9:00', '25.11 14:30', 2026-11-25T14:30 or "
            "2026-11-25T14:30:00+03:00",
            WRONG_USAGE,
        ) from None


def shown_moment(at: datetime | None, zone: tzinfo) -> str:
    """Return a moment as people read it, `2026-11-28 20:53:18+03:00`; "" for none."""
    return at.astimezone(zone).isoformat(" ", "seconds") if at else ""


def format_span(ms: float) -> str:
    """Return a time as people read it, with two units at most: 12 ms, 3.4 s, 12:05 min, 3:20 h, 4.2 d."""
    seconds = ms / 1000
    if seconds < 60:
        return f"{ms:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
    if seconds < 3600:
        return f"{seconds // 60:.0f}:{seconds % 60:02.0f} min"
    return f"{seconds // 3600:.0f}:{seconds % 3600 // 60:02.0f} h" if seconds < 86400 else f"{seconds / 86400:.1f} d"


def _iso_moment(text: str) -> datetime:
    """Return a date with a time of day. Raises ValueError; also for a date alone, which would mean midnight."""
    if "T" not in text.upper() and " " not in text.strip():
        raise ValueError(text)
    return datetime.fromisoformat(text)


def _has_zone(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


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
    return shown_moment(datetime.fromisoformat(found), zone)
