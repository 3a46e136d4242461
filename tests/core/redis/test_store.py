"""The store: a lost library is loaded again, commands in flight are batched, each caller gets its own reply."""

import asyncio
import socket
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from redis.asyncio import Redis

from core.errors import SetupError, StoreFull, StoreUnavailable
from core.queue import NewTask
from core.redis import library
from core.redis.store import Store
from tests.support.servers import Server, on_both_servers
from tests.support.stack import Stack, person
from tests.support.waiting import until


@on_both_servers
async def test_functions_survive_a_flush(stack: Stack) -> None:
    await stack.queue.put("t", NewTask("a"))
    await stack.redis.function_flush()
    await stack.queue.put("t", NewTask("b"))
    await stack.redis.function_flush()
    assert await stack.finish_all() == ["a", "b"]


@on_both_servers
async def test_functions_survive_continuous_flushes(stack: Stack) -> None:
    over, flushes = asyncio.Event(), 0

    async def flush() -> None:
        nonlocal flushes
        while not over.is_set():
            await stack.redis.function_flush()
            await asyncio.sleep(0.01)
            flushes += 1

    flushing, page = asyncio.create_task(flush()), 0
    while page < 5 or flushes < 5:
        await asyncio.gather(*(stack.queue.put("t", NewTask(f"{page}-{number}")) for number in range(30)))
        page += 1
    assert len(set(await stack.finish_all())) == page * 30
    over.set()
    await flushing


@on_both_servers
async def test_a_thousand_callers_that_find_the_library_missing_load_it_once(stack: Stack) -> None:
    await stack.queue.put("t", NewTask("a"))
    await stack.redis.function_flush()
    await stack.redis.config_resetstat()
    await asyncio.gather(*(stack.queue.put("t", NewTask("a")) for _ in range(1000)))
    stats = await stack.redis.info("commandstats")
    assert stats["cmdstat_function|load"]["calls"] == 1
    assert len(await stack.finish_all()) == 1001


@on_both_servers
async def test_many_processes_that_load_the_library_at_once_all_succeed(stack: Stack) -> None:
    await stack.redis.function_flush()
    stores = await asyncio.gather(*(Store.open(stack.server.url) for _ in range(20)))
    await stack.redis.function_flush()
    assert await asyncio.gather(*(store.run("audit_keys", 0) for store in stores)) == [[]] * 20
    for store in stores:
        await store.close()


async def test_callers_that_find_the_library_missing_on_a_full_server_get_store_full(stack: Stack) -> None:
    await stack.queue.put("t", NewTask("a"))
    await stack.redis.function_flush()
    await stack.redis.config_set("maxmemory", "1")
    faults = await asyncio.gather(*(stack.store.run("put", 0) for _ in range(20)), return_exceptions=True)
    assert {type(fault) for fault in faults} == {StoreFull}
    with pytest.raises(StoreUnavailable, match="no room for the functions of this version"):
        await Store.open(stack.server.url)
    await stack.redis.config_set("maxmemory", "0")
    assert await stack.finish_all() == ["a"]


async def test_a_full_server_that_has_the_library_is_opened_and_drained(stack: Stack) -> None:
    await stack.queue.put("t", NewTask("a"))
    await stack.redis.config_set("maxmemory", "1")
    store = await Store.open(stack.server.url)
    await store.close()
    assert await stack.finish_all() == ["a"]
    await stack.redis.config_set("maxmemory", "0")


async def test_a_replica_that_takes_the_place_of_its_primary_has_the_functions(
    own_server: Server, tmp_path: Path
) -> None:
    """FUNCTION LOAD is replicated like a write."""
    store = await Store.open(own_server.url)
    replica = Server(tmp_path / "replica")
    replica.start()
    async with Redis.from_url(replica.url, decode_responses=True) as plain:
        await store.command("CONFIG", "SET", "repl-diskless-sync-delay", 0)
        await plain.config_set("masterauth", own_server.place.password)
        await plain.replicaof("127.0.0.1", str(own_server.place.port))
        await until(lambda: _is_linked(plain))
        await until(lambda: _has_functions(plain))
    replica.kill()
    await store.close()


async def _is_linked(replica: Redis) -> bool:
    return bool((await replica.info("replication")).get("master_link_status") == "up")


async def _has_functions(replica: Redis) -> bool:
    return bool(await replica.function_list(library=library.current().name))


@on_both_servers
async def test_functions_survive_a_restart_because_they_are_in_the_append_only_file(
    server: Server, tmp_path: Path
) -> None:
    own = Server(tmp_path / "own", server.program)
    own.start()
    await (await Store.open(own.url)).close()
    own.kill()
    own.start()
    async with Redis.from_url(own.url, decode_responses=True) as plain:
        assert await _has_functions(plain)
    own.kill()


async def test_a_server_that_lost_its_data_and_functions_gets_the_library_again(
    own_server: Server, tmp_path: Path
) -> None:
    """A failover to an empty server, seen from a store that stays open."""
    stack = await Stack.open(own_server)
    own_server.kill()
    for file in (own_server.place.directory / "appendonlydir").iterdir():
        file.unlink()
    own_server.start()
    await stack.queue.put("t", NewTask("a"))
    assert await stack.finish_all() == ["a"]
    await stack.close()


async def test_tasks_states_and_functions_survive_a_restart(own_server: Server) -> None:
    stack = await Stack.open(own_server)
    ids = [await stack.queue.put("t", NewTask(str(number), lane="lane")) for number in range(3)]
    await stack.queue.put("t", NewTask("deferred", due=stack.now() + timedelta(hours=1)))
    (task,) = await stack.take()
    await stack.queue.bury(ids[2])
    own_server.kill()
    putting = asyncio.create_task(stack.queue.put("t", NewTask("during the outage")))
    own_server.start()
    await putting
    await stack.audit()
    assert [await stack.state(task_id) for task_id in ids] == ["taken", "locked", "buried"]
    assert await stack.queue.settle(task) == "done"
    assert await stack.finish_all() == ["1", "during the outage"]
    stack.advance_clock(timedelta(hours=1))
    assert await stack.finish_all() == ["deferred"]
    await stack.audit()
    await stack.close()


@pytest.mark.skipif(sys.platform != "linux", reason="segments are counted by Linux")
async def test_commands_in_flight_are_written_together(stack: Stack) -> None:
    """A thousand calls of one turn are one write for every eight calls. Without batching each is a segment."""
    counting = Counting(stack.server.place.port)
    store = await Store.open(stack.server.url_through(await counting.start()))
    await store.command("PING")
    before = counting.segments()
    await asyncio.gather(*(store.command("ECHO", str(number)) for number in range(1000)))
    assert counting.segments() - before <= 1000 / 8 + 1
    await store.close()
    await counting.stop()


class Counting:
    """A relay to the server that counts the segments it receives."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._sockets: list[socket.socket] = []

    async def start(self) -> int:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._sockets.append(writer.get_extra_info("socket"))
        there, back = await asyncio.open_connection("127.0.0.1", self._target)
        await asyncio.gather(_relay(reader, back), _relay(there, writer))

    def segments(self) -> int:
        """Segments with data on all connections: `tcpi_data_segs_in` of linux/tcp.h."""
        infos = [one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 192) for one in self._sockets if one.fileno() > 0]
        return sum(int.from_bytes(info[152:156], sys.byteorder) for info in infos)

    async def stop(self) -> None:
        self._server.close()


async def _relay(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while data := await source.read(65536):
        sink.write(data)
    sink.close()


@on_both_servers
async def test_each_of_many_callers_gets_its_own_reply(stack: Stack) -> None:
    answers = await asyncio.gather(*(stack.store.command("ECHO", str(number)) for number in range(5000)))
    assert answers == [str(number) for number in range(5000)]


@on_both_servers
async def test_an_error_reply_goes_to_its_own_caller_only(stack: Stack) -> None:
    commands = [("ECHO", str(n)) if n % 2 else ("NONSENSE", str(n)) for n in range(100)]
    answers = await asyncio.gather(*(stack.store.command(*command) for command in commands), return_exceptions=True)
    assert [answer if n % 2 else type(answer).__name__ for n, answer in enumerate(answers)] == [
        str(n) if n % 2 else "FunctionFault" for n in range(100)
    ]


async def test_calls_made_while_connections_are_cut_are_answered_and_take_effect_once(stack: Stack) -> None:
    async def cut() -> None:
        await stack.redis.client_kill_filter(_type="normal", skipme=True)

    for page in range(10):
        puts = (stack.queue.put("t", NewTask(f"{page}-{number}")) for number in range(20))
        await asyncio.gather(*puts, cut())
    keys = [
        (await asyncio.gather(stack.deliver(person(n, "unserved"), channels=("unserved",)), cut()))[0].key
        for n in range(20)
    ]
    done = await stack.finish_all()
    assert len(done) == len(set(done)) == 200
    assert len(set(keys)) == 20
    assert len((await stack.deliveries.list("university"))[0]) == 20


async def test_a_server_that_does_not_come_back_raises_store_unavailable(own_server: Server) -> None:
    store = await Store.open(own_server.url, patience=0.5)
    own_server.kill()
    with pytest.raises(StoreUnavailable):
        await store.command("PING")
    assert not await store.ping()
    own_server.start()
    assert await until(store.ping)
    await store.close()


async def test_an_absent_server_is_unavailable_and_a_wrong_url_is_a_setup_error(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="ADA_REDIS_URL"):
        await Store.open("redis://127.0.0.1:1/0")
    with pytest.raises(SetupError, match="redis://"):
        await Store.open("nonsense")
