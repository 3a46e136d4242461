"""Any Redis by ADA_REDIS_URL: over TLS, with an ACL user of few rights, on another database, with other settings."""

import asyncio
import shutil
import socket
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from redis.asyncio import Redis

from cli.processes.embedded_valkey import free_port
from core.deliveries.channels import Channels
from core.deliveries.deliveries import Deliveries
from core.deliveries.tracker import Tracker
from core.errors import SetupError
from core.model.content import Feature
from core.model.delivery import NewDelivery, Recipient, Sender
from core.model.history_key import HistoryKey
from core.redis.keyspace_events import merged_flags
from core.redis.server_checks import check, setting_problems
from core.redis.store import Store
from couriers.sending.interface import FOREVER, Message, Outcome, Sent
from couriers.sending.runtime import Runtime
from tests.support.servers import DEBIAN_REDIS, Server, lacking, needs_package
from tests.support.waiting import await_sync


class AcceptingCourier:
    """A courier whose provider accepts every message."""

    channel = "telegram"
    account = "accepting"
    batch = 1
    parcel = 100
    remembers = FOREVER
    shows = frozenset[Feature]()

    async def attempt(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        return [Sent("1") for _ in messages]

    async def close(self) -> None: ...


async def deliver_one(url: str) -> None:
    """Sends one message on this server: claimed after a keyspace event, tracked over the event stream."""
    store = await Store.open(url)
    courier = Runtime(store, AcceptingCourier.channel)
    await courier.add(AcceptingCourier())
    running = asyncio.create_task(courier.run())
    histories, tracker = Deliveries(store, Channels(store)), Tracker(store)
    order = NewDelivery("default", Sender(1), "text", [Recipient(1, None, {"telegram": ["5"]})], ["telegram"])
    key: HistoryKey = (await histories.enqueue(order)).key
    history, timed_out = await tracker.wait(key, "default", 1, 5)
    courier.stop()
    await running
    await tracker.close()
    await store.close()
    assert history is not None
    assert not timed_out
    assert history.counts["sent"] == 1


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[str]:
    """The address of Debian's Redis with TLS only, for the user `ada`, who has no rights over the server."""
    certificate = made_certificate(tmp_path)
    port = free_port()
    settings = [
        f"--port 0 --tls-port {port} --tls-auth-clients no --dir {tmp_path} --save '' --appendonly yes",
        f"--tls-cert-file {certificate} --tls-key-file {tmp_path / 'key.pem'} --tls-ca-cert-file {certificate}",
        "--notify-keyspace-events Kgx --user default off",
        "--user ada on >secret ~* &* +@all -@admin -@dangerous",
    ]
    words = [word.strip("'") for line in settings for word in line.split(" ")]
    server = subprocess.Popen([str(DEBIAN_REDIS), *words], stdout=subprocess.DEVNULL)
    await_sync(lambda: accepts_connections(port), what="a reply of the server")
    yield f"rediss://ada:secret@127.0.0.1:{port}/0?ssl_ca_certs={certificate}&ssl_check_hostname=false"
    server.kill()
    server.wait()


def accepts_connections(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def made_certificate(directory: Path) -> Path:
    certificate = directory / "cert.pem"
    request = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1"
    )
    words = [*request.split(" "), "-keyout", str(directory / "key.pem"), "-out", str(certificate)]
    subprocess.run(words, check=True, capture_output=True)
    return certificate


@needs_package("redis-server", "redis-server")
@pytest.mark.skipif(shutil.which("openssl") is None, reason=lacking("openssl"))
async def test_a_message_is_delivered_over_tls_by_a_user_without_rights_over_the_server(secured: str) -> None:
    await deliver_one(secured)


@needs_package("redis-server", "redis-server")
@pytest.mark.skipif(shutil.which("openssl") is None, reason=lacking("openssl"))
async def test_a_url_without_tls_for_a_port_with_tls_names_the_right_scheme(secured: str) -> None:
    with pytest.raises(SetupError, match=r"speaks TLS only\. Begin ADA_REDIS_URL with rediss:// instead"):
        await Store.open(secured.partition("?")[0].replace("rediss:", "redis:"))


async def test_a_message_is_delivered_on_another_database(server: Server) -> None:
    await deliver_one(server.place.tcp_url.removesuffix("/0") + "/3")


async def test_a_wrong_password_is_an_error_at_once(server: Server) -> None:
    with pytest.raises(SetupError, match="ADA_REDIS_URL"):
        await Store.open(server.place.tcp_url.replace(":", ":wrong", 2).replace("redis:wrong", "redis:"))


async def test_our_keyspace_events_are_added_to_those_that_are_set(server: Server, client: Redis) -> None:
    await client.config_set("notify-keyspace-events", "El")
    store = await Store.open(server.url)
    assert await check(store) == []
    flags = (await client.config_get("notify-keyspace-events"))["notify-keyspace-events"]
    assert flags is not None
    assert set("ElKgx") <= set(flags)
    await store.close()


async def test_a_server_that_would_lose_messages_is_reported_with_the_command_that_repairs_it(
    server: Server, client: Redis
) -> None:
    await client.config_set("maxmemory-policy", "allkeys-lru")
    store = await Store.open(server.url)
    (problem,) = await check(store)
    assert problem.fatal
    assert "CONFIG SET maxmemory-policy noeviction" in str(problem)
    await store.close()


@pytest.mark.parametrize(("policy", "found"), [("volatile-lru", ["maxmemory-policy"]), ("noeviction", [])])
async def test_a_managed_server_without_config_is_refused_if_it_evicts(
    server: Server, client: Redis, policy: str, found: list[str]
) -> None:
    await client.config_set("maxmemory-policy", policy)
    await client.acl_setuser(
        "managed",
        enabled=True,
        passwords=["+s"],
        keys=["*"],
        channels=["*"],
        categories=["+@all"],
        commands=["-config"],
    )
    store = await Store.open(f"redis://managed:s@127.0.0.1:{server.place.port}/0")
    problems = await check(store)
    assert [problem.setting for problem in problems] == found
    assert all(one.fatal and "set maxmemory-policy to noeviction where" in str(one) for one in problems)
    await store.close()
    await client.acl_deluser("managed")


def test_settings_that_the_server_does_not_show_are_not_checked() -> None:
    assert setting_problems({}) == []
    assert [problem.setting for problem in setting_problems({"appendonly": "no"})] == ["appendonly"]
    assert setting_problems({"hash-max-listpack-value": "4096"}) == []
    of_cluster = {"cluster-require-full-coverage": "yes", "cluster-node-timeout": "15000"}
    assert setting_problems({**of_cluster, "cluster-enabled": "no"}) == []
    assert setting_problems({"cluster-node-timeout": "1500", "cluster-enabled": "yes"}) == []


def test_flags_are_added_and_never_removed() -> None:
    assert merged_flags("") == "Kgx"
    assert merged_flags("AKE") == "AKE"
    assert set(merged_flags("Ex")) == set("ExKg")
