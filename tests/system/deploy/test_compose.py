"""The containers: the compose file is valid, secure and agrees with the code; the image contains what it needs."""

import json
import re
import subprocess
import sys
from argparse import Namespace
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.main import command_of, parse
from cli.processes import embedded_valkey
from cli.settings.secrets import BOT, may_receive, secret_readers, section_of
from cli.settings.settings import Settings, common_names, courier_module, section_prefix, setting_names
from couriers.channel import channels, receiving
from tests.support.paths import ROOT
from tests.system.guides.blocks import commands_run_by

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
ADA_SERVICES = [name for name in SERVICES if name != "valkey"]
DOCKERFILE = (ROOT / "Dockerfile").read_text()


@pytest.mark.parametrize(
    ("file", "mistake", "code"),
    [
        ("docker-compose.yml", "", 0),
        ("docker-compose.yml", "imagee: ada", 1),
        ("docker-compose.sentinel.yml", "", 0),
        ("docker-compose.cluster.yml", "", 0),
    ],
)
def test_the_file_follows_the_compose_specification(tmp_path: Path, file: str, mistake: str, code: int) -> None:
    text = (ROOT / file).read_text().replace("command: [serve]", f"command: [serve]\n    {mistake}")
    (tmp_path / file).write_text(text)
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", file]
    done = subprocess.run(check, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == code, done.stdout


@pytest.mark.parametrize("channel", ["telegram", "vk", "max", "sms", "telegram-bot", "email"])
def test_every_channel_has_its_own_service(channel: str) -> None:
    assert SERVICES[channel]["command"] == ["courier", channel]
    assert channel in channels()


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_has_a_health_check_restarts_and_has_no_privileges(name: str) -> None:
    service = SERVICES[name]
    assert service["healthcheck"]["test"][0] in ("CMD", "CMD-SHELL")
    assert service["restart"] == "unless-stopped"
    assert service["cap_drop"] == ["ALL"]
    assert service["volumes"]


@pytest.mark.parametrize("name", ADA_SERVICES)
def test_ada_waits_for_a_healthy_store_which_has_no_external_network(name: str) -> None:
    assert SERVICES[name]["depends_on"] == {"valkey": {"condition": "service_healthy", "required": False}}
    assert SERVICES[name]["networks"] == ["store", "outside"], "a Redis of one's own is outside"
    assert list(SERVICES["valkey"]["networks"]) == ["store"]
    assert COMPOSE["networks"]["store"] == {"internal": True}


def channel_of(service: str) -> str:
    """The channel whose settings a courier or a bot reads; "" if there is none."""
    return service if service in channels() else section_of(service.removeprefix("bot-"))


@pytest.mark.parametrize("bot", ["telegram", "vk", "max", "sms"])
def test_every_bot_has_its_own_service(bot: str) -> None:
    assert SERVICES[f"bot-{bot}"]["command"] == ["bot", bot]


@pytest.mark.parametrize("name", ["scenarios", "jobs"])
def test_scenarios_and_jobs_have_a_service(name: str) -> None:
    assert (SERVICES[name]["command"], SERVICES[name]["profiles"][0]) == ([name], name)


@pytest.mark.parametrize(("channel", "bot"), [(channel, one.process) for channel, one in receiving().items()])
def test_the_profile_of_a_bot_runs_what_answers_and_what_sends_the_answers(channel: str, bot: str) -> None:
    run = {name for name in ADA_SERVICES if f"bot-{bot}" in SERVICES[name].get("profiles", [])}
    assert run == {f"bot-{bot}", "scenarios", channel}


@pytest.mark.parametrize("name", ADA_SERVICES)
def test_every_setting_of_a_service_exists_in_the_code(name: str) -> None:
    known = common_names()
    if channel := channel_of(name):
        known += setting_names(courier_module(channel).Settings, section_prefix(channel))
    assert {one.removesuffix("_FILE") for one in SERVICES[name]["environment"]} <= set(known)


@pytest.mark.parametrize("name", ADA_SERVICES)
def test_secrets_come_from_files_and_every_file_is_a_declared_secret(name: str) -> None:
    environment = SERVICES[name]["environment"]
    channel = channel_of(name)
    declared = [(Settings, "ADA_")]
    if channel:
        declared.append((courier_module(channel).Settings, section_prefix(channel)))
    for kind, prefix in declared:
        hidden = {f"{prefix}{field.name.upper()}" for field in kind.__dataclass_fields__.values() if not field.repr}
        assert not (hidden | set(secret_readers())) & set(environment)
    files = {Path(value).name for one, value in environment.items() if one.endswith("_FILE")}
    assert files == set(SERVICES[name]["secrets"])
    assert files <= set(COMPOSE["secrets"])


@pytest.mark.parametrize("name", ADA_SERVICES)
def test_every_service_gets_the_secrets_that_it_receives_beside_the_supervisor_and_all_other_settings(
    name: str,
) -> None:
    """`./ada up` decides by the same table (cli/settings/secrets.py) which process gets which secret."""
    process = name.replace("bot-", BOT) if name.startswith("bot-") else name
    receives = {secret for secret in secret_readers() if may_receive(process, secret)}
    given = {one.removesuffix("_FILE") for one in SERVICES[name]["environment"]}
    assert receives == given & set(secret_readers())
    assert SERVICES[name]["env_file"] == [{"path": ".env", "required": False}]


@pytest.mark.parametrize("name", ["scenarios", "telegram", "telegram-bot", "vk", "max", "email"])
def test_files_that_the_scenarios_make_are_there_for_the_couriers_that_send_them(name: str) -> None:
    for kind in ("speech", "pictures"):
        assert f"{kind}:/data/{kind}" in SERVICES[name]["volumes"]
        assert f"/data/{kind}" in DOCKERFILE, "a new volume gets its owner from the image"


def test_the_store_has_the_settings_of_the_embedded_server() -> None:
    args = SERVICES["valkey"]["command"]
    given = {name.removeprefix("--"): value for name, value in zip(args[::2], args[1::2], strict=True)}
    wanted = {name: value.strip('"') for name, value in embedded_valkey.SETTINGS.items() if name != "bind"}
    assert wanted.items() <= given.items() | {"appendfsync": "no"}.items()
    assert given["appendfsync"] == "always"  # no process calls fsync beside it


def test_all_used_volumes_are_declared() -> None:
    mounts = {mount for service in SERVICES.values() for mount in service["volumes"]}
    used = {mount.split(":")[0] for mount in mounts if not mount.startswith(".")}
    assert used == set(COMPOSE["volumes"])


def test_the_commands_of_the_guide_to_backups_are_those_of_the_services_and_of_the_image() -> None:
    entry = json.loads(re.findall(r"^ENTRYPOINT (.*)", DOCKERFILE, re.MULTILINE)[0])
    found: dict[str, list[list[str]]] = defaultdict(list)
    for words in commands_run_by("tests/system/deploy/test_compose.py", ROOT / "docs" / "backup.md"):
        options = sum(word.startswith("-") for word in words[3:5])
        found[" ".join(words[1:3])].append(words[3 + options :])
    [[service, *inside]], [[once, *restore]] = found["compose exec"], found["compose run"]
    assert (service, once, inside[: len(entry)]) == ("serve", "serve", entry)
    assert [parsed("backup", inside[len(entry) + 1 : -2]).file, parsed("restore", restore[1:]).file] == [
        "-",
        restore[1],
    ]
    assert (inside[-2:], restore[0]) == ([">", "ada.backup"], "restore")
    assert "./config:/config:ro" in SERVICES["serve"]["volumes"]
    assert found["compose up"] == [["valkey"], []]


def parsed(verb: str, words: list[str]) -> Namespace:
    return parse(verb, command_of(verb), [verb, *words])


def test_the_image_has_an_ordinary_user_the_locked_libraries_and_every_package() -> None:
    assert re.search(r"^USER ada$", DOCKERFILE, re.MULTILINE)
    assert "--require-hashes -r /requirements.lock" in DOCKERFILE
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py") if path.parent.name != "tests"}
    copied = set(re.findall(r"^COPY (\w+) \1$", DOCKERFILE, re.MULTILINE))
    assert packages | {"lua"} <= copied
    allowed = set(re.findall(r"^!(\w+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE))
    assert copied <= allowed


def test_the_guide_creates_every_secret_and_names_every_profile() -> None:
    guide = (ROOT / "docs" / "deployment.md").read_text()
    created = guide[guide.index("touch ") : guide.index("password=$(")]
    assert set(re.findall(r"secrets/(\w+)", created)) == set(COMPOSE["secrets"])
    profiles = {profile for service in SERVICES.values() for profile in service.get("profiles", [])}
    table = "\n".join(line.split("|")[1] for line in guide.splitlines() if line.startswith("| `"))
    assert set(re.findall(r"`([\w-]+)`", table)) == profiles
