"""Converts the text of a setting to its type: one function per type; and the file of ADA_SYNCS to its lines.

The functions of types are pure and raise ValueError with the end of the sentence "ADA_X is 'text', …".
"""

import re
import shlex
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, time, timedelta, tzinfo
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import Any, NewType, Union, get_args, get_origin
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from cli.command import did_you_mean
from core.errors import SetupError
from core.model.delivery import Quota
from core.model.durability import Durability
from core.model.hours import OfficeHours, Opening, QuietHours
from core.model.people import ROLES

_UNITS = {"w": "weeks", "d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
_OFF = ("off", "no", "false")
MIN_LEASE = timedelta(seconds=1)


@dataclass(frozen=True)
class Address:
    """Host and port, to listen on or to connect to."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Processes(StrEnum):
    """The processes of couriers and bots in `./ada up`: one for each, or one for all couriers and one for all bots."""

    MANY = "many"
    FEW = "few"


Quotas = Mapping[str, Quota]
Timezones = Mapping[str, tzinfo]
"""Tenant → time zone."""
Tenants = frozenset[str]
Lease = NewType("Lease", timedelta)
"""At least MIN_LEASE."""
WebAddress = NewType("WebAddress", str)
"""What links begin with: with a scheme and a host, because people open them elsewhere."""
Files = NewType("Files", str)
"""Paths of files, and names of modules, separated by commas."""


def parse_int(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("which is not a whole number") from None


def parse_float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("which is not a number") from None


def parse_bool(text: str) -> bool:
    if text.lower() in ("true", "yes", "on", "1"):
        return True
    if text.lower() in ("false", "no", "off", "0"):
        return False
    raise ValueError("which is neither yes nor no")


def parse_address(text: str) -> Address:
    """Read `host:port`, `[::1]:port`, or the port alone for loopback."""
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise ValueError("which is not host:port, for example 127.0.0.1:8080")
    return Address(host.strip("[]") or "127.0.0.1", int(port))


def parse_duration(text: str) -> timedelta:
    """Read `30d`, `1w 2d 3h 15m 10s`."""
    parts = re.findall(r"(\d+)([wdhms])", text)
    if not parts or re.sub(r"\d+[wdhms]|\s", "", text):
        raise ValueError("which is not a duration, for example 30d or 1h 30m")
    return timedelta(**{_UNITS[unit]: int(count) for count, unit in parts})


def parse_lease(text: str) -> Lease:
    try:
        lease = parse_duration(text)
    except ValueError as error:
        raise ValueError(f"{error}, of at least {MIN_LEASE.seconds}s") from None
    if lease < MIN_LEASE:
        raise ValueError(f"which is too short: a busy courier needs {MIN_LEASE.seconds}s to renew it")
    return Lease(lease)


def parse_timezone(text: str) -> tzinfo:
    if text.upper() == "UTC":
        return UTC
    try:
        return ZoneInfo(text)
    except (KeyError, ValueError, OSError):
        raise ValueError("which is not a time zone, for example Europe/Moscow") from None


def parse_quiet_hours(text: str) -> QuietHours | None:
    """Read `00:00-07:00`, or `off`."""
    if text.lower() in _OFF:
        return None
    try:
        begin, end = (time.fromisoformat(part.strip()) for part in text.split("-"))
    except ValueError:
        raise ValueError("which is neither off nor two times, for example 00:00-07:00") from None
    if begin == end:
        raise ValueError("which begins when it ends; off means no quiet hours")
    return QuietHours(begin, end)


_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def parse_office_hours(text: str) -> OfficeHours:
    """Read `mon-fri 09:00-18:00, sat 10:00-13:00`, or `off`."""
    if text.lower() in _OFF:
        return OfficeHours()
    return OfficeHours([_opening(part.strip().lower()) for part in text.split(",")])


def _opening(text: str) -> Opening:
    try:
        days, hours = text.split()
        first, _, last = days.partition("-")
        begin, end = (time.fromisoformat(part) for part in hours.split("-"))
        one, other = _DAYS.index(first), _DAYS.index(last or first)
    except ValueError:
        raise ValueError("which is neither off nor days and times, for example mon-fri 09:00-18:00") from None
    if begin >= end:
        raise ValueError("in which hours end before they begin")
    return Opening(frozenset((one + n) % len(_DAYS) for n in range((other - one) % len(_DAYS) + 1)), begin, end)


def parse_timezones(text: str) -> Timezones:
    """Read `school-2=Asia/Vladivostok,north=Europe/Kaliningrad`."""
    pairs = [part.partition("=") for part in text.split(",")]
    if not all(equals for _, equals, _ in pairs):
        raise ValueError("which is not a list of tenants and time zones, for example school-2=Asia/Vladivostok")
    return {tenant.strip(): parse_timezone(zone.strip()) for tenant, _, zone in pairs}


def parse_tenants(text: str) -> Tenants:
    """Read `default,school-2`."""
    return frozenset(part.strip() for part in text.split(",") if part.strip())


def parse_quotas(text: str) -> Quotas:
    """Read `trainer=4/24h,staff=16/24h`, or `off`."""
    if text.lower() in _OFF:
        return {}
    return dict(parse_quota(part.strip()) for part in text.split(","))


def parse_quota(text: str) -> tuple[str, Quota]:
    found = re.fullmatch(r"(\w+)=(\d+)/(.+)", text)
    if not found:
        raise ValueError("which is not a list of quotas, for example trainer=4/24h,staff=16/24h")
    if found[1] not in ROLES:
        raise ValueError(f"in which {found[1]!r} is no role{did_you_mean(found[1], ROLES)}")
    quota = Quota(int(found[2]), parse_duration(found[3]))
    if quota.limit == 0 or not quota.period:
        raise ValueError("in which a quota allows nothing; a role that may not send needs no API key")
    return found[1], quota


def parse_web_address(text: str) -> WebAddress:
    if not re.match(r"https?://[^\s/]", text, re.IGNORECASE):
        raise ValueError("which does not begin with https:// or http:// and a host")
    return WebAddress(text)


def parse_durability(text: str) -> Durability:
    try:
        return Durability(text)
    except ValueError:
        raise ValueError("which is neither local nor replica") from None


def parse_processes(text: str) -> Processes:
    try:
        return Processes(text)
    except ValueError:
        raise ValueError("which is neither many nor few") from None


PARSERS: Mapping[Any, Callable[[str], Any]] = {
    str: str,
    int: parse_int,
    float: parse_float,
    bool: parse_bool,
    Path: Path,
    timedelta: parse_duration,
    Lease: parse_lease,
    tzinfo: parse_timezone,
    Address: parse_address,
    Durability: parse_durability,
    Processes: parse_processes,
    QuietHours: parse_quiet_hours,
    OfficeHours: parse_office_hours,
    Quotas: parse_quotas,
    Timezones: parse_timezones,
    Tenants: parse_tenants,
    WebAddress: parse_web_address,
    Files: str,
}


def parse(text: str, kind: Any) -> Any:
    """Return the value of a setting with the declared type `kind`. `X | None` is parsed as X."""
    return PARSERS[without_none(kind)](text)


def without_none(kind: Any) -> Any:
    if get_origin(kind) in (Union, types.UnionType):
        return next(member for member in get_args(kind) if member is not type(None))
    return kind


def without_secrets(url: str) -> str:
    """Return a URL without user, password and options, for people."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


_EVERY = "--every"


def read_sync_lines(file: Path | None) -> Sequence[Sequence[str]]:
    """Return the words of each line of ADA_SYNCS, the name of the source first; none without a file. A line is what
    stands behind `./ada sync`: `1c /srv/exports --every 1h --create-groups     # a comment`. Raises SetupError.
    """
    if file is None:
        return ()
    try:
        text = file.read_text("utf-8-sig")
        lines = [shlex.split(line, comments=True) for line in text.splitlines()]
    except (OSError, ValueError) as error:
        raise SetupError(f"ADA_SYNCS is {file}, which cannot be read: {error}") from None
    found = [words for words in lines if words]
    for words in found:
        if not any(word.partition("=")[0] == _EVERY for word in words):
            raise SetupError(f"ADA_SYNCS: the line of {words[0]} needs {_EVERY}, such as {_EVERY} 1h")
    names = [words[0] for words in found]
    if repeated := {one for one in names if names.count(one) > 1}:
        raise SetupError(f"ADA_SYNCS has two lines of the source {min(repeated)}")
    return found


def named_in_syncs(file: Path | None) -> Iterator[str]:
    """Emit the files that the options of ADA_SYNCS name; none if it cannot be read."""
    with suppress(SetupError):
        for words in read_sync_lines(file):
            for option, value in pairwise(word for text in words for word in text.split("=", 1)):
                if option in ("--secret-file", "--mapping"):
                    yield value
