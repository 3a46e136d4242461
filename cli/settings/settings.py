"""The one tree of settings, read once at the start of a process, frozen, handed down.

Each field is a setting: `redis_url` is ADA_REDIS_URL in the environment and `redis_url` in settings.yaml. A channel's
settings are declared by its courier: the dataclass `Settings` of `couriers/<channel>` (decision 0002). They are read
only when that courier is wanted, because importing a courier imports its provider's library.
"""

import difflib
import os
import pkgutil
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from datetime import UTC, time, timedelta, tzinfo
from importlib import import_module
from pathlib import Path
from typing import Any, get_type_hints

from cli.settings.parsing import Address, QuietHours, Quota, Quotas, read
from cli.settings.sources import PREFIX, Given, gather
from core.errors import SetupError

SHORTEST_LEASE = timedelta(seconds=1)


@dataclass(frozen=True)
class Settings:
    """What every process knows. Defaults stand here; docs/settings.md explains each."""

    redis_url: str | None = field(default=None, repr=False)
    shards: int = 1
    http: Address = Address("127.0.0.1", 8080)
    http_rate: float = 0.0
    http_burst: int = 100
    api_key: str | None = field(default=None, repr=False)
    data: Path = Path("data")
    timezone: tzinfo = UTC
    quiet_hours: QuietHours | None = QuietHours(time(0), time(7))
    quotas: Quotas = field(
        default_factory=lambda: {"trainer": Quota(4, timedelta(days=1)), "staff": Quota(16, timedelta(days=1))}
    )
    retention: timedelta = timedelta(days=30)
    lease: timedelta = timedelta(seconds=30)
    log_level: str = "info"
    bot_token: str | None = field(default=None, repr=False)
    bot_api_url: str | None = None
    smtp_url: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.lease < SHORTEST_LEASE:
            raise SetupError(f"ADA_LEASE is too short: a courier at work needs {SHORTEST_LEASE.seconds}s to renew it")
        if not self.http_rate >= 0 or self.http_burst < 1:
            raise SetupError("ADA_HTTP_RATE is 0 or more, and ADA_HTTP_BURST at least 1")


@dataclass(frozen=True)
class Configuration:
    """The settings, and what was given for the channels, not yet read."""

    settings: Settings
    given: Mapping[str, Given] = field(repr=False)

    def channel(self, name: str) -> Any:
        """The `Settings` of one courier, read. Raises SetupError, also for an unknown name in that section."""
        declared = courier_module(name).Settings
        section = [one for key, one in self.given.items() if key.startswith(section_prefix(name))]
        refuse_unknown(section, names_of(declared, section_prefix(name)))
        return read_section(declared, section_prefix(name), self.given)

    def has_channel(self, name: str) -> bool:
        """Whether anything was set for this channel: a `./ada up` without it uses the sandbox."""
        return any(key.startswith(section_prefix(name)) for key in self.given)


def load(environment: Mapping[str, str] | None = None, directory: Path | None = None) -> Configuration:
    """Reads all sources. Raises SetupError for an unknown name or a value that makes no sense."""
    given = gather(os.environ if environment is None else environment, directory or Path.cwd())
    sections = tuple(section_prefix(channel) for channel in channels())
    refuse_unknown([one for one in given.values() if not one.name.startswith(sections)], names_of(Settings, PREFIX))
    settings: Settings = read_section(Settings, PREFIX, given)
    return Configuration(settings, given)


def channels() -> list[str]:
    """The couriers there are, by the files in `couriers/`; nothing is imported."""
    import couriers

    return sorted(module.name for module in pkgutil.iter_modules(couriers.__path__))


def courier_module(channel: str) -> Any:
    """The module of a courier: `Settings` and `open`. Raises SetupError for a channel nobody serves."""
    if channel not in channels():
        raise SetupError(f"there is no courier for {channel!r}{did_you_mean(channel, channels())}")
    return import_module(f"couriers.{channel}")


def section_prefix(channel: str) -> str:
    return f"{PREFIX}{channel.upper()}_"


def names_of(declared: type, prefix: str) -> list[str]:
    return [name_of(one, prefix) for one in fields(declared)]


def name_of(one: Field[Any], prefix: str) -> str:
    """A field may be called otherwise than its setting: `sender: str = field(metadata={"name": "from"})`."""
    return f"{prefix}{one.metadata.get('name', one.name).upper()}"


def refuse_unknown(given: Iterable[Given], known: list[str]) -> None:
    for one in given:
        if one.name not in known:
            raise SetupError(f"{one.name} (in {one.source}) is not a setting{did_you_mean(one.name, known)}")


def did_you_mean(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]}?" if near else f"; known are {', '.join(known)}"


def read_section(declared: type[Any], prefix: str, given: Mapping[str, Given]) -> Any:
    """An instance of the dataclass from what was given under its names."""
    named = {name_of(one, prefix): one for one in fields(declared)}
    missing = [name for name, one in named.items() if is_required(one) and name not in given]
    if missing:
        raise SetupError(f"{' and '.join(missing)} must be set")
    kinds = get_type_hints(declared)
    return declared(
        **{one.name: read_value(given[name], kinds[one.name]) for name, one in named.items() if name in given}
    )


def is_required(one: Field[Any]) -> bool:
    return one.default is MISSING and one.default_factory is MISSING


def read_value(given: Given, kind: Any) -> Any:
    try:
        return read(given.text, kind)
    except ValueError as fault:
        raise SetupError(f"{given.name} (in {given.source}) is {given.text!r}, {fault}") from None
