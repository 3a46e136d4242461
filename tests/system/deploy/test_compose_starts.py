"""The compose file as Compose reads it, and each of its services started outside containers beside the sandbox."""

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.processes.embedded_valkey import free_port
from cli.settings.secrets import secret_readers
from examples import JOB_HUNTER, SCHOOL_BOT
from providers.sign_in.stored import new_key
from tests.support.forked import run_ada
from tests.support.paths import ROOT
from tests.support.servers import Server
from tests.system.crash.process import AdaProcess
from tests.system.deploy.test_compose import ADA_SERVICES, COMPOSE
from tests.system.deploy.test_compose_cluster import SERVICES as NODES_OF_A_CLUSTER
from tests.system.deploy.test_compose_sentinel import SERVICES as SENTINELS_AND_SERVERS

CHANNEL_SECRETS = ("ADA_TELEGRAM_API_HASH", "ADA_TELEGRAM_BOT_TOKEN", "ADA_VK_TOKEN", "ADA_SMS_PASSWORD")


FILE = "docker-compose.yml"
WITH_SENTINELS = (FILE, "docker-compose.sentinel.yml")


def resolved(directory: Path, files: Sequence[str] = (FILE,), **variables: str) -> dict[str, Any]:
    """Files with the profiles and variables of an environment. The parser asks only for Podman's version."""
    podman = directory / "podman"
    podman.write_text("#!/bin/sh\necho podman version 5.0.0\n")
    podman.chmod(0o755)
    named = [word for file in files for word in ("-f", str(ROOT / file))]
    environment = {"PATH": f"{directory}:{os.environ['PATH']}", "HOME": str(directory), **variables}
    done = run_ada([*named, "config"], environment, Path.cwd(), "podman_compose")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = yaml.load(done.stdout, yaml.CSafeLoader)
    return found


@pytest.mark.parametrize(
    ("profiles", "services"),
    [
        ("valkey,sms", {"valkey", "serve", "sms"}),
        ("vk,bot-vk", {"serve", "vk", "bot-vk", "scenarios"}),
        ("valkey,scenarios,jobs", {"valkey", "serve", "scenarios", "jobs"}),
    ],
)
def test_profiles_choose_the_services_and_the_store_may_be_ones_own(
    tmp_path: Path, profiles: str, services: set[str]
) -> None:
    assert set(resolved(tmp_path, COMPOSE_PROFILES=profiles)["services"]) == services


def test_the_file_of_sentinels_adds_its_services_to_those_of_a_profile(tmp_path: Path) -> None:
    services = resolved(tmp_path, WITH_SENTINELS, COMPOSE_PROFILES="valkey,sms")["services"]
    assert set(services) == {"serve", "sms", *SENTINELS_AND_SERVERS}
    assert services["valkey"]["environment"]["NAME"] == "valkey"
    assert services["valkey"]["image"] == services["sentinel-1"]["image"]


def test_the_file_of_a_cluster_adds_its_nodes_to_the_services_of_a_profile(tmp_path: Path) -> None:
    found = resolved(tmp_path, (FILE, "docker-compose.cluster.yml"), COMPOSE_PROFILES="valkey,sms")
    assert set(found["services"]) == {"serve", "sms", *NODES_OF_A_CLUSTER}
    assert found["services"]["valkey"]["networks"]["store"] == {"ipv4_address": "172.30.6.11"}
    assert found["networks"]["store"] == {"internal": True, "ipam": {"config": [{"subnet": "172.30.6.0/24"}]}}


def test_the_address_on_the_host_is_a_variable(tmp_path: Path) -> None:
    assert resolved(tmp_path)["services"]["serve"]["ports"] == ["127.0.0.1:8080:8080"]
    assert resolved(tmp_path, ADA_PUBLISH="80")["services"]["serve"]["ports"] == ["80:8080"]


async def test_every_service_starts_with_its_command_its_settings_and_its_secrets(
    own_server: Server, tmp_path: Path
) -> None:
    services = resolved(tmp_path, COMPOSE_PROFILES=",".join(profiles()))["services"]
    sandbox = await start_sandbox(tmp_path)
    settings, secrets = split(sandbox["environment"], own_server.url)
    for name in COMPOSE["secrets"]:
        (tmp_path / name).write_text(secrets.get(name, ""))
    started = [start(services[name], settings, tmp_path / name) for name in ADA_SERVICES]
    ready = await asyncio.gather(*(process.ready() for process in started))
    assert len(ready) == len(ADA_SERVICES) == 13


def profiles() -> set[str]:
    return {profile for service in COMPOSE["services"].values() for profile in service.get("profiles", [])}


async def start_sandbox(directory: Path) -> Mapping[str, Any]:
    arguments = ("sandbox", "--json", "--inbound", f"http://127.0.0.1:{free_port()}")
    return await AdaProcess(arguments, {"ADA_DATA": str(directory / "sandbox")}, directory / "sandbox.log").ready()


def split(environment: Mapping[str, str], redis_url: str) -> tuple[dict[str, str], dict[str, str]]:
    """What an operator writes into .env, and into the files in secrets/ by their names."""
    own = {"ADA_REDIS_URL": redis_url, "ADA_API_KEY": "ada_compose", "ADA_SECRET_KEY": new_key()}
    found = {**environment, **own}
    hidden = {name for name in found if name in (*secret_readers(), *CHANNEL_SECRETS)}
    secrets = {name.removeprefix("ADA_").lower(): found[name] for name in hidden}
    folders = {"ADA_SCENARIOS": str(SCHOOL_BOT), "ADA_JOBS": str(JOB_HUNTER), "ADA_SMS_MOST_PARTS": "8"}
    return {name: text for name, text in found.items() if name not in hidden} | folders, secrets


def start(service: Mapping[str, Any], settings: Mapping[str, str], directory: Path) -> AdaProcess:
    """The service's command with /run/secrets and /data in folders of the test. Compose reads .env as we do here."""
    directory = directory.with_name(f"service-{directory.name}")
    directory.mkdir()
    assert service["env_file"] == [{"path": ".env", "required": False}]
    environment = {
        name: text.replace("/run/secrets", str(directory.parent)) for name, text in service["environment"].items()
    }
    addresses = {"ADA_HTTP": f"127.0.0.1:{free_port()}", "ADA_DATA": str(directory)}
    (directory / "environment.json").write_text(json.dumps({**settings, **environment, **addresses}))
    return AdaProcess(tuple(service["command"]), {**settings, **environment, **addresses}, directory / "log")
