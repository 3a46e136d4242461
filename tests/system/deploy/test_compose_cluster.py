"""The compose file of a cluster: as secure as the usual one, and its nodes become three primaries with replicas."""

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from shutil import which
from typing import Any

import pytest
import yaml
from redis import Redis

from cli.processes.embedded_valkey import free_port, is_free
from core.redis.cluster import ClusterNodes
from tests.support.paths import ROOT
from tests.support.replica_set import answers
from tests.support.servers import needs_package
from tests.support.waiting import await_sync
from tests.system.deploy.test_compose import SERVICES as USUAL
from tests.system.deploy.test_compose_sentinel import PASSWORD, running

FILE = ROOT / "docker-compose.cluster.yml"
COMPOSE: dict[str, Any] = yaml.safe_load(FILE.read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
NODES = ["valkey", "valkey-2", "valkey-3", "valkey-4", "valkey-5", "valkey-6"]
ADDRESSES: list[str] = SERVICES["cluster"]["command"]


def test_six_nodes_are_as_secure_as_the_usual_store_and_have_its_settings() -> None:
    assert list(SERVICES) == [*NODES, "cluster"]
    for service in SERVICES.values():
        usual = ("image", "user", "cap_drop", "security_opt", "secrets", "profiles")
        assert {one: service[one] for one in usual} == {one: USUAL["valkey"][one] for one in usual}
        assert list(service["networks"]) == list(USUAL["valkey"]["networks"])
    settings = USUAL["valkey"]["command"]
    for name, address in zip(NODES, ADDRESSES, strict=True):
        node = SERVICES[name]
        assert (node["restart"], node["command"][: len(settings)]) == (USUAL["valkey"]["restart"], settings)
        assert node["volumes"] == [f"{name}:/data"]
        assert "CMD-SHELL" in node["healthcheck"]["test"]
        assert {node["environment"]["NAME"], node["networks"]["store"]["ipv4_address"]} == {address.partition(":")[0]}
    assert {"valkey", *COMPOSE["volumes"]} == set(NODES) == set(SERVICES["cluster"]["depends_on"])


def test_the_url_in_its_head_names_three_of_its_nodes() -> None:
    (url,) = [word for word in FILE.read_text().split() if word.startswith("redis+cluster://")]
    assert [f"{host}:{port}" for host, port in ClusterNodes.parse(url).places] == ADDRESSES[:3]


@needs_package("redis-tools", "redis-cli")
@pytest.mark.long
def test_the_first_start_joins_the_nodes_and_a_later_one_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "valkey-cli").symlink_to(str(which("redis-cli")))
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    ports = [port_with_bus() for _ in NODES]
    words = {address: f"127.0.0.1:{port}" for address, port in zip(ADDRESSES, ports, strict=True)}
    with ExitStack() as nodes:
        for name, port in zip(NODES, ports, strict=True):
            nodes.enter_context(running(SERVICES[name], tmp_path / name, words, "--port", str(port)))
        first = nodes.enter_context(Redis(port=ports[0], password=PASSWORD, decode_responses=True))
        await_sync(lambda: answers(first), "a node")
        with running(joining(), tmp_path / "join", words) as join:
            assert join.wait(60) == 0, (tmp_path / "join" / "log").read_text()
        await_sync(lambda: shape(first) == (set(ports[:3]), 3), "three primaries with a replica each")
        with running(joining(), tmp_path / "again", words) as again:
            assert again.wait(20) == 0
        assert (tmp_path / "again" / "log").read_text() == ""


def joining() -> Mapping[str, Any]:
    return {"environment": {}, **SERVICES["cluster"]}


def port_with_bus() -> int:
    """Return a free port whose bus port, 10000 above it, is free, too."""
    return next(port for port in iter(free_port, 0) if port < 55_000 and is_free(port + 10_000))


def shape(node: Any) -> tuple[set[int], int]:
    """Return the ports of the primaries and the number of replicas, as a node sees them."""
    slots = node.execute_command("CLUSTER", "SLOTS")
    return {row[2][1] for row in slots}, sum(len(row) - 3 for row in slots)
