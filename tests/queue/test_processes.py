"""What holds of all processes together, with real processes: ids, and the pace of a tube."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from core.queue.queue import NewTask
from core.queue.task import put_ms
from core.queue.tubes import Tube, Tubes
from core.redis.keys import KEYS
from tests.crash.program import Program
from tests.queue.process import HOLD, TUBE
from tests.support.servers import Server
from tests.support.stack import Stack
from tests.support.waiting import until

Started = Callable[..., Program]
pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def start(server: Server, tmp_path: Path) -> Iterator[Started]:
    """`start("put")`, `start("take", "account")`: a process on its way, killed with the test."""
    programs: list[Program] = []

    def started(verb: str, *account: str) -> Program:
        log = tmp_path / f"{len(programs)}.log"
        program = Program((verb, server.url, *account), {}, log, module="tests.queue.process")
        programs.append(program)
        return program

    yield started
    for program in programs:
        program.kill()


async def client_of(program: Program) -> str:
    return str((await program.ready())["client"])


async def ids_by_client(stack: Stack) -> dict[str, list[str]]:
    """Of every task there is, in the order in which the server took them."""
    found = defaultdict(list)
    for name in await stack.store.command("ZRANGE", KEYS["ready"].at(0, TUBE, "default"), 0, -1):
        found[name.partition(".")[2]].append(name)
    return found


def moments(program: Program, what: str) -> list[int]:
    """The ms of the server that it told."""
    return [int(ms) for ms in re.findall(rf"^{what} (\d+)", program.said, re.MULTILINE)]


@pytest.mark.row("K-23")
async def test_ids_of_several_processes_never_collide_and_sort_by_time(stack: Stack, start: Started) -> None:
    """Two that put at once, and are killed at it; a third when they are dead."""
    programs = [start("put"), start("put")]
    one, other = [await client_of(program) for program in programs]

    async def put_within_one_ms() -> bool:
        ids = await ids_by_client(stack)
        ms = [{int(put_ms(name) or 0) for name in ids[client]} for client in (one, other)]
        return len(ids[one]) > 1000 and len(ids[other]) > 1000 and bool(ms[0] & ms[1])

    async def third_has_put() -> bool:
        return len((await ids_by_client(stack))[last]) > 100

    await until(put_within_one_ms, within=30)
    for program in programs:
        program.kill()
    third = start("put")
    last = await client_of(third)
    await until(third_has_put, within=30)
    third.kill()
    ids = await ids_by_client(stack)
    assert set(ids) == {one, other, last}
    counted = (await stack.queue.stats())["tubes"][TUBE]["put"]
    assert sum(map(len, ids.values())) == counted, "one that had the id of another would have taken its place"
    assert all(found == sorted(found) for found in ids.values())
    times = {client: {name.partition(".")[0] for name in found} for client, found in ids.items()}
    assert max(times[one] | times[other]) < min(times[last])
    await stack.redis.flushall()


@pytest.mark.row("K-26")
async def test_a_tube_keeps_its_pace_over_all_processes_and_while_one_of_them_is_killed(
    stack: Stack, start: Started
) -> None:
    pace, burst = 50, 5
    await Tubes(stack.store).create(Tube(TUBE, pace=pace))
    programs = [start("take", "") for _ in range(3)]
    for program in programs:
        await program.ready()
    await stack.queue.put_many(TUBE, [NewTask("") for _ in range(200)])
    await until(lambda: sum(len(moments(program, "taken")) for program in programs) > 60, within=20)
    programs[0].kill()
    await until(lambda: sum(len(moments(program, "taken")) for program in programs) > 190, within=20)
    for program in programs:
        assert len(moments(program, "taken")) > 5, "each had a share"
        program.kill()
    taken = sorted(ms for program in programs for ms in moments(program, "taken"))
    for n, first in enumerate(taken):
        for m, last in enumerate(taken[n:], 1):
            assert m <= burst + 1 + (last - first) * pace / 1000, f"{m} within {last - first} ms"


@pytest.mark.row("K-26")
async def test_a_wait_holds_the_account_it_was_said_to_in_every_process_and_no_other(
    stack: Stack, start: Started
) -> None:
    await Tubes(stack.store).create(Tube(TUBE, pace=100))
    held, as_well, free = programs = [start("take", account) for account in ("held", "held", "free")]
    for program in programs:
        await program.ready()
    free.freeze()  # one of the others is to hear of the wait
    await stack.queue.put(TUBE, "wait")
    await until(lambda: moments(held, "held") or moments(as_well, "held"))
    (over,) = moments(held, "held") + moments(as_well, "held")
    began = over - int(HOLD.total_seconds() * 1000)
    free.resume()
    await stack.queue.put_many(TUBE, [NewTask("") for _ in range(300)])
    await until(lambda: all(len(moments(program, "taken")) > 5 for program in programs), within=20)
    taken = {program: [ms for ms in moments(program, "taken") if began < ms < over] for program in programs}
    assert [len(taken[program]) for program in (held, as_well)] == [0, 0]
    assert taken[free]
