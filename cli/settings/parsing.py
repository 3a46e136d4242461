"""What a setting's text means: one reader per type. Pure.

Readers raise ValueError with the rest of the sentence "ADA_X is 'text', …".
"""

import re
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, time, timedelta, tzinfo
from pathlib import Path
from typing import Any, Union, get_args, get_origin
from zoneinfo import ZoneInfo

_UNITS = {"w": "weeks", "d": "days", "h": "hours", "m": "minutes", "s": "seconds"}


@dataclass(frozen=True)
class Address:
    """Where to listen or opened to."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True)
class QuietHours:
    """From and until when, in the tenant's time zone, nothing is sent. May cross midnight."""

    begin: time
    end: time


@dataclass(frozen=True)
class Quota:
    """At most `limit` deliveries per `period`, counted from the first one."""

    limit: int
    period: timedelta


Quotas = Mapping[str, Quota]


def whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("which is not a whole number") from None


def number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("which is not a number") from None


def truth(text: str) -> bool:
    words = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
    if text.lower() not in words:
        raise ValueError("which is neither yes nor no")
    return words[text.lower()]


def address(text: str) -> Address:
    """`host:port`, `[::1]:port`, or the port alone for loopback."""
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise ValueError("which is not host:port, as in 127.0.0.1:8080")
    return Address(host.strip("[]") or "127.0.0.1", int(port))


def duration(text: str) -> timedelta:
    """`30d`, `1w 2d 3h 15m 10s`."""
    parts = re.findall(r"(\d+)([wdhms])", text)
    if not parts or re.sub(r"\d+[wdhms]|\s", "", text):
        raise ValueError("which is not a duration, as in 30d or 1h 30m")
    return timedelta(**{_UNITS[unit]: int(count) for count, unit in parts})


def zone(text: str) -> tzinfo:
    if text.upper() == "UTC":
        return UTC
    try:
        return ZoneInfo(text)
    except (KeyError, ValueError, OSError):
        raise ValueError("which is not a time zone, as in Europe/Moscow") from None


def quiet_hours(text: str) -> QuietHours | None:
    """`00:00-07:00`, or `off`."""
    if text.lower() == "off":
        return None
    try:
        begin, end = (time.fromisoformat(part.strip()) for part in text.split("-"))
    except ValueError:
        raise ValueError("which is neither off nor two times, as in 00:00-07:00") from None
    return QuietHours(begin, end)


def quotas(text: str) -> Quotas:
    """`trainer=4/24h,staff=16/24h`, or `off`."""
    if text.lower() == "off":
        return {}
    return dict(quota(part.strip()) for part in text.split(","))


def quota(text: str) -> tuple[str, Quota]:
    found = re.fullmatch(r"(\w+)=(\d+)/(.+)", text)
    if not found:
        raise ValueError("which is not a list of quotas, as in trainer=4/24h,staff=16/24h")
    return found[1], Quota(int(found[2]), duration(found[3]))


READERS: Mapping[Any, Callable[[str], Any]] = {
    str: str,
    int: whole,
    float: number,
    bool: truth,
    Path: Path,
    timedelta: duration,
    tzinfo: zone,
    Address: address,
    QuietHours: quiet_hours,
    Quotas: quotas,
}


def read(text: str, kind: Any) -> Any:
    """The value of a setting whose declared type is `kind`; `X | None` is read as X."""
    return READERS[plain(kind)](text)


def plain(kind: Any) -> Any:
    if get_origin(kind) in (Union, types.UnionType):
        return next(one for one in get_args(kind) if one is not type(None))
    return kind
