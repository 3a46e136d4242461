"""`./ada backup` and `./ada restore` as a user runs them: on the embedded server and on one of one's own
(docs/backup.md).
"""

import json
import re
import shlex
import shutil
import stat
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from redis import Redis

from cli.commands.installation.backups import files_beside, source_of
from cli.settings.settings import load
from core.redis.cluster import ClusterNodes
from core.redis.connection import ServerAddress
from core.redis.topology import SentinelSet
from tests.cli.installation import Installation, new_installation
from tests.support.paths import ROOT
from tests.support.servers import Server, program_of
from tests.system.guides.blocks import commands_run_by

LATER = f"{datetime.now(UTC) + timedelta(days=3):%FT%TZ}"
RESTORE, MORE_RIGHTS = commands_run_by("tests/cli/test_backups.py", ROOT / "docs" / "backup.md")
RIGHTS = re.findall(r"^ *redis-cli (ACL SETUSER .*)", (ROOT / "docs" / "own-redis.md").read_text(), re.MULTILINE)
SEND = ("send", "--to", "1", "--text", "later", "--at", LATER)


@pytest.fixture
def installation(tmp_path_factory: pytest.TempPathFactory, sms_account: Mapping[str, str]) -> Iterator[Installation]:
    for one in new_installation(tmp_path_factory.mktemp("first")):
        one.environment |= sms_account
        yield one


@pytest.fixture
def another(tmp_path_factory: pytest.TempPathFactory, sms_account: Mapping[str, str]) -> Iterator[Installation]:
    for one in new_installation(tmp_path_factory.mktemp("second")):
        one.environment |= sms_account
        yield one


def test_a_backup_of_a_running_ada_is_restored_in_another_data_directory(
    installation: Installation, another: Installation
) -> None:
    installation.up()
    installation.result("user", "add", "1", "--name", "Анна", "--contact", "sms:+79990000001")
    sent = installation.result(*SEND)
    done = installation.ada("backup", "ada.backup")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("wrote ada.backup: ")
    assert f"{installation.directory}/data/api_key\n      the first API key" in done.stdout
    file = installation.directory / "ada.backup"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    refused = installation.ada("restore", str(file), "--replace")
    assert (refused.returncode, "stop it" in refused.stderr) == (1, True)

    shutil.copy(file, another.directory)
    restored = another.ada(*RESTORE[1:])
    assert restored.returncode == 0, restored.stderr
    assert "\nsound: " in restored.stdout
    another.up()
    assert another.result("user", "show", "1")["name"] == "Анна"
    assert another.result("show", sent["id"])["state"] == "scheduled"
    assert another.end() == 0

    assert another.ada("backup", "stopped.backup").returncode == 0
    again = another.ada("restore", "stopped.backup")
    assert (again.returncode, "--replace removes them" in again.stderr) == (2, True)
    assert another.ada("restore", "stopped.backup", "--replace").returncode == 0


def test_a_backup_names_each_file_that_the_server_does_not_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("data/couriers", "data/bots", "bots"):
        Path(name).mkdir(parents=True)
    named = "a.syncs", "a.py", "b.py", "our provider.yaml", "redis-ca.pem", "ldap.password", "ldap.yaml"
    files = {"settings.yaml": "lease: 40s\nsyncs: a.syncs\nlog_level: debug", ".env": "ADA_ACTIONS=a.py,b.py"}
    for name, text in (files | dict.fromkeys((*named, "sms.key", "other"), "text")).items():
        Path(name).write_text(text)
    Path("a.syncs").write_text("uni ldaps://h --every 1h --secret-file ldap.password --mapping=ldap.yaml")
    environment = {"ADA_SCENARIOS": "bots", "ADA_INBOUND_SMS_SECRET_FILE": "sms.key", "ADA_API_KEY": "x" * 3000}
    environment |= {"ADA_OFFICE": "other", "ADA_SMS_PROFILE": "our provider.yaml"}  # a group, which is no file
    environment["ADA_REDIS_URL"] = "rediss://:secret@h/0?ssl_ca_certs=redis-ca.pem&socket_timeout=3"
    found = dict(files_beside(load(environment, tmp_path)))
    expected = {"data/couriers", "data/bots", "settings.yaml", ".env", *named, "sms.key", "bots"}
    assert {str(path.relative_to(tmp_path)) for path in found} == expected
    assert found[tmp_path / "a.syncs"] == "what ADA_SYNCS names"


def test_the_data_of_the_embedded_server_move_to_a_server_of_ones_own(
    installation: Installation, another: Installation, own_redis: Server
) -> None:
    installation.up()
    sent = installation.result("send", "--to", "1=sms:+79990000001", "--text", "later", "--at", LATER)
    file = str(installation.directory / "ada.backup")
    assert installation.result("backup", file)["keys"] > 10
    installation.end()
    with Redis.from_url(own_redis.url) as operator:
        for command in (shlex.split(RIGHTS[0]), MORE_RIGHTS[1:]):
            operator.execute_command(*command)
        operator.execute_command("ACL", "SETUSER", "default", "off")
    installation.environment["ADA_REDIS_URL"] = f"redis://ada:LONG-SECRET@127.0.0.1:{own_redis.place.port}/0"
    done = installation.ada("restore", file, "--json")
    assert done.returncode == 0, done.stderr
    assert [json.loads(line).get("violations") for line in done.stdout.splitlines()] == [None, 0]
    installation.up()
    assert installation.result("show", sent["id"])["state"] == "scheduled"
    busy = installation.ada("restore", file, "--replace")
    assert (busy.returncode, busy.stderr.startswith("ada: Ada uses this database over ")) == (2, True)


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path / "redis", program_of("redis"))
    server.start()
    yield server
    server.kill()


def test_without_data_there_is_nothing_to_back_up_and_a_damaged_file_touches_nothing(
    installation: Installation, own_redis: Server
) -> None:
    nothing = installation.ada("backup", "ada.backup")
    assert (nothing.returncode, "there are no data of Ada in" in nothing.stderr) == (2, True)
    (installation.directory / "damaged").write_bytes(b"\x1f\x8b nonsense")
    damaged = installation.ada("restore", "damaged")
    assert (damaged.returncode, damaged.stderr) == (
        1,
        "ada: damaged is not restored: the file is not a backup of Ada\n",
    )
    assert installation.ada("restore", "no such file").returncode == 2
    assert not (installation.directory / "data").exists()
    installation.environment["ADA_REDIS_URL"] = own_redis.url
    empty = installation.ada("backup", "ada.backup")
    assert (empty.returncode, "there are no data of Ada at" in empty.stderr) == (2, True), empty.stderr
    assert not (installation.directory / "ada.backup").exists()


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("redis://127.0.0.1:6379/0", ServerAddress),
        ("redis+sentinel://127.0.0.1:26379/ada", SentinelSet),
        ("redis+cluster://127.0.0.1:7000,127.0.0.1:7001", ClusterNodes),
    ],
)
def test_a_backup_is_taken_from_a_server_from_sentinels_or_from_a_cluster(url: str, kind: type) -> None:
    assert isinstance(source_of(url), kind)
