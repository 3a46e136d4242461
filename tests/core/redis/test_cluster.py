"""A cluster of three primaries: every call reaches the primary of its shard, also while slots move and nodes die."""

import asyncio
import json
from argparse import Namespace
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from io import BytesIO

import pytest
from redis.crc import key_slot

from cli.command import CommandFailed
from cli.commands.installation.backups import refuse_restore_to_cluster
from cli.commands.installation.queue import stats as print_stats
from cli.commands.installation.store import print_plan
from cli.commands.start.store_findings import check_cluster, check_replication
from core.admission.actions import ActionLog, OperatorAction
from core.admission.api_keys import ApiKeys
from core.audit.invariants.invariant import parse_key
from core.directory import Directory
from core.directory.importing import Importing
from core.directory.importing.journal import Journal
from core.errors import SetupError, StoreError, StoreUnavailable
from core.model.durability import Durability
from core.model.history_key import HistoryKey
from core.model.people import Group, User
from core.model.states import Status
from core.orders.templates import MessageTemplate, MessageTemplates
from core.queue import Claim, NewTask, Queue, Settlement, Task, TaskFilter, Worker, WorkerOptions
from core.queue.task import ClaimRequest
from core.queue.task_search import SearchPosition
from core.redis.cluster import ClusterNodes, ClusterView, ShardMap, SlotRange
from core.redis.connection import StoreConnection
from core.redis.keys import KEYS
from core.redis.keyspace_events import KeyspaceEvents
from core.redis.server_checks import check, register, sign_layout
from core.redis.store import Store
from core.redis.stream_reader import StreamReader
from core.sessions import Sessions, SignInLinks
from core.uploads import Uploads
from tests.support.audited import violations_in
from tests.support.cluster import Cluster, ClusterNode
from tests.support.delivery_progress import statuses
from tests.support.servers import Server, needs_package, program_of
from tests.support.stack import FLOOR, LEASE, FakeCourier, Stack, people
from tests.support.waiting import until

SHARDS = 16


@pytest.fixture(scope="module", params=["valkey", "redis"])
def nodes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    program = program_of("redis") if request.param == "redis" else None
    opened = Cluster(tmp_path_factory.mktemp("cluster"), program=program)
    opened.start()
    yield opened
    opened.close()


@pytest.fixture
def cluster(nodes: Cluster) -> Cluster:
    """Whole and empty; a test may kill nodes and move slots."""
    nodes.empty()
    return nodes


@pytest.fixture
async def store(cluster: Cluster) -> AsyncIterator[Store]:
    opened = await Store.open(cluster.url, SHARDS)
    await sign_layout(opened)
    await register(opened)
    yield opened
    await opened.close()


def lane_of(store: Store, shard: int) -> str:
    """Return the name of a lane that stands in this shard."""
    return next(f"lane {n}" for n in range(1000) if store.shard_of(f"lane {n}") == shard)


def elsewhere(cluster: Cluster, shard: int) -> ClusterNode:
    """Return a primary that does not have this shard."""
    return next(node for node in cluster.nodes if node.is_primary and node is not cluster.owner(shard))


# the URL


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("redis+cluster://h:1/2", "its only database is 0"),
        ("redis+cluster://h:1,", "'' is not the host:port of a node"),
        ("redis+cluster://:sec/ret@h:1", "has the form redis\\+cluster://user:password@"),
        ("redis+cluster://h?protocol=many", "its port or an option is wrong"),
    ],
)
async def test_a_malformed_url_of_a_cluster_names_its_cause(url: str, expected: str) -> None:
    with pytest.raises(SetupError, match=f"REDIS_URL_MALFORMED.*{expected}") as refused:
        await Store.open(url)
    assert "ret@" not in str(refused.value)


def test_user_tls_and_options_are_those_of_every_node() -> None:
    found = ClusterNodes.parse("rediss+cluster://ada:p%40ss@one,[::1]:5?ssl_cert_reqs=none")
    assert found.places == (("one", 6379), ("[::1]", 5))
    assert found.url_of(("10.0.0.1", 6380)) == "rediss://ada:p%40ss@10.0.0.1:6380/0?ssl_cert_reqs=none"
    assert found.url_of(("::1", 5)) == found.url_of(("[::1]", 5)) == "rediss://ada:p%40ss@[::1]:5/0?ssl_cert_reqs=none"
    assert "p%40ss" not in str(found)


async def test_a_server_without_cluster_mode_and_nodes_that_do_not_answer_are_told_apart(server: Server) -> None:
    plain = server.place.tcp_url.replace("redis://", "redis+cluster://")
    with pytest.raises(SetupError, match=r"CLUSTER_DISABLED: .* Begin ADA_REDIS_URL with redis://"):
        await Store.open(plain)
    with pytest.raises(StoreUnavailable, match="CLUSTER_UNREACHABLE"):
        await Store.open("redis+cluster://127.0.0.1:1")


async def test_a_node_that_is_cut_off_is_not_believed_although_its_epoch_is_the_highest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def seen(epoch: int, owner: str, *, is_ok: bool = True) -> ClusterView:
        return ClusterView(epoch, (SlotRange(0, 16383, (owner, 1), ()),), is_ok)

    views = {"a": seen(9, "a", is_ok=False), "b": seen(5, "b")}

    async def view_of(nodes: ClusterNodes, place: tuple[str, int]) -> ClusterView:
        return views[place[0]]

    monkeypatch.setattr("core.redis.cluster.view_of", view_of)
    shard_map = ShardMap("redis+cluster://a:1,b:1", 1)
    await shard_map.read()
    assert shard_map.of(0).place == "b:1"
    views = dict.fromkeys("ab", seen(4, "a"))
    await shard_map.read()
    assert shard_map.of(0).place == "b:1", "an older view"


async def note_primary(connection: StoreConnection) -> None:
    """Stands for the first call on a new connection."""


async def test_only_the_node_that_has_a_slot_by_the_map_is_believed_when_it_names_another_one() -> None:
    shard_map = ShardMap("redis+cluster://127.0.0.1:1", 1)
    shard_map.call_first(note_primary)
    first, slot = shard_map.of(0), key_slot(b"0")
    assert not shard_map.follow(first, 0, f"MOVED {slot + 1} 127.0.0.1:2"), "the slot of another key"
    assert shard_map.follow(first, 0, f"MOVED {slot} :2"), "a node that names no host has the same one"
    assert shard_map.of(0).place == "127.0.0.1:2"
    assert shard_map.of(0).first_call is first.first_call is note_primary, "also at a node that was not known before"
    assert shard_map.follow(first, 0, f"MOVED {slot} 127.0.0.1:3"), "an answer that is late"
    assert shard_map.of(0).place == "127.0.0.1:2"
    await shard_map.close()


# calls


async def test_every_key_stands_on_the_owner_of_its_shard_and_every_primary_has_the_library(
    store: Store, cluster: Cluster
) -> None:
    queue = Queue(store)
    ids = [await queue.put("t", NewTask(body=str(n), lane=lane_of(store, n))) for n in range(SHARDS)]
    assert [int(task.partition(".")[0]) for task in ids] == list(range(SHARDS))
    assert await check(store) == []
    for node in (one for one in cluster.nodes if one.is_primary):
        assert store.library.name in str(node.ask("FUNCTION", "LIST"))
        owned = [(row[0], row[1]) for row in node.ask("CLUSTER", "SLOTS") if row[2][1] == node.port]
        slots = [key_slot(key.encode()) for key in node.ask("KEYS", "*")]
        assert slots, "each primary has shards"
        assert all(any(first <= slot <= last for first, last in owned) for slot in slots)
    assert len(store.shard_map.primaries()) == 3
    assert await violations_in(store) == []


async def test_calls_of_a_shard_keep_their_order_while_its_slot_moves(store: Store, cluster: Cluster) -> None:
    """None is lost, none runs twice: the old primary has answered all before the new one gets the next, although the
    map is often newer than the calls in flight.
    """
    calls: list[asyncio.Future[int]] = []
    target = elsewhere(cluster, 3)
    moving = asyncio.create_task(asyncio.to_thread(cluster.move, 3, target))
    while not moving.done() or len(calls) < 2000:
        calls += [asyncio.ensure_future(store.command("RPUSH", "order:{3}", len(calls) + n)) for n in range(20)]
        calls += [asyncio.ensure_future(store.command("RPUSH", "order:{4}", len(calls) + n)) for n in range(20)]
        await store.shard_map.refresh()
    await moving
    calls += [asyncio.ensure_future(store.command("RPUSH", "order:{3}", len(calls)))]
    await asyncio.gather(*calls)
    stored = [int(word) for word in target.ask("LRANGE", "order:{3}", 0, -1)]
    assert stored == sorted(set(stored))
    others = await store.command("LRANGE", "order:{4}", 0, -1)
    assert len(stored) + len(others) == len(calls)


async def test_a_moved_shard_is_followed_on_the_connections_that_are_open(store: Store, cluster: Cluster) -> None:
    target, others = elsewhere(cluster, 3), [n for n in range(SHARDS) if n != 3]
    before = [await store.command_at(n, "CLIENT", "ID") for n in range(SHARDS)]
    await asyncio.to_thread(cluster.move, 3, target)
    await store.command("SET", "moved:{3}", "x")
    assert target.ask("GET", "moved:{3}") == "x"
    after = [await store.command_at(n, "CLIENT", "ID") for n in range(SHARDS)]
    assert [after[n] for n in others] == [before[n] for n in others]


async def test_a_new_primary_gets_the_library_by_itself(store: Store, cluster: Cluster) -> None:
    """It is noted as the primary of the shard before the first call, which finds no new epoch to begin."""
    target = elsewhere(cluster, 5)
    target.ask("FUNCTION", "FLUSH")
    before = int(await store.command("HGET", KEYS["primary"].at(5), "epoch") or 0)
    await asyncio.to_thread(cluster.move, 5, target)
    assert await store.run_each("note_primary", [(5, (0,))] * 3) == [0, 0, 0]
    assert await store.command("HGET", KEYS["primary"].at(5), "epoch") == str(before + 1)
    assert store.library.name in str(target.ask("FUNCTION", "LIST"))


async def test_while_a_slot_moves_key_by_key_calls_wait_and_write_nothing(store: Store, cluster: Cluster) -> None:
    """Its keys are then on two servers, and a function would see only some of them."""
    queue, lane = Queue(store), lane_of(store, 7)
    first = await queue.put("t", NewTask(body="first", lane=lane))
    owner, target = cluster.owner(7), elsewhere(cluster, 7)
    cluster.begin_key_by_key(7, target)
    before = owner.ask("HGETALL", KEYS["counters"].at(7))
    putting = asyncio.create_task(queue.put("t", NewTask(body="second", lane=lane)))
    await until(lambda: "TRYAGAIN" in str(owner.ask("INFO", "errorstats")))
    assert owner.ask("HGETALL", KEYS["counters"].at(7)) == before
    assert target.ask("DBSIZE") == 0 or not putting.done()
    await asyncio.to_thread(cluster.end_key_by_key, 7, target)
    second = await asyncio.wait_for(putting, 20)
    done = []
    for _ in range(2):
        (task,) = (await queue.claim(7, ClaimRequest("t", "worker", 10, LEASE, FLOOR))).tasks
        done.append(f"7.{task.id}")
        await queue.settle(task)
    assert done == [first, second]
    assert await violations_in(store) == []


# readers


async def test_keyspace_events_come_from_every_primary_also_after_a_slot_has_moved(
    store: Store, cluster: Cluster
) -> None:
    """Without a call that meets MOVED: the closed subscription is the signal."""
    woken = [asyncio.Event() for _ in range(SHARDS)]
    keys = {KEYS["bell"].at(n, "t"): woken[n].set for n in range(SHARDS)}
    listening = asyncio.create_task(KeyspaceEvents(store, keys).run())

    async def all_wake() -> None:
        for number, key in enumerate(keys):
            node = cluster.owner(number)
            node.ask("SET", key, 1)
            woken[number].clear()
            node.ask("DEL", key)
        await until(lambda: all(one.is_set() for one in woken))

    await until(lambda: all(one.is_set() for one in woken))  # at the connect
    await all_wake()
    woken[9].clear()
    await asyncio.to_thread(cluster.move, 9, elsewhere(cluster, 9))
    await until(woken[9].is_set)
    await all_wake()
    listening.cancel()


async def test_a_stream_is_read_on_where_its_slot_has_moved(store: Store, cluster: Cluster) -> None:
    seen: list[str] = []
    key = KEYS["events"].at(11)
    reading = asyncio.create_task(
        StreamReader(store, {key: "0-0"}, lambda _, __, fields: seen.append(fields["n"])).run(), name="stream"
    )
    await store.command("XADD", key, "*", "n", 1)
    await until(lambda: seen == ["1"])
    await asyncio.to_thread(cluster.move, 11, elsewhere(cluster, 11))
    await store.command("XADD", key, "*", "n", 2)
    await until(lambda: seen == ["1", "2"])
    reading.cancel()


# the whole path


@pytest.fixture
async def cluster_stack(store: Store, cluster: Cluster) -> AsyncIterator[Stack]:
    opened = Stack(store, cluster.nodes[0])  # type: ignore[arg-type]
    yield opened
    await opened.close()


async def test_deliveries_arrive_while_slots_move_and_a_primary_is_killed(
    cluster_stack: Stack, cluster: Cluster, store: Store
) -> None:
    courier = FakeCourier()
    await cluster_stack.courier(courier)
    first = [(await cluster_stack.deliver(*people(5), lane=lane_of(store, n))).key for n in range(SHARDS)]
    await asyncio.to_thread(cluster.move, 3, elsewhere(cluster, 3))
    await assert_all_sent(cluster_stack, first)
    primary = next(node for node in (cluster.nodes[0], cluster.nodes[3]) if node.is_primary)
    await until(lambda: primary.is_replicated)
    primary.kill()
    calls = [cluster_stack.deliver(*people(5), lane=lane_of(store, n)) for n in range(SHARDS)]
    second = [accepted.key for accepted in await asyncio.wait_for(asyncio.gather(*calls), 30)]
    assert [key.shard for key in second] == list(range(SHARDS))
    await assert_all_sent(cluster_stack, [*first, *second])
    assert len(courier.attempted) == 2 * SHARDS * 5
    assert await violations_in(store) == []


async def assert_all_sent(stack: Stack, keys: Sequence[HistoryKey]) -> None:
    for key in keys:
        assert set(statuses(await stack.finished(key)).values()) == {Status.SENT}


async def test_one_primary_that_is_down_holds_up_no_other(store: Store, cluster: Cluster) -> None:
    """A frozen one, so that nothing is refused: calls to it wait, the others are answered."""
    lost = cluster.owner(1)
    others = [n for n in range(SHARDS) if cluster.owner(n) is not lost]
    lost.freeze()
    waiting = asyncio.create_task(store.run("note_primary", 1, 0))
    answered = asyncio.gather(*(store.run("note_primary", n, 0) for n in others))
    await asyncio.wait({waiting, answered}, return_when=asyncio.FIRST_COMPLETED)
    assert not waiting.done()
    await answered
    lost.resume()
    await asyncio.wait_for(waiting, 30)


async def test_an_acknowledged_call_waits_for_a_replica_of_its_primary(cluster: Cluster) -> None:
    """Only one primary has a replica. A repetition that writes nothing is confirmed, too."""
    store = await Store.open(cluster.url, SHARDS, durability=Durability.REPLICA)
    followed = next(row[2][1] for row in cluster.nodes[1].ask("CLUSTER", "SLOTS") if len(row) > 3)
    for shard in (0, 1, 3):
        call = store.run("put", shard, "client", 1, 1, "t", *NewTask(body="x").row("a"))
        if cluster.owner(shard).port == followed:
            await call
        else:
            with pytest.raises(StoreError, match=r"STORE_WITHOUT_REPLICAS|No replica"):
                await call
    await store.close()


async def test_a_worker_goes_on_in_the_shards_of_the_other_primaries(cluster_stack: Stack, cluster: Cluster) -> None:
    """Its claim at the frozen one stays underway, for as long as a call waits."""
    await cluster_stack.courier(FakeCourier())
    lost = next(node for node in cluster.nodes[1:3] if cluster.owner(0) is not node)  # it has no replica
    others = [n for n in range(SHARDS) if cluster.owner(n) is not lost]
    lost.freeze()
    try:
        for _ in range(3):
            keys = [(await cluster_stack.deliver(*people(1), lane=lane_of(cluster_stack.store, n))).key for n in others]
            for key in keys:
                await cluster_stack.finished(key, within=8)
    finally:
        lost.resume()


async def test_what_falls_due_is_claimed_while_a_primary_hangs(cluster_stack: Stack, cluster: Cluster) -> None:
    """Also while the worker looks at the timers that it keeps, one of them there."""
    taken: list[str] = []

    async def handle(task: Task, claim: Claim) -> Settlement:
        taken.append(task.body)
        return Settlement()

    async def put(shards: Iterable[int]) -> None:
        due = cluster_stack.now() + timedelta(seconds=0.5)
        for n in shards:
            await cluster_stack.queue.put_many("t", [NewTask(str(n), due=due)], shard=n)

    worker = Worker(cluster_stack.store, "t", handle, options=WorkerOptions(max_sleep=FLOOR))
    running = asyncio.create_task(worker.run())
    await put(range(SHARDS))
    await until(lambda: len(taken) == SHARDS)
    lost = next(node for node in cluster.nodes[1:3] if cluster.owner(0) is not node)  # it has no replica
    others = [n for n in range(SHARDS) if cluster.owner(n) is not lost]
    await put(range(SHARDS))
    lost.freeze()
    try:
        await until(lambda: len(taken) == SHARDS + len(others), within=8)
        await put(others)
        await until(lambda: len(taken) == SHARDS + 2 * len(others), within=8)
    finally:
        lost.resume()
    await until(lambda: len(taken) == 2 * SHARDS + len(others))
    worker.stop()
    await running


# tools


async def test_search_statistics_and_cancel_of_many_see_every_primary(store: Store) -> None:
    queue = Queue(store)
    put = {await queue.put("t", NewTask("x", user="anna", lane=lane_of(store, n))) for n in range(SHARDS)}
    pages = queue.inspector.pages(TaskFilter(user="anna"), SearchPosition(), 100)
    assert {task.id async for _, page in pages for task in page} == put
    listed, cursor = await queue.inspector.list(TaskFilter(), None, 100)
    while cursor:
        more, cursor = await queue.inspector.list(TaskFilter(), cursor, 100)
        listed = [*listed, *more]
    assert {task.id for task in listed} == put
    assert (await queue.cancel_by(TaskFilter(user="anna"))).cancelled == SHARDS
    assert await violations_in(store) == []


async def test_queue_stats_counts_the_tasks_of_every_primary(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    queue, later = Queue(store), datetime.now(UTC) + timedelta(days=1)
    for n in range(SHARDS):
        await queue.put("ready", NewTask("x", lane=lane_of(store, n)))
        await queue.put("later", NewTask("x", lane=lane_of(store, n), due=later))
        await queue.put("held", NewTask("x"))
    for shard in range(SHARDS):
        await queue.claim(shard, ClaimRequest("ready", "worker", 1, LEASE, FLOOR))
    assert await print_stats(store, Namespace(json=True, tube=None, zone=UTC)) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["due"], found["taken"]) == (SHARDS, SHARDS)
    assert list(found["tubes"]) == ["held", "later", "ready"]
    assert all((one["put"], one["live"]) == (SHARDS, SHARDS) for one in found["tubes"].values())
    assert found["tubes"]["ready"]["claimed"] == SHARDS


async def test_the_audit_finds_what_is_wrong_on_any_primary(store: Store, cluster: Cluster) -> None:
    primaries = [node for node in cluster.nodes if node.is_primary]
    for node in primaries:
        strange = next(f"strange {n}" for n in range(1000) if cluster.owner_of(f"strange {n}") is node)
        node.command("SET", strange, 1)
    for shard in range(SHARDS):
        await store.command("ZADD", KEYS["due"].at(shard), 1, "nothing")
    found = await violations_in(store)
    assert sum("strange" in one.key for one in found) == 3
    assert {one.key for one in found if "strange" not in one.key} == {KEYS["due"].at(n) for n in range(SHARDS)}


async def test_doctor_shows_each_primary_and_what_is_wrong_with_the_cluster(store: Store, cluster: Cluster) -> None:
    found = [one async for one in check_replication(store, Durability.LOCAL)]
    assert [one.what for one in found] == ["role", "memory", "persistence", "library"] * 3 + ["cluster"]
    assert {one.detail.partition(": ")[0] for one in found[:-1]} == {p.place for p in store.shard_map.primaries()}
    assert (found[-1].is_good, found[-1].detail) == (True, "3 primaries, 4 nodes, 16 shards")
    cluster.begin_key_by_key(7, target := elsewhere(cluster, 7))
    moving = await check_cluster(store, ClusterNodes.parse(cluster.url))
    assert moving.is_good is False
    assert f"slots {key_slot(b'7')} move key by key" in moving.detail
    await asyncio.to_thread(cluster.end_key_by_key, 7, target)
    replica = next(node for node in cluster.nodes if not node.is_primary)
    replica.kill()
    lost = await check_cluster(store, ClusterNodes.parse(cluster.url))
    assert lost.is_good is None
    assert f"127.0.0.1:{replica.port} does not answer" in lost.detail


@needs_package("redis-tools", "redis-cli")
async def test_the_plan_names_the_moves_and_their_commands(
    store: Store, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """The printed commands work: the shard is on the other primary then."""
    await asyncio.gather(*(store.command("SET", f"load:{{{n % 2}}}:{n}", 1) for n in range(2000)))
    if cluster.owner(0) is not cluster.owner(1):
        await asyncio.to_thread(cluster.move, 1, cluster.owner(0))
        await store.shard_map.refresh()
    await print_plan(store, Namespace(json=True))
    *shares, move = map(json.loads, capsys.readouterr().out.splitlines())
    assert [list(one) for one in shares] == [["primary", "shards", "share", "measure"]] * 3
    assert sum(one["share"] for one in shares) == pytest.approx(1, abs=0.01)
    assert move["from"].endswith(f":{cluster.owner(move['shard']).port}")
    assert move["shard"] in (0, 1)
    await asyncio.to_thread(cluster.shell, move["command"])
    await until(lambda: move["to"].endswith(f":{cluster.owner(move['shard']).port}"))


async def test_a_plan_without_a_cluster_is_refused(server: Server) -> None:
    store = await Store.open(server.url)
    with pytest.raises(CommandFailed, match="names no cluster"):
        await print_plan(store, Namespace(json=False))
    await store.close()


def test_a_restore_into_a_cluster_is_refused_before_anything_is_read() -> None:
    refuse_restore_to_cluster("redis+sentinel://127.0.0.1:1/ada")
    with pytest.raises(SetupError, match="nothing is restored: ADA_REDIS_URL names a cluster"):
        refuse_restore_to_cluster("redis+cluster://127.0.0.1:1")


# what belongs to a tenant


async def test_what_belongs_to_a_tenant_stands_on_the_owner_of_its_shard(store: Store, cluster: Cluster) -> None:
    """Users, groups, sessions, links to sign in, files, templates, and an import that is written."""
    tenants = list({store.shard_of_tenant(f"school {n}"): f"school {n}" for n in range(20)}.values())
    shards = {store.shard_of_tenant(tenant) for tenant in tenants}
    for tenant in tenants:
        await furnish(store, tenant)
    found = {key: node for node in cluster.nodes if node.is_primary for key in node.ask("KEYS", "*")}
    owned = [(key, node, *place) for key, node in found.items() if (place := parse_key(key)) and place[0].name in OWNED]
    assert {kind.name for _, _, kind, _, _ in owned} == OWNED
    for key, node, kind, shard, parts in owned:
        assert node is cluster.owner(shard), key
        assert shard in shards, key
        assert "tenant" not in kind.parts or shard == store.shard_of_tenant(parts[0]), key
    assert {shard for *_, shard, _ in owned} == shards
    assert {node.port for _, node, *_ in owned} == {cluster.owner(shard).port for shard in shards}
    assert len({node.port for _, node, *_ in owned}) > 1
    store.clock_offset_ms = 60_000
    assert await Importing(store, Directory(store)).recover() == len(tenants)
    assert [await is_member(store, tenant) for tenant in tenants] == [True] * len(tenants)
    assert await violations_in(store) == []


OWNED = {
    *(
        "users",
        "userids",
        "names",
        "emails",
        "contacts",
        "role",
        "collections",
        "collectionids",
        "members",
        "member_of",
    ),
    *("owned", "owners", "import", "importpages", "imports"),
    *("session", "sessions", "signinlink", "upload", "uploadpart", "uploadlist", "templates", "actions"),
}


async def furnish(store: Store, tenant: str) -> None:
    """Give a tenant something of each kind. Its import is committed and then left alone, as by a process that dies."""
    directory = Directory(store)
    anna = User(1, "Anna", "anna@example.org", contacts={"sms": ["+79991112233"]}, role="staff")
    await directory.users.create(tenant, anna)
    await directory.groups.create(tenant, Group("a"), [1])
    await directory.ownerships.own(tenant, 1, "group", "a")
    sessions = Sessions(store, directory, ApiKeys(store))
    begun = [await sessions.begin_as_person(tenant, 1) for _ in range(3)]
    await sessions.end(begun[0].identity)
    assert [(await sessions.find(one.secret)) is not None for one in begun] == [False, True, True]
    link = await SignInLinks(store).create(tenant, 1)
    assert (await SignInLinks(store).use(link)).tenant == tenant
    await SignInLinks(store).create(tenant, 1)
    file, read = await Uploads(store).store(tenant, "a.txt", BytesIO(tenant.encode())), BytesIO()
    assert await Uploads(store).load(tenant, file.id, read)
    assert read.getvalue() == tenant.encode()
    await MessageTemplates(store).save(tenant, 1, MessageTemplate(title="Hello", message={"text": "hello"}))
    await ActionLog(store).write(tenant, OperatorAction("Anna", "1", "api", "POST /v1/groups", "/v1/groups", 1, ""))
    journal = Journal(store, tenant)
    await journal.begin("groups", 1)
    await journal.add([("group", "b", '{"id":"b","version":"x"}'), ("join_group", "b", "1")], 1)
    await journal.commit()


async def test_an_import_is_completed_while_the_primary_of_another_tenant_is_down(
    store: Store, cluster: Cluster
) -> None:
    lost = next(node for node in cluster.nodes[1:3] if cluster.owner(0) is not node)  # it has no replica
    tenants = {store.shard_of_tenant(f"school {n}"): f"school {n}" for n in range(20)}
    for tenant in tenants.values():
        await furnish(store, tenant)
    others = [tenant for shard, tenant in tenants.items() if cluster.owner(shard) is not lost]
    assert 0 < len(others) < len(tenants)
    store.clock_offset_ms = 60_000
    lost.freeze()
    recovering = asyncio.create_task(Importing(store, Directory(store)).recover())
    try:
        for tenant in others:
            await until(partial(is_member, store, tenant), within=8)
        assert not recovering.done()
    finally:
        lost.resume()
    assert await recovering == len(tenants)


async def is_member(store: Store, tenant: str) -> bool:
    return await Directory(store).groups.has_member(tenant, "b", 1)
