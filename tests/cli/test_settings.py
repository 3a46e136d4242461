"""Settings: the order of sources, types, secrets from files, and helpful error messages."""

import os
from datetime import UTC, time, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from cli.commands.parts.courier import courier_options
from cli.settings.parsing import Address, without_secrets
from cli.settings.settings import Configuration, common_names, courier_module, load, section_prefix, setting_names
from cli.settings.sources import export
from core.errors import SetupError
from core.model.clock import Backoff
from core.model.delivery import Quota
from core.model.durability import Durability
from core.model.hours import QuietHours
from couriers.channel import channels
from couriers.sending.services import CourierOptions
from tests.support.paths import ROOT


def loaded(directory: Path, **environment: str) -> Configuration:
    return load(environment, directory)


def test_without_any_source_the_documented_defaults_apply(tmp_path: Path) -> None:
    settings = loaded(tmp_path).settings
    assert settings.redis_url is None
    assert settings.http == Address("127.0.0.1", 8080)
    assert settings.data == Path("data")
    assert settings.timezone is UTC
    assert settings.quiet_hours == QuietHours(time(0), time(7))
    assert settings.quotas == {"trainer": Quota(4, timedelta(hours=24)), "staff": Quota(16, timedelta(hours=24))}


def test_a_setting_of_a_file_is_put_into_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".env").write_text("ADA_ACTIONS=slots.py\nADA_SHARDS=2\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "environ", {})
    export("ADA_ACTIONS")
    assert os.environ == {"ADA_ACTIONS": "slots.py"}
    os.environ["ADA_ACTIONS"] = "other.py"
    export("ADA_ACTIONS")
    assert os.environ["ADA_ACTIONS"] == "other.py"


def test_the_environment_overrides_dotenv_and_dotenv_overrides_the_yaml_file(tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").write_text("shards: 2\nhttp: 0.0.0.0:1\nretention: 1d\n")
    (tmp_path / ".env").write_text("# ours\nADA_HTTP=0.0.0.0:2\nexport ADA_RETENTION='2d'\nOTHER=x\n")
    settings = loaded(tmp_path, ADA_RETENTION="3d").settings
    assert (settings.shards, str(settings.http), settings.retention) == (2, "0.0.0.0:2", timedelta(days=3))


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("\ufeffADA_SECRET_KEY=k", "k"),
        ('ADA_SECRET_KEY="a b" # ours', "a b"),
        ("ADA_SECRET_KEY='a\\n\"b'#ours", 'a\\n"b'),
        ('ADA_SECRET_KEY="a\\nb"', "a\nb"),
        ("ADA_SECRET_KEY=a#b # ours", "a#b"),
        ("ADA_SECRET_KEY=a b\t# ours", "a b"),
        ("ADA_SECRET_KEY= # ours", None),
        ("ADA_SECRET_KEY =\t#ours", None),
        ("ADA_SECRET_KEY=#b", "#b"),
        ("  export  ADA_SECRET_KEY = k\n\n # ours\nPATH=/bin\nNODE.OPTIONS-1=x", "k"),
        ('ADA_SECRET_KEY=""', None),
    ],
)
def test_a_line_of_dotenv_is_read_without_its_quotes_and_comment(tmp_path: Path, line: str, key: str | None) -> None:
    (tmp_path / ".env").write_text(line, "utf-8")
    assert loaded(tmp_path).settings.secret_key == key


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('ADA_API_KEY="hunter2', "line 2 of .env: the value of ADA_API_KEY must end with the quote"),
        ('ADA_API_KEY="hunter2" x', "line 2 of .env: the value of ADA_API_KEY must end with the quote"),
        ("ADA_API_KEY='hun'ter2'", "line 2 of .env: the value of ADA_API_KEY must end with the quote"),
        ("ADA_API_KEY: hunter2", "line 2 of .env is not NAME=value"),
        ("ADA API KEY=hunter2", "line 2 of .env is not NAME=value"),
        ("ADA_API_KEY", "line 2 of .env is not NAME=value"),
        ("AdA_API_KEI=hunter2", "line 2 of .env: AdA_API_KEI is not a setting; their names are in capital letters"),
        ("ADA_API_KEY=hunter2\nADA_API_KEY=x", "line 3 of .env: ADA_API_KEY is there twice"),
        ("ADA_API_KEY=hunter2\xff", ".env is not text in UTF-8"),
    ],
)
def test_a_line_of_dotenv_that_cannot_be_read_is_refused_without_its_value(
    tmp_path: Path, line: str, message: str
) -> None:
    (tmp_path / ".env").write_text(f"# ours\n{line}\n", "latin-1")
    with pytest.raises(SetupError) as refused:
        loaded(tmp_path)
    assert str(refused.value).startswith(message)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "text", "field", "value"),
    [
        ("ADA_HTTP", "[::1]:80", "http", Address("::1", 80)),
        ("ADA_HTTP", "9000", "http", Address("127.0.0.1", 9000)),
        ("ADA_TIMEZONE", "Europe/Moscow", "timezone", ZoneInfo("Europe/Moscow")),
        ("ADA_QUIET_HOURS", "off", "quiet_hours", None),
        ("ADA_QUIET_HOURS", "22:30-06:15", "quiet_hours", QuietHours(time(22, 30), time(6, 15))),
        ("ADA_QUOTAS", "trainer=1/1h 30m", "quotas", {"trainer": Quota(1, timedelta(minutes=90))}),
        ("ADA_QUOTAS", "off", "quotas", {}),
        (
            "ADA_TENANT_TIMEZONES",
            "a=UTC, b=Europe/Moscow",
            "tenant_timezones",
            {"a": UTC, "b": ZoneInfo("Europe/Moscow")},
        ),
        ("ADA_RETENTION", "1w 2d", "retention", timedelta(days=9)),
        ("ADA_LEASE", "1s", "lease", timedelta(seconds=1)),
        ("ADA_DURABILITY", "replica", "durability", Durability.REPLICA),
        ("ADA_OFFICE", " dean ", "office", "dean"),
        ("ADA_PUBLIC_URL", "https://ada.example ", "public_url", "https://ada.example"),
        ("ADA_REDIS_URL", "rediss://ada:secret@host:6380/1", "redis_url", "rediss://ada:secret@host:6380/1"),
    ],
)
def test_a_setting_is_parsed_as_its_type(tmp_path: Path, name: str, text: str, field: str, value: object) -> None:
    assert getattr(loaded(tmp_path, **{name: text}).settings, field) == value


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("ADA_SHARDS", "many", "ADA_SHARDS .* 'many', which is not a whole number"),
        ("ADA_HTTP", "localhost", "not host:port"),
        ("ADA_HTTP", "localhost:99999", "not host:port"),
        ("ADA_TIMEZONE", "Mars/Olympus", "not a time zone"),
        ("ADA_QUIET_HOURS", "night", "neither off nor two times"),
        ("ADA_QUOTAS", "trainer", "not a list of quotas"),
        ("ADA_QUOTAS", "trainer=0/24h", "a quota allows nothing"),
        ("ADA_QUOTAS", "trainer=4/0h", "a quota allows nothing"),
        ("ADA_QUOTAS", "teacher=4/24h", "in which 'teacher' is no role; known are student, trainer, staff, admin"),
        ("ADA_QUOTAS", "trainer=4/24h,staf=1/24h", "in which 'staf' is no role; did you mean staff"),
        ("ADA_QUIET_HOURS", "07:00-07:00", "begins when it ends"),
        ("ADA_TENANT_TIMEZONES", "Europe/Moscow", "not a list of tenants and time zones"),
        ("ADA_TENANT_TIMEZONES", "a=Europe/Mosow", "not a time zone"),
        ("ADA_RETENTION", "30 days", "not a duration"),
        ("ADA_LEASE", "0s", "ADA_LEASE .* '0s', which is too short: a busy courier needs 1s"),
        ("ADA_LEASE", "0", "ADA_LEASE .* '0', which is not a duration, for example 30d or 1h 30m, of at least 1s"),
        ("ADA_PUBLIC_URL", "ada.example", "ADA_PUBLIC_URL .* 'ada.example', which does not begin with https://"),
        ("ADA_DURABILITY", "all", "ADA_DURABILITY .* 'all', which is neither local nor replica"),
    ],
)
def test_a_value_of_the_wrong_type_is_reported_with_its_name_and_source(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    with pytest.raises(SetupError, match=message):
        loaded(tmp_path, **{name: text})


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [("ADA_REDIS_UTL", "ADA_REDIS_URL"), ("ADA_TIMEZON", "ADA_TIMEZONE"), ("ADA_API", "ADA_API_KEY")],
)
def test_an_unknown_name_is_refused_with_did_you_mean(tmp_path: Path, name: str, suggestion: str) -> None:
    with pytest.raises(SetupError, match=f"{name} .*did you mean {suggestion}"):
        loaded(tmp_path, **{name: "x"})


def test_an_unknown_name_in_the_yaml_file_is_reported_with_the_file(tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").write_text("redis: {ulr: x}\n")
    with pytest.raises(SetupError, match=r"ADA_REDIS_ULR \(in settings.yaml\)"):
        loaded(tmp_path)


@pytest.mark.parametrize("text", ["- a\n- b\n", "a: [1\n", "just words"])
def test_a_settings_file_that_is_not_a_mapping_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "settings.yaml").write_text(text)
    with pytest.raises(SetupError, match=r"settings\.yaml"):
        loaded(tmp_path)


@pytest.mark.parametrize("text", ["bot_token: 'hunter2\nx: 1\n", "bot_token: hunter2: [\n", "bot_token: hunter2\x00"])
def test_a_mistake_in_the_yaml_file_is_reported_without_its_text(tmp_path: Path, text: str) -> None:
    """The file may contain secrets, and errors go to logs."""
    (tmp_path / "settings.yaml").write_text(text)
    with pytest.raises(SetupError, match=r"settings\.yaml is not YAML: ") as refused:
        load({}, tmp_path)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        ("api_key: 0123", "api_key", "0123"),
        ("api_key: 12:30", "api_key", "12:30"),
        ("api_key: no", "api_key", "no"),
        ("api_key: 1_000", "api_key", "1_000"),
        ("api_key: 4.20", "api_key", "4.20"),
        ("api_key: 2026-11-29", "api_key", "2026-11-29"),
        ("api_key: ~", "api_key", None),
        ("quiet_hours: off", "quiet_hours", None),
        ("quiet_hours: no", "quiet_hours", None),
        ("quotas: false", "quotas", {}),
        ("webhook_allow_private: Yes", "webhook_allow_private", True),
        ("webhook_allow_private: on", "webhook_allow_private", True),
        ("webhook_allow_private: false", "webhook_allow_private", False),
        ("staff_writes_to_all: [07, no]", "staff_writes_to_all", {"07", "no"}),
        ("shards: 2", "shards", 2),
    ],
)
def test_a_value_of_the_yaml_file_is_read_as_it_is_written(
    tmp_path: Path, line: str, field: str, value: object
) -> None:
    (tmp_path / "settings.yaml").write_text(f"{line}\n")
    assert getattr(loaded(tmp_path).settings, field) == value


def test_a_settings_file_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").write_bytes(b"api_key: \xff\n")
    with pytest.raises(SetupError, match=r"settings\.yaml is not text in UTF-8"):
        loaded(tmp_path)


def test_a_secret_may_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("from-file\n")
    assert loaded(tmp_path, ADA_API_KEY_FILE=str(tmp_path / "key")).settings.api_key == "from-file"
    with pytest.raises(SetupError, match="ADA_API_KEY_FILE names a file that cannot be read"):
        loaded(tmp_path, ADA_API_KEY_FILE=str(tmp_path / "missing"))


def test_printed_settings_do_not_show_secrets(tmp_path: Path) -> None:
    configuration = loaded(
        tmp_path, ADA_API_KEY="geheim", ADA_REDIS_URL="redis://:geheim@h", ADA_TELEGRAM_API_HASH="geheim"
    )
    assert "geheim" not in repr(configuration)
    for name in ("ADA_MODEL_KEY", "ADA_API_KEY"):
        with pytest.raises(SetupError, match=f"{name} .* has a line break") as refused:
            loaded(tmp_path, **{name: "geheim\ngeheim"})
        assert "geheim" not in str(refused.value)


def test_an_empty_value_counts_as_not_set(tmp_path: Path) -> None:
    assert loaded(tmp_path, ADA_REDIS_URL="", ADA_SHARDS="").settings.shards == 1


def test_ada_settings_names_another_settings_file(tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text("shards: 7\n")
    assert loaded(tmp_path, ADA_SETTINGS=str(tmp_path / "other.yaml")).settings.shards == 7
    with pytest.raises(SetupError, match="ADA_SETTINGS names"):
        loaded(tmp_path, ADA_SETTINGS=str(tmp_path / "missing.yaml"))


def test_the_section_of_a_channel_is_parsed_by_the_dataclass_of_its_courier(tmp_path: Path) -> None:
    given = {"ADA_TELEGRAM_API_ID": "17", "ADA_TELEGRAM_API_HASH": "h", "ADA_TELEGRAM_BOT_TOKEN": "t"}
    configuration = loaded(tmp_path, **given)
    assert configuration.has_channel("telegram")
    assert not loaded(tmp_path).has_channel("telegram")
    assert configuration.channel("telegram").api_id == 17


def test_a_channel_may_use_common_settings(tmp_path: Path) -> None:
    configuration = loaded(tmp_path, ADA_SMTP_URL="smtp://u:geheim@h", ADA_EMAIL_LOCALE="en", ADA_MAIL_TEMPLATES="t")
    assert configuration.has_channel("email")
    settings = configuration.channel("email")
    assert (settings.url, settings.locale, settings.templates) == ("smtp://u:geheim@h", "en", Path("t"))
    assert configuration.settings.smtp_url == settings.url
    assert "geheim" not in f"{configuration}{settings}"
    with pytest.raises(SetupError, match="ADA_SMTP_URL must be set"):
        loaded(tmp_path, ADA_EMAIL_LOCALE="en").channel("email")


def test_a_channel_may_set_its_own_pauses_and_attempts(tmp_path: Path) -> None:
    """A mail server that does greylisting wants minutes between the attempts; the usual ones are over after two."""
    configuration = loaded(tmp_path, ADA_SMTP_URL="smtp://h", ADA_EMAIL_CONNECTIONS="3", ADA_EMAIL_ATTEMPTS="5")
    options = courier_options("email", configuration.channel("email"), timedelta(seconds=9))
    assert (options.concurrency, options.backoff) == (3, Backoff(timedelta(minutes=1), attempts=5))
    assert options.lease == timedelta(seconds=9)
    echo = courier_options("echo", loaded(tmp_path).channel("echo"), timedelta(seconds=9))
    assert (echo.concurrency, echo.backoff) == (CourierOptions().concurrency, Backoff())


def test_a_missing_or_unknown_setting_of_a_channel_is_reported_when_its_courier_starts(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="ADA_TELEGRAM_API_HASH must be set"):
        loaded(tmp_path, ADA_TELEGRAM_API_ID="17").channel("telegram")
    with pytest.raises(SetupError, match=r"ADA_TELEGRAM_BOT_TOKN .*did you mean ADA_TELEGRAM_BOT_TOKEN"):
        loaded(tmp_path, ADA_TELEGRAM_BOT_TOKN="x").channel("telegram")
    with pytest.raises(SetupError, match="there is no courier for 'telegarm'; did you mean telegram"):
        loaded(tmp_path).channel("telegarm")


def test_a_channel_with_a_hyphen_is_a_module_with_an_underscore_and_a_section_of_its_own(tmp_path: Path) -> None:
    """ADA_TELEGRAM_BOT_TOKEN is a setting of `telegram`, so the section of `telegram-bot` is ADA_BOT_."""
    assert "telegram-bot" in channels()
    configuration = loaded(tmp_path, ADA_BOT_TOKEN="5:secret", ADA_BOT_API_URL="http://h", ADA_BOT_TIMEOUT="5s")
    assert configuration.has_channel("telegram-bot")
    assert not configuration.has_channel("telegram")
    assert configuration.settings.bot_token == configuration.channel("telegram-bot").token == "5:secret"
    assert configuration.settings.bot_api_url == configuration.channel("telegram-bot").api_url == "http://h"
    assert "secret" not in repr(configuration.channel("telegram-bot"))
    with pytest.raises(SetupError, match=r"ADA_BOT_TOKN .*did you mean ADA_BOT_TOKEN"):
        loaded(tmp_path, ADA_BOT_TOKEN="5:x", ADA_BOT_TOKN="x").channel("telegram-bot")
    assert not loaded(tmp_path, ADA_TELEGRAM_BOT_TOKEN="5:x").has_channel("telegram-bot")


def test_the_records_of_channels_name_what_the_api_reads(tmp_path: Path) -> None:
    inbound = ("SMS_SECRET", "TELEGRAM_SECRET", "VK_SECRET", "VK_CONFIRMATION")
    names = {*(f"ADA_INBOUND_{one}" for one in inbound), "ADA_MAX_WEBHOOK_URL", "ADA_MAX_WEBHOOK_SECRET"}
    configuration = loaded(tmp_path, ADA_MAX_TOKEN="t", ADA_SMS_PROFILE="sms.ru", **dict.fromkeys(names, "x"))
    assert {*names, "ADA_SMS_PROFILE"} <= set(common_names())
    assert (configuration.text("ADA_SMS_PROFILE"), configuration.text("ADA_HTTP")) == ("sms.ru", "")
    assert configuration.channel("max").webhook_secret == "x"
    with pytest.raises(SetupError, match="did you mean ADA_INBOUND_VK_SECRET"):
        loaded(tmp_path, ADA_INBOUND_VK_SECRT="x")


def test_every_setting_is_explained_in_the_docs() -> None:
    names = [*common_names(), "ADA_SETTINGS"]
    for channel in channels():
        names += setting_names(courier_module(channel).Settings, section_prefix(channel))
    page = (ROOT / "docs" / "settings.md").read_text()
    assert [name for name in names if f"| {name} |" not in page] == []


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://ada:secret@10.0.0.1:6379/2?timeout=1", "redis://10.0.0.1:6379/2"),
        ("rediss+cluster://:secret@10.0.0.1:6379,10.0.0.2:6379", "rediss+cluster://10.0.0.1:6379,10.0.0.2:6379"),
        ("redis+sentinel://:secret@10.0.0.1:26379/main/0", "redis+sentinel://10.0.0.1:26379/main/0"),
        ("unix://:secret@/run/redis.sock", "unix:///run/redis.sock"),
    ],
)
def test_an_url_is_shown_without_its_secrets(url: str, shown: str) -> None:
    assert without_secrets(url) == shown


OF_ACCOUNTS = {
    "email": {"ADA_SMTP_URL"},
    "max": {"ADA_MAX_TOKEN", "ADA_MAX_API_URL"},
    "sms": {"ADA_SMS_URL", "ADA_SMS_USERNAME", "ADA_SMS_PASSWORD"},
    "telegram": {
        *("ADA_TELEGRAM_API_ID", "ADA_TELEGRAM_API_HASH", "ADA_TELEGRAM_BOT_TOKEN", "ADA_TELEGRAM_SESSION"),
        *("ADA_TELEGRAM_SERVER", "ADA_TELEGRAM_SERVER_KEY"),
    },
    "telegram-bot": {"ADA_BOT_TOKEN", "ADA_BOT_API_URL"},
    "vk": {"ADA_VK_TOKEN", "ADA_VK_API_URL"},
}


@pytest.mark.parametrize("channel", OF_ACCOUNTS)
def test_only_the_settings_of_an_account_end_the_simulation(tmp_path: Path, channel: str) -> None:
    """ADA_SMS_PRICE alone did, so nothing was simulated and nothing sent."""
    names = setting_names(courier_module(channel).Settings, section_prefix(channel))
    ending = {name for name in names if loaded(tmp_path, **{name: "1"}).has_channel(channel)}
    assert ending == OF_ACCOUNTS[channel]
