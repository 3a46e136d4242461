"""The compose file with replicas and Sentinels: valid, as secure as the other one, and its programs find each other."""

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from redis import Redis

from cli.processes.die_with_parent import die_with_parent
from cli.processes.embedded_valkey import free_port, server_program
from tests.support.paths import ROOT
from tests.support.replica_set import answers
from tests.support.waiting import await_sync
from tests.system.deploy.test_compose import SERVICES as USUAL

FILE = ROOT / "docker-compose.sentinel.yml"
COMPOSE: dict[str, Any] = yaml.safe_load(FILE.read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
PASSWORD = "long-secret"


def test_three_servers_and_three_sentinels_are_as_secure_as_the_usual_store_and_have_its_settings() -> None:
    assert list(SERVICES) == ["valkey", "valkey-2", "valkey-3", "sentinel-1", "sentinel-2", "sentinel-3"]
    for name, service in SERVICES.items():
        usual = ("image", "restart", "user", "cap_drop", "security_opt", "secrets", "networks", "profiles")
        assert {one: service[one] for one in usual} == {one: USUAL["valkey"][one] for one in usual}
        assert service["volumes"] == [f"{name}:/data"]
        assert "CMD-SHELL" in service["healthcheck"]["test"]
        assert service["command"] == ([] if name.startswith("sentinel") else USUAL["valkey"]["command"])
    assert {"valkey", *COMPOSE["volumes"]} == set(SERVICES)


@contextmanager
def running(
    service: Mapping[str, Any], directory: Path, words: Mapping[str, str], *more: str
) -> Iterator[subprocess.Popen[bytes]]:
    """A service as its container would run it: `words` replaces paths and names that only containers have."""
    (directory / "data").mkdir(parents=True)
    (directory / "redis_password").write_text(PASSWORD)
    (directory / "valkey-server").symlink_to(server_program())
    places = {"$$": "$", "/data": str(directory / "data"), "/run/secrets": str(directory), **words}
    command = [_replaced(word, places) for word in (*service["entrypoint"], *service["command"], *more)]
    environment = {name: _replaced(text, places) for name, text in service["environment"].items()}
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            die_with_parent(command),
            env={"PATH": f"{directory}:{os.environ['PATH']}", **environment, "NAME": "127.0.0.1"},
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
        )
    yield process
    process.kill()
    process.communicate()


def _replaced(text: str, words: Mapping[str, str]) -> str:
    for word, by in words.items():
        text = text.replace(word, by)
    return text


def test_the_replica_follows_the_primary_and_a_sentinel_sees_both(tmp_path: Path) -> None:
    first, second, third = (free_port() for _ in range(3))
    words = {"valkey 6379": f"127.0.0.1 {first}", "26379": str(third)}
    with (
        running(SERVICES["valkey"], tmp_path / "1", words, "--port", str(first)),
        running(SERVICES["valkey-2"], tmp_path / "2", words, "--port", str(second)),
        Redis(port=first, password=PASSWORD, decode_responses=True) as primary,
    ):
        await_sync(lambda: answers(primary) and primary.info("replication")["connected_slaves"] == 1, "a replica")
        with (
            running(SERVICES["sentinel-1"], tmp_path / "3", words),
            Redis(port=third, decode_responses=True) as sentinel,
        ):
            await_sync(lambda: answers(sentinel) and len(sentinel.sentinel_slaves("ada")) == 1, "a Sentinel")
