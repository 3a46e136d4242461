"""Sentinels name the primary: it is found, watched, found again; a primary that came back as a replica is left."""

import asyncio
import re
from collections.abc import AsyncIterator

import pytest
from redis import Redis
from redis.exceptions import RedisError

from cli.commands.start.store_findings import check_replication, check_sentinels
from core.errors import SetupError, StoreUnavailable
from core.model.durability import Durability
from core.redis.store import Store
from core.redis.topology import SentinelSet, Topology, find_primary
from tests.support.replica_set import Node, ReplicaSet
from tests.support.waiting import until


@pytest.fixture
async def store(replica_set: ReplicaSet) -> AsyncIterator[Store]:
    opened = await Store.open(replica_set.url)
    yield opened
    await opened.close()


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("redis+sentinel://h:26379", "does not name the primary"),
        ("redis+sentinel:///ada", "'' is not the host:port of a Sentinel"),
        ("redis+sentinel://h:26379,/ada", "'' is not the host:port of a Sentinel"),
        ("redis+sentinel://h:port/ada", "'h:port' is not the host:port of a Sentinel"),
        ("redis+sentinel://:secret@h/ada/first", "'first', which is not the number of a database"),
        ("redis+sentinel://:sec/ret@h/ada", "special character of the password is not quoted"),
    ],
)
async def test_a_malformed_url_of_sentinels_names_its_cause(url: str, expected: str) -> None:
    with pytest.raises(SetupError, match="REDIS_URL_MALFORMED") as refused:
        await Store.open(url)
    assert expected in str(refused.value)
    assert "ret@" not in str(refused.value)


def test_password_tls_and_database_are_those_of_the_servers() -> None:
    url = "rediss+sentinel://ada:p%40ss@one,[::1]:5/main/2?ssl_cert_reqs=none&sentinel_password=other"
    found = SentinelSet.parse(url)
    assert [(one.host, one.port, one.password, one.database) for one in found.sentinels] == [
        ("one", 26379, "other", 0),
        ("::1", 5, "other", 0),
    ]
    assert found.url_of("10.0.0.1", 6379) == "rediss://ada:p%40ss@10.0.0.1:6379/2?ssl_cert_reqs=none"
    assert "p%40ss" not in str(found)


async def test_a_wrong_name_and_sentinels_that_do_not_answer_are_told_apart(replica_set: ReplicaSet) -> None:
    with pytest.raises(SetupError, match=r"SENTINEL_NAME_UNKNOWN: .*know no primary 'other'"):
        await Store.open(replica_set.url.replace("/ada/", "/other/"))
    with pytest.raises(StoreUnavailable, match="SENTINEL_UNREACHABLE"):
        await Store.open("redis+sentinel://127.0.0.1:1/ada")


async def leading_sentinel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers as a Sentinel that has promoted a replica and waits until the others follow it."""
    replies = {
        b"HELLO": b"%1\r\n+role\r\n+sentinel\r\n",
        b"MASTER\r": b"%3\r\n+config-epoch\r\n+5\r\n+ip\r\n+10.0.0.9\r\n+port\r\n+6379\r\n",
        b"GET-MASTER-ADDR-BY-NAME": b"*2\r\n+10.0.0.1\r\n+6379\r\n",
    }
    while request := await reader.read(1000):
        writer.write(next(reply for word, reply in replies.items() if word in request))
    writer.close()


async def test_during_a_promotion_the_new_server_is_found_although_a_sentinel_lists_the_old_one() -> None:
    server = await asyncio.start_server(leading_sentinel, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    found = await find_primary(SentinelSet.parse(f"redis+sentinel://127.0.0.1:{port}/ada"))
    assert found == (5, "10.0.0.1", 6379)
    server.close()


async def test_a_sentinel_that_is_behind_does_not_lead_back_to_an_old_primary() -> None:
    named = [5, 1]

    async def sentinel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        epoch, port = (f"+{one}\r\n".encode() for one in named)  # the same for both requests of one look
        while request := await reader.read(1000):
            replies = {
                b"HELLO": b"%1\r\n+role\r\n+sentinel\r\n",
                b"MASTER\r": b"%3\r\n+config-epoch\r\n" + epoch + b"+ip\r\n+127.0.0.1\r\n+port\r\n" + port,
                b"GET-MASTER-ADDR-BY-NAME": b"*2\r\n+127.0.0.1\r\n" + port,
            }
            writer.write(b"".join(reply for word, reply in replies.items() if word in request))
        writer.close()

    server = await asyncio.start_server(sentinel, "127.0.0.1", 0)
    topology = Topology(f"redis+sentinel://127.0.0.1:{server.sockets[0].getsockname()[1]}/ada")
    places = []
    for named[:] in ([5, 1], [4, 2], [6, 3]):
        with pytest.raises((RedisError, OSError)):  # no server is there
            await topology.open()
        places.append(topology.place)
    assert places == ["127.0.0.1:1", "127.0.0.1:1", "127.0.0.1:3"]
    await topology.close()
    server.close()


async def goes_on(store: Store, old: Node, replica_set: ReplicaSet) -> None:
    """Waits for the promotion and the first reply of a function after it. No other call is made meanwhile."""
    call = asyncio.create_task(store.run("audit_keys", 0))
    await asyncio.to_thread(replica_set.await_promotion, old)
    await asyncio.wait_for(call, 20)
    assert store.address.port == replica_set.primary.announced


async def test_calls_go_on_at_the_new_primary_when_the_old_one_is_killed_and_it_is_left_when_it_returns(
    store: Store, replica_set: ReplicaSet
) -> None:
    assert await store.redis.set("before", 1)
    await store.command("SET", "before", 2)
    old = replica_set.primary
    old.kill()
    await goes_on(store, old, replica_set)
    old.start()
    await until(lambda: old.follows)
    assert await store.command("SET", "after", 1) == "OK"
    assert await store.redis.get("after") == "1"


@pytest.mark.parametrize("is_connected", [True, False])
async def test_a_primary_that_stays_silent_holds_up_nothing(
    store: Store, replica_set: ReplicaSet, is_connected: bool
) -> None:
    """A connection to the old primary is cut, and an attempt to open one is ended, as soon as another is named."""
    if is_connected:
        await store.command("PING")
    old = replica_set.primary
    old.freeze() if is_connected else replica_set.cut_off(old)
    await goes_on(store, old, replica_set)


async def test_a_store_that_is_opened_while_the_primary_moves_finds_the_new_one(
    replica_set: ReplicaSet, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    old = replica_set.primary
    replica_set.cut_off(old)
    opening = asyncio.create_task(Store.open(replica_set.url))
    await until(lambda: f"the primary ada is 127.0.0.1:{old.announced}" in caplog.text)
    await asyncio.to_thread(replica_set.fail_over)
    store = await opening
    assert store.address.port == replica_set.primary.announced != old.announced
    await store.close()


async def test_doctor_says_which_servers_it_sees(store: Store, replica_set: ReplicaSet) -> None:
    replica_set.sentinels[0].kill()
    replica_set.replicas[0].kill()
    await until(lambda: replica_set.primary.facts()["connected_slaves"] == 1)
    found = {one.what: one async for one in check_replication(store, Durability.REPLICA)}
    assert list(found) == ["role", "memory", "persistence", "library"]
    found["sentinels"] = await anext(check_sentinels(store, Durability.REPLICA))
    assert re.search(
        r"primary with 1 replicas: \S+ online, \d+ bytes behind; durability is replica", found["role"].detail
    )
    assert found["memory"].detail.endswith("maxmemory not set, noeviction")
    assert "on, last write ok" in found["persistence"].detail
    assert "is loaded" in found["library"].detail
    assert found["sentinels"].is_good is None
    assert found["sentinels"].detail.count(f"names 127.0.0.1:{replica_set.primary.announced}") == 2
    for replica in replica_set.replicas:
        replica.kill()
    await until(lambda: replica_set.primary.facts()["connected_slaves"] == 0)
    role = await anext(check_replication(store, Durability.REPLICA))
    assert (role.is_good, role.detail) == (False, "primary without replicas")


async def test_doctor_says_when_the_url_names_too_few_sentinels(replica_set: ReplicaSet) -> None:
    """Nothing is acknowledged then. One Sentinel under two names is one; a dead one that is named is not missing."""
    first, second, third = [f"127.0.0.1:{sentinel.port}" for sentinel in replica_set.sentinels]
    same = first.replace("127.0.0.1", "localhost")

    async def found(durability: Durability, *named: str) -> tuple[bool | None, str] | None:
        store = await Store.open(replica_set.url.replace(f"{first},{second},{third}", ",".join(named)))
        shown = [one async for one in check_sentinels(store, durability) if one.what == "sentinels"][1:]
        await store.close()
        return (shown[0].is_good, shown[0].detail) if shown else None

    assert await found(Durability.REPLICA, first) == (False, "ADA_REDIS_URL names 1 of 3")
    assert await found(Durability.REPLICA, first, same) == (False, "ADA_REDIS_URL names 1 of 3")
    assert await found(Durability.LOCAL, first) == (None, "ADA_REDIS_URL names 1 of 3")
    assert await found(Durability.REPLICA, first, second) == (None, "ADA_REDIS_URL names 2 of 3")
    replica_set.sentinels[2].kill()
    assert await found(Durability.REPLICA, first, second, third) is None


async def test_doctor_says_what_delays_or_stops_a_promotion(store: Store, replica_set: ReplicaSet) -> None:
    async def found() -> list[tuple[bool | None, str, str]]:
        shown = [one async for one in check_sentinels(store, Durability.REPLICA) if one.what == "promotion"]
        return [(one.is_good, one.detail.replace(first, "FIRST"), one.repair) for one in shown]

    def change(setting: str, value: int, *, everywhere: bool = False) -> None:
        for sentinel in replica_set.sentinels if everywhere else replica_set.sentinels[:1]:
            with Redis(port=sentinel.port, driver_info=None) as client:
                client.execute_command("SENTINEL", "SET", "ada", setting, value)

    first, port = f"127.0.0.1:{replica_set.sentinels[0].port}", replica_set.sentinels[0].port
    command = f"redis-cli -h 127.0.0.1 -p {port} SENTINEL SET ada "
    change("down-after-milliseconds", 3000, everywhere=True)
    change("failover-timeout", 20_000, everywhere=True)
    good = (True, "a primary is lost after 3 s; a split vote is repeated after 40 s", "")
    assert await found() == [good]
    for setting, value, least, wanted in (
        ("failover-timeout", 180_000, "a split vote is repeated after twice this time", 20_000),
        ("down-after-milliseconds", 30_000, "all stands still for this long when a primary is lost", 3000),
        ("down-after-milliseconds", 1999, "a replica may be promoted that misses what was acknowledged", 3000),
    ):
        change(setting, value)
        line = f"{setting} of FIRST is {value}, not {wanted}: {least}"
        assert await found() == [(None, line, f"{command}{setting} {wanted}")]
        change(setting, wanted)
    change("quorum", 3)
    agreed = "FIRST wants 3 of 3 Sentinels to agree, so fewer than half of them may be lost"

    async def wants_all() -> bool:
        return await found() == [(None, agreed, f"{command}quorum 2")]

    await until(wants_all)  # all three count again: an earlier test may have killed one
    change("quorum", 2)
    for sentinel in replica_set.sentinels[1:]:
        sentinel.kill()
    first_line = "FIRST could promote nothing at present: NOQUORUM"

    async def has_no_quorum() -> bool:
        (line,) = await found()
        return line[0] is False and line[1].startswith(first_line)

    await until(has_no_quorum)
