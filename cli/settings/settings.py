"""The settings of a process: read once at its start, frozen, passed down.

Each field is a setting: `redis_url` is ADA_REDIS_URL in the environment and `redis_url` in settings.yaml. A courier
declares the settings of its channel: the dataclass `Settings` of its module (docs/decisions/0002). They are
read only when that courier is used, because importing a courier imports its provider's library.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from datetime import UTC, time, timedelta, tzinfo
from pathlib import Path
from typing import Any, get_type_hints
from urllib.parse import parse_qsl, urlsplit

from cli.command import did_you_mean
from cli.settings.own_texts import read_own_texts
from cli.settings.parsing import (
    Address,
    Files,
    Lease,
    Processes,
    Quotas,
    Tenants,
    Timezones,
    WebAddress,
    named_in_syncs,
    parse,
    without_none,
)
from cli.settings.sources import PREFIX, RawSetting, collect
from core.errors import SetupError
from core.model.delivery import Quota
from core.model.durability import Durability
from core.model.hours import OfficeHours, QuietHours
from core.sentence import replace_texts
from couriers import channel as registry
from couriers.channel import channels

_LEASE = Lease(timedelta(seconds=30))
_MAILBOX = re.compile(r"[a-z0-9._-]{1,13}@[a-z0-9-]+(\.[a-z0-9-]+)+")
"""The addresses of replies are longer, and servers read at most 64 characters before the @."""


@dataclass(frozen=True)
class Settings:
    """The settings of all processes, with their defaults. docs/settings.md explains each of them. Those by which what
    a provider posts is recognised are in the record of its channel.
    """

    redis_url: str | None = field(default=None, repr=False)
    shards: int = 1
    durability: Durability = Durability.LOCAL
    http: Address = Address("127.0.0.1", 8080)
    http_rate: float = 0.0
    http_burst: int = 100
    api_key: str | None = field(default=None, repr=False)
    metrics_key: str | None = field(default=None, repr=False)
    data: Path = Path("data")
    processes: Processes = Processes.MANY
    timezone: tzinfo = UTC
    tenant_timezones: Timezones = field(default_factory=dict)
    quiet_hours: QuietHours | None = QuietHours(time(0), time(7))
    office_hours: OfficeHours = field(default_factory=OfficeHours)
    quotas: Quotas = field(
        default_factory=lambda: {"trainer": Quota(4, timedelta(days=1)), "staff": Quota(16, timedelta(days=1))}
    )
    staff_writes_to_all: Tenants = frozenset()
    office: str | None = None
    office_chat: str | None = None
    operators: str | None = None
    retention: timedelta = timedelta(days=30)
    answers_retention: timedelta | None = None
    threads_retention: timedelta = timedelta(days=400)
    lease: Lease = _LEASE
    log_level: str = "info"
    file_mb: int = 20
    files_total_mb: int = 256
    bot_token: str | None = field(default=None, repr=False)
    bot_api_url: str | None = None
    bot_tenant: str = "default"
    bot_webhook_url: str | None = None
    scenarios: Path | None = None
    texts: Path | None = None
    inbound_mail: str | None = None
    inbound_mail_secret: str | None = field(default=None, repr=False)
    imap_url: str | None = field(default=None, repr=False)
    lmtp: Address | None = None
    smtp_url: str | None = field(default=None, repr=False)
    smtp_ca: Path | None = None
    mail_templates: Path | None = None
    webhook_allow_private: bool = False
    link_code_lifetime: timedelta = timedelta(minutes=24)
    model_url: str | None = None
    model_key: str | None = field(default=None, repr=False)
    model_name: str = "gpt-4o-mini"
    model_timeout: timedelta = timedelta(minutes=2)
    speech: str = "espeak"
    speech_url: str | None = None
    speech_key: str | None = field(default=None, repr=False)
    speech_model: str = "tts-1"
    speech_voice: str | None = None
    speech_timeout: timedelta = timedelta(minutes=1)
    speech_ca: Path | None = None
    speech_token_url: str | None = None
    speech_scope: str = "SALUTE_SPEECH_PERS"
    transcription: str | None = None
    transcription_model: str = "whisper-1"
    ai_cache_age: timedelta = timedelta(days=1)
    ai_cache_megabytes: int = 500
    jobs: Files | None = None
    actions: Files | None = None
    model_budget: int = 0
    sign_in: Path | None = None
    oidc: Path | None = None
    syncs: Path | None = None
    secret_key: str | None = field(default=None, repr=False, metadata={"lines": True})
    public_url: WebAddress | None = None

    def __post_init__(self) -> None:
        if not self.http_rate >= 0 or self.http_burst < 1:
            raise SetupError("ADA_HTTP_RATE must be 0 or more, and ADA_HTTP_BURST at least 1")
        if not 1 <= self.file_mb <= self.files_total_mb:
            raise SetupError("ADA_FILE_MB must be at least 1, and at most ADA_FILES_TOTAL_MB")
        if self.link_code_lifetime < timedelta(minutes=1):
            raise SetupError("ADA_LINK_CODE_LIFETIME is too short: a mail needs 1m to arrive and to be read")
        if self.inbound_mail is not None and not _MAILBOX.fullmatch(self.inbound_mail):
            raise SetupError(
                "ADA_INBOUND_MAIL must be an e-mail address in small letters, with at most 13 characters before the @"
            )
        if self.inbound_mail is None and (self.imap_url or self.lmtp):
            name = "ADA_IMAP_URL" if self.imap_url else "ADA_LMTP"
            raise SetupError(f"{name} needs ADA_INBOUND_MAIL, the address whose mails come this way")


@dataclass(frozen=True)
class Configuration:
    """The settings of all processes, and the unparsed settings of all sources for the channels."""

    settings: Settings
    raw: Mapping[str, RawSetting] = field(repr=False)

    def with_raw(self, raw: Mapping[str, RawSetting]) -> "Configuration":
        """Return the configuration with these settings in place of its own. Raises SetupError."""
        return Configuration(parse_section(Settings, PREFIX, raw), raw)

    def channel(self, name: str) -> Any:
        """Return the `Settings` of one courier. Raises SetupError, also for an unknown name in its section."""
        declared, prefix = courier_module(name).Settings, section_prefix(name)
        section = [setting for key, setting in self.raw.items() if key.startswith(prefix) and key not in common_names()]
        refuse_unknown(section, setting_names(declared, prefix))
        return parse_section(declared, prefix, self.raw)

    def text(self, name: str) -> str:
        """Return the text of a setting, "" if it is not set."""
        return self.raw[name].text if name in self.raw else ""

    def named_files(self) -> Iterator[tuple[str, str]]:
        """Emit each setting that may name files or folders, with each of its paths."""
        types = get_type_hints(Settings)
        for name, kind in ((setting_name(one, PREFIX), without_none(types[one.name])) for one in fields(Settings)):
            if kind is Path:
                yield name, self.text(name)
            elif kind is Files:
                yield from ((name, path) for path in self.text(name).replace(",", " ").split())
        for channel in channels().values():
            yield from ((name, self.text(name)) for name in sorted(channel.files))
        options = parse_qsl(urlsplit(self.settings.redis_url or "").query)
        yield from ((f"{PREFIX}REDIS_URL", path) for option, path in options if option.startswith("ssl_"))
        yield from ((f"{PREFIX}SYNCS", path) for path in named_in_syncs(self.settings.syncs))

    def has_channel(self, name: str) -> bool:
        """Return whether the channel has an account. `./ada up` starts the sandbox if no channel has one."""
        channel = channels()[name]
        no_account, prefix = channel.no_account | channel.of_installation, section_prefix(name)
        return channel.account in self.raw or any(key.startswith(prefix) for key in self.raw if key not in no_account)


def load(
    environment: Mapping[str, str] | None = None,
    directory: Path | None = None,
    may_receive: Callable[[str], bool] = bool,
) -> Configuration:
    """Read all sources, without the settings for whose name `may_receive` is false. From now on this process says the
    texts of ADA_TEXTS.

    Raises SetupError for an unknown name, a value of the wrong type, or a text that cannot be used.
    """
    raw = collect(os.environ if environment is None else environment, directory or Path.cwd(), may_receive)
    sections = tuple(section_prefix(channel) for channel in channels())
    common = [setting for setting in raw.values() if not setting.name.startswith(sections)]
    refuse_unknown(common, common_names())
    settings: Settings = parse_section(Settings, PREFIX, raw)
    replace_texts(read_own_texts(settings.texts))
    return Configuration(settings, raw)


def courier_module(channel: str) -> Any:
    """Return the module of a courier, with `Settings` and `open`. Raises SetupError for an unknown channel, and for a
    package that cannot be imported.
    """
    if record := channels().get(channel):
        return registry.courier_module(record)
    raise SetupError(f"there is no courier for {channel!r}{did_you_mean(channel, list(channels()))}")


def section_prefix(channel: str) -> str:
    """Return what the names of a channel's settings begin with."""
    section = channels()[channel].section or channel
    return f"{PREFIX}{section.upper().replace('-', '_')}_"


def common_names() -> list[str]:
    """Return the settings of all processes, and those of channels that are not only of their sections."""
    of_channels = [
        name
        for channel, one in channels().items()
        for name in {*one.of_installation, *one.inbound_settings}
        if name in one.of_installation or not name.startswith(section_prefix(channel))
    ]
    return [*setting_names(Settings, PREFIX), *of_channels]


def setting_names(declared: type, prefix: str) -> list[str]:
    return [setting_name(field, prefix) for field in fields(declared)]


def setting_name(field: Field[Any], prefix: str) -> str:
    """Return the setting of a field, which may have another name: `sender: str = field(metadata={"name": "from"})`.

    `metadata={"setting": "ADA_SMTP_URL"}` names a common setting, which other processes read too.
    """
    if "setting" in field.metadata:
        return str(field.metadata["setting"])
    return f"{prefix}{field.metadata.get('name', field.name).upper()}"


def refuse_unknown(settings: Iterable[RawSetting], known: list[str]) -> None:
    for setting in settings:
        if setting.name not in known:
            raise SetupError(
                f"{setting.name} (in {setting.source}) is not a setting{did_you_mean(setting.name, known)}"
            )


def parse_section(declared: type[Any], prefix: str, raw: Mapping[str, RawSetting]) -> Any:
    """Return an instance of the dataclass `declared`, from the settings with its names. Raises SetupError."""
    by_name = {setting_name(field, prefix): field for field in fields(declared)}
    missing = [name for name, field in by_name.items() if is_required(field) and name not in raw]
    if missing:
        raise SetupError(f"{' and '.join(missing)} must be set")
    for name, one in by_name.items():
        if not one.repr and not one.metadata.get("lines") and name in raw and not raw[name].text.isprintable():
            raise SetupError(f"{name} (in {raw[name].source}) has a line break or a character that cannot be seen")
    types = get_type_hints(declared)
    return declared(
        **{field.name: parse_value(raw[name], types[field.name]) for name, field in by_name.items() if name in raw}
    )


def is_required(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def parse_value(setting: RawSetting, kind: Any) -> Any:
    try:
        return parse(setting.text, kind)
    except ValueError as error:
        raise SetupError(f"{setting.name} (in {setting.source}) is {setting.text!r}, {error}") from None
