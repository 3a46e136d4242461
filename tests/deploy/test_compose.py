"""The containers: the compose file is valid, safe and says the same as the code; the image holds what it must."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft201909Validator

from cli.processes import embedded_valkey as embedded
from cli.settings.settings import Settings, channels, courier_module, names_of, section_prefix

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = [name for name in SERVICES if name != "valkey"]
DOCKERFILE = (ROOT / "Dockerfile").read_text()


def test_the_file_follows_the_compose_specification() -> None:
    schema = json.loads((Path(__file__).parent / "compose-spec.json").read_text())
    assert [error.message for error in Draft201909Validator(schema).iter_errors(COMPOSE)] == []


def test_the_schema_would_notice_a_mistake() -> None:
    schema = json.loads((Path(__file__).parent / "compose-spec.json").read_text())
    assert list(Draft201909Validator(schema).iter_errors({"services": {"serve": {"imagee": "ada"}}}))


@pytest.mark.parametrize("channel", ["telegram", "vk", "sms"])
def test_every_channel_has_a_service_of_its_own(channel: str) -> None:
    assert SERVICES[channel]["command"] == ["courier", channel]
    assert channel in channels()


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_is_watched_restarted_and_without_privileges(name: str) -> None:
    service = SERVICES[name]
    assert service["healthcheck"]["test"][0] in ("CMD", "CMD-SHELL")
    assert service["restart"] == "unless-stopped"
    assert service["cap_drop"] == ["ALL"]
    assert service["volumes"]


@pytest.mark.parametrize("name", OURS)
def test_ours_wait_for_a_healthy_store_on_a_network_without_the_world(name: str) -> None:
    assert SERVICES[name]["depends_on"] == {"valkey": {"condition": "service_healthy"}}
    assert "store" in SERVICES[name]["networks"]
    assert SERVICES["valkey"]["networks"] == ["store"]
    assert COMPOSE["networks"]["store"] == {"internal": True}


@pytest.mark.parametrize("name", OURS)
def test_every_setting_of_a_service_exists_in_the_code(name: str) -> None:
    known = names_of(Settings, "ADA_")
    if name in channels():
        known += names_of(courier_module(name).Settings, section_prefix(name))
    assert {one.removesuffix("_FILE") for one in SERVICES[name]["environment"]} <= set(known)


@pytest.mark.parametrize("name", OURS)
def test_what_is_secret_comes_from_files_and_every_file_is_a_declared_secret(name: str) -> None:
    environment = SERVICES[name]["environment"]
    declared = [Settings] + ([courier_module(name).Settings] if name in channels() else [])
    for kind, prefix in zip(declared, ["ADA_", section_prefix(name)], strict=False):
        hidden = {f"{prefix}{field.name.upper()}" for field in kind.__dataclass_fields__.values() if not field.repr}
        assert not hidden & set(environment)
    files = {Path(value).name for one, value in environment.items() if one.endswith("_FILE")}
    assert files == set(SERVICES[name]["secrets"])
    assert files <= set(COMPOSE["secrets"])


def test_the_store_has_the_settings_that_ours_would_complain_about() -> None:
    words = SERVICES["valkey"]["command"]
    given = {name.removeprefix("--"): value for name, value in zip(words[::2], words[1::2], strict=True)}
    wanted = {name: value.strip('"') for name, value in embedded.SETTINGS.items() if name != "bind"}
    assert wanted.items() <= given.items() | {"appendfsync": "no"}.items()
    assert given["appendfsync"] == "always"  # nobody syncs beside it


def test_volumes_that_are_used_are_declared() -> None:
    used = {mount.split(":")[0] for service in SERVICES.values() for mount in service["volumes"]}
    assert used == set(COMPOSE["volumes"])


def test_the_image_runs_as_an_ordinary_user_from_the_lock_and_holds_every_package() -> None:
    assert re.search(r"^USER ada$", DOCKERFILE, re.MULTILINE)
    assert "--require-hashes -r /requirements.lock" in DOCKERFILE
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py") if path.parent.name != "tests"}
    copied = set(re.findall(r"^COPY (\w+) \1$", DOCKERFILE, re.MULTILINE))
    assert packages | {"lua"} <= copied
    allowed = set(re.findall(r"^!(\w+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE))
    assert copied <= allowed
