"""What holds over all processes together, with real processes: ids, the pace of a tube, throttles."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from core.queue import NewTask, Queue, Tube, Tubes
from core.queue.task_ids import put_ms
from core.redis.keys import KEYS
from core.redis.store import Store
from tests.core.queue.process import THROTTLE, TUBE
from tests.support.servers import Server
from tests.support.stack import Stack
from tests.support.waiting import until
from tests.system.crash.process import AdaProcess

Started = Callable[..., AdaProcess]
SHARDS = 4


@pytest.fixture
def start(server: Server, tmp_path: Path) -> Iterator[Started]:
    """`start("put")`, `start("take", "account")`: starts a process, which is killed at the end of the test."""
    programs: list[AdaProcess] = []

    def started(verb: str, *account: str) -> AdaProcess:
        log = tmp_path / f"{len(programs)}.log"
        program = AdaProcess((verb, server.url, *account), {}, log, module="tests.core.queue.process")
        programs.append(program)
        return program

    yield started
    for program in programs:
        program.kill()


async def client_of(program: AdaProcess) -> str:
    return str((await program.ready())["client"])


async def ids_by_client(stack: Stack) -> dict[str, list[str]]:
    """Return client → ids of its tasks, in the order in which the server got them."""
    found = defaultdict(list)
    for name in await stack.store.command("ZRANGE", KEYS["ready"].at(0, TUBE, "default"), 0, -1):
        found[name.partition(".")[2]].append(name)
    return found


def moments(program: AdaProcess, what: str) -> list[int]:
    """Return the server's ms of the lines that begin with `what`."""
    return [int(ms) for ms in re.findall(rf"^{what} (\d+)", program.output, re.MULTILINE)]


async def test_ids_of_several_processes_never_collide_and_sort_by_time(stack: Stack, start: Started) -> None:
    """Two processes put at once and are killed; a third one puts after that."""
    programs = [start("put"), start("put")]
    one, other = [await client_of(program) for program in programs]

    async def put_within_one_ms() -> bool:
        ids = await ids_by_client(stack)
        ms = [{int(put_ms(name) or 0) for name in ids[client]} for client in (one, other)]
        return len(ids[one]) > 1000 and len(ids[other]) > 1000 and bool(ms[0] & ms[1])

    async def third_has_put() -> bool:
        return len((await ids_by_client(stack))[last]) > 100

    await until(put_within_one_ms)
    for program in programs:
        program.kill()
    third = start("put")
    last = await client_of(third)
    await until(third_has_put)
    third.kill()
    ids = await ids_by_client(stack)
    assert set(ids) == {one, other, last}
    counted = (await stack.queue.inspector.stats()).tubes[TUBE].put
    assert sum(map(len, ids.values())) == counted, "a task with the id of another would have replaced it"
    assert all(found == sorted(found) for found in ids.values())
    times = {client: {name.partition(".")[0] for name in found} for client, found in ids.items()}
    assert max(times[one] | times[other]) < min(times[last])
    await stack.redis.flushall()


async def test_the_pace_of_a_tube_holds_over_all_processes_and_while_one_is_killed(
    stack: Stack, start: Started
) -> None:
    pace, burst = 50, 5
    await Tubes(stack.store).create(Tube(TUBE, pace=pace))
    programs = [start("take", "") for _ in range(3)]
    for program in programs:
        await program.ready()
    await stack.queue.put_many(TUBE, [NewTask("") for _ in range(200)])
    await until(lambda: sum(len(moments(program, "taken")) for program in programs) > 60)
    programs[0].kill()
    await until(lambda: sum(len(moments(program, "taken")) for program in programs) > 190)
    for program in programs:
        assert len(moments(program, "taken")) > 5, "each had a share"
        program.kill()
    taken = sorted(ms for program in programs for ms in moments(program, "taken"))
    for n, first in enumerate(taken):
        for m, last in enumerate(taken[n:], 1):
            assert m <= burst + 1 + (last - first) * pace / 1000, f"{m} within {last - first} ms"


async def test_a_throttle_stops_its_account_in_every_process_and_no_other_account(stack: Stack, start: Started) -> None:
    await Tubes(stack.store).create(Tube(TUBE, pace=100))
    first, second, free = programs = [start("take", account) for account in ("ada", "ada", "free")]
    for program in programs:
        await program.ready()
    free.freeze()  # one of the other two gets the throttle
    await stack.queue.put(TUBE, NewTask("throttle"))
    await until(lambda: moments(first, "throttled") or moments(second, "throttled"))
    (end,) = moments(first, "throttled") + moments(second, "throttled")
    begin = end - int(THROTTLE.total_seconds() * 1000)
    free.resume()
    await stack.queue.put_many(TUBE, [NewTask("") for _ in range(300)])
    await until(lambda: all(len(moments(program, "taken")) > 5 for program in programs))
    taken = {program: [ms for ms in moments(program, "taken") if begin < ms < end] for program in programs}
    assert [len(taken[program]) for program in (first, second)] == [0, 0]
    assert taken[free]


async def test_the_timers_of_all_shards_go_over_to_another_process_when_their_keeper_is_killed(
    server: Server, start: Started
) -> None:
    """Tasks that are due soon, put before and after the death, in each shard."""
    store = await Store.open(server.url, SHARDS)
    queue = Queue(store)

    async def keepers() -> set[str]:
        return {str(await store.command("GET", key)).partition(" ")[0] for key in store.keys_of_shards("timer")}

    async def keeps_all() -> bool:
        return await keepers() == {keeper}

    async def put(word: str) -> None:
        due = store.now() + timedelta(seconds=1)
        for shard in range(SHARDS):
            await queue.put_many(TUBE, [NewTask(f"{word}{shard}", due=due)], shard=shard)

    first = start("work", str(SHARDS))
    keeper = await client_of(first)
    await until(keeps_all)
    second = start("work", str(SHARDS))
    heir = await client_of(second)
    await put("before")
    first.kill()
    await put("after")
    wanted = {f"{word}{shard}" for word in ("before", "after") for shard in range(SHARDS)}
    await until(lambda: wanted <= set(re.findall(r"^taken \d+ (\w+)", second.output, re.MULTILINE)))
    keeper = heir
    await until(keeps_all)
    third = start("work", str(SHARDS))
    await third.ready()
    second.kill()
    await put("last")  # wakes the dead keeper
    wanted = {f"last{shard}" for shard in range(SHARDS)}
    await until(lambda: wanted <= set(re.findall(r"^taken \d+ (\w+)", third.output, re.MULTILINE)))
    third.kill()
    await store.redis.flushall()
    await store.close()
