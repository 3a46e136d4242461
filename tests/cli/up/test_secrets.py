"""Secrets and files: private directories, each process with its own secrets only, no printed passwords."""

import os
import stat
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from redis import Redis

from cli.commands.start.installation import COURIERS, ada_child, simulated_channels
from cli.processes.data_directory import prepare_data_directory
from cli.processes.embedded_valkey import last_port_and_password, prepare
from cli.services.scenarios import known_secrets
from cli.settings.secrets import may_receive, receiver, secret_readers
from cli.settings.settings import Settings, load, setting_name
from core.errors import SetupError
from couriers.channel import channels, receiving
from tests.cli.installation import ADA, Installation
from tests.support.paths import ROOT

BOTS = [one.process for one in receiving().values()]

CHANNEL_SECRETS = {
    "ADA_TELEGRAM_API_HASH": {"telegram"},
    "ADA_VK_TOKEN": {"vk", "bot vk"},
    "ADA_SMS_PASSWORD": {"sms"},
    "ADA_BOT_TOKEN": {"telegram-bot", "bot telegram", "telegram"},
    "ADA_SMTP_URL": {"serve", "email"},
    "ADA_API_KEY": {"serve", "sync"},
    "ADA_INBOUND_MAIL_SECRET": {"serve"},
    "ADA_IMAP_URL": {"serve"},
    "ADA_INBOUND_SMS_SECRET": {"serve", "sandbox", "sms"},
}
"""Secrets → the processes that receive them."""

FORKS = ("serve", "sandbox", *simulated_channels(), *(f"bot {channel}" for channel in BOTS))


def test_the_page_of_settings_says_which_process_receives_a_secret() -> None:
    page = (ROOT / "docs" / "settings.md").read_text()
    words = {"serve": "`serve`", "couriers": "every courier", "bots": "every bot"}
    for name, readers in secret_readers().items():
        listed = ", ".join(words.get(one, f"`{one}`") for one in sorted(readers, reverse=True))
        assert f"| {name} | {listed or 'no process of `up` yet'} |" in page


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_only_the_owner_can_read_what_ada_stores(running: Installation) -> None:
    running.result("send", "--to", "sms:+79990000001", "--text", "private", "--wait")
    data = Path(running.environment["ADA_DATA"])
    assert mode(data) == 0o700
    files = [path for path in data.rglob("*") if not path.is_symlink()]
    assert any(path.name.endswith(".aof") for path in files)
    assert [str(path) for path in files if mode(path) & 0o077] == []


def test_up_prints_no_password_of_the_server(running: Installation) -> None:
    _, password = last_port_and_password(Path(running.environment["ADA_DATA"]) / "valkey" / "valkey.conf")
    assert password
    facts = running.facts()
    assert facts is not None
    assert facts["redis"].startswith("redis://127.0.0.1:")
    assert password not in running.log.read_text()


def test_the_address_of_the_store_with_its_password_is_printed_for_programs_of_ones_own(running: Installation) -> None:
    """In the form that every library reads, by a verb of its own: no log has it."""
    url = running.ada("redis-url").stdout.strip()
    assert url.startswith("redis://default:")
    assert running.result("redis-url") == {"url": url}
    with Redis.from_url(url) as client:
        assert client.ping()
    own = {**running.environment, "ADA_REDIS_URL": "redis://:secret@example.test:1/2"}
    done = subprocess.run([*ADA, "redis-url"], cwd=running.directory, env=own, capture_output=True, text=True)
    assert done.stdout == "redis://:secret@example.test:1/2\n"
    assert str(urlsplit(url).password) not in running.log.read_text()


def test_secrets_of_files_are_known_as_those_of_the_environment(tmp_path: Path) -> None:
    """What is known is hidden in the runs of bots that the console shows (39.25)."""
    (tmp_path / "token").write_text("12345678:of-a-file\n")
    (tmp_path / ".env").write_text("ADA_API_KEY=ada_of-dotenv\n")
    (tmp_path / "settings.yaml").write_text("vk: {token: vk-of-settings}\n")
    known = known_secrets(load({"ADA_BOT_TOKEN_FILE": str(tmp_path / "token")}, tmp_path))
    assert {"12345678:of-a-file", "ada_of-dotenv", "vk-of-settings"} <= set(known.values())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows the environment of a process")
def test_the_environment_of_a_process_shows_no_setting_of_ada(running: Installation) -> None:
    """A fork receives its settings after it was started, so the system does not list them."""
    for fork in FORKS:
        verb = fork if fork in ("serve", "sandbox") or fork.startswith("bot ") else f"courier {fork}"
        assert "ADA_" not in environment_of(running.child(f"cli {verb}")), fork
    shown = environment_of(running.child("valkey-server"))
    assert not [secret for secret in CHANNEL_SECRETS if secret in shown]


@pytest.mark.parametrize("name", [*FORKS, "sync"])
def test_a_process_receives_only_its_own_secrets(name: str) -> None:
    given = dict.fromkeys([*CHANNEL_SECRETS, "ADA_REDIS_URL"], "x")
    received = ada_child(name, COURIERS, given, "verb").whole_environment()
    assert {
        secret for secret, readers in CHANNEL_SECRETS.items() if name in readers
    } == received.keys() & CHANNEL_SECRETS
    assert ("ADA_REDIS_URL" in received) == (name not in ("sandbox", "sync"))


def environment_of(pid: int) -> str:
    """Of a process, and of the shell beside it: the server overwrites its own with its title."""
    shells = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return "".join(Path(f"/proc/{one}/environ").read_text() for one in [str(pid), *shells])


def test_every_secret_among_the_common_settings_has_declared_readers() -> None:
    hidden = {setting_name(field, "ADA_") for field in fields(Settings) if not field.repr}
    of_channels = {one.inbound_secret for one in channels().values()} - {""}
    assert hidden | of_channels == set(secret_readers())


def test_a_process_reads_no_secret_of_another_from_the_files_either(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("ADA_VK_TOKEN=a\nADA_SMS_PASSWORD_FILE=/nonexistent\nADA_API_KEY=k\nADA_LEASE=5s\n")
    (tmp_path / "settings.yaml").write_text("telegram: {api_hash: b}\n")
    assert set(load({}, tmp_path, receiver("vk")).raw) == {"ADA_VK_TOKEN", "ADA_LEASE"}
    assert set(load({}, tmp_path, receiver("serve")).raw) == {"ADA_API_KEY", "ADA_LEASE"}
    assert may_receive("sms", "PATH")
    assert not may_receive("sms", "ADA_VK_TOKEN_FILE")
    assert may_receive("email", "ADA_SMTP_URL_FILE")
    assert not may_receive("sms", "ADA_SMTP_URL")


def test_files_of_an_earlier_version_become_private(tmp_path: Path) -> None:
    files = tmp_path / "valkey" / "appendonlydir" / "appendonly.aof.1.incr.aof"
    files.parent.mkdir(parents=True, mode=0o755)
    files.touch(mode=0o644)
    tmp_path.chmod(0o755)
    prepare(prepare_data_directory(tmp_path) / "valkey")
    assert (mode(tmp_path), mode(files.parent), mode(files)) == (0o700, 0o700, 0o600)


def test_a_directory_with_files_of_others_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()
    (tmp_path / "couriers").mkdir(mode=0o755)
    tmp_path.chmod(0o755)
    prepare_data_directory(tmp_path)
    assert (mode(tmp_path), mode(tmp_path / "couriers")) == (0o755, 0o700)


def test_an_unusable_data_directory_is_reported_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for data in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/ada")):
        with pytest.raises(SetupError, match=r"ADA_DATA is .* cannot be used \(.*or set ADA_DATA to another"):
            prepare_data_directory(data)


@pytest.mark.parametrize("verb", [["up"], ["sandbox"], ["courier", "echo"]])
def test_every_verb_reports_an_unusable_data_directory_in_one_line(tmp_path: Path, verb: list[str]) -> None:
    (tmp_path / "file").touch()
    installation = Installation(tmp_path)
    installation.environment["ADA_DATA"] = str(tmp_path / "file")
    done = installation.ada(*verb)
    assert done.returncode == 2
    assert done.stderr.startswith("ada: ADA_DATA is ")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to act as another user")
def test_a_directory_that_this_user_may_not_write_is_reported(tmp_path: Path) -> None:
    script = (
        "import os, pathlib; from cli.processes.data_directory import prepare_data_directory as prepare; "
        "os.setuid(65534); prepare(pathlib.Path('/'))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "SetupError: ADA_DATA is /, which cannot be used (Permission denied)" in done.stderr
