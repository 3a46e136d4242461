"""bench cluster: CPU of the primaries for each task, with one primary and with three.

Tasks are put in pages and done by one worker with an empty handler, on 18 shards, the same number on each primary. The
figures are CPU seconds of each primary's main thread (INFO cpu), not wall clock: one machine with few cores does no
more work with three servers than with one. `capacity_per_s` is what the busiest primary could do with a core of its
own, so `to_one` is how much more a cluster on machines of its own can do, as far as the servers limit it.
"""

import asyncio
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from redis.asyncio import Redis
from redis.crc import key_slot

from bench.harness.environment import START_TIMEOUT, ChildProcess
from bench.harness.measurements import wait_until
from bench.harness.report import Rows, log_progress, median, report_target
from bench.queue.programs import TUBE, tens
from cli.commands.start.installation import valkey_is_ready
from cli.processes import embedded_valkey
from core.queue import Attempt, QueueClient
from core.redis.server_checks import sign_layout
from core.redis.store import Store

SHARDS, PAGE, CONCURRENCY = 18, 200, 400
PRIMARIES = (1, 3)
TARGET = 2.5


def declare_cluster(parser: ArgumentParser) -> None:
    parser.add_argument("--tasks", type=int, default=30_000, help="tasks in a round (30,000)")
    parser.add_argument("--rounds", type=int, default=3, help="how often each cluster is measured (3)")


async def measure_cluster(arguments: Namespace, rows: Rows) -> None:
    costs: dict[int, list[list[float]]] = {primaries: [] for primaries in PRIMARIES}
    for number in range(arguments.rounds):
        for primaries, measured in costs.items():
            measured.append(await cpu_of(primaries, arguments.tasks))
            log_progress(f"{number + 1}/{arguments.rounds} {primaries} primaries: {sum(measured[-1]):.2f} s CPU")
    capacities = {n: median([arguments.tasks / max(cpu) for cpu in measured]) for n, measured in costs.items()}
    for primaries, measured in costs.items():
        rows.show(
            {
                "primaries": primaries,
                "n": arguments.tasks,
                "cpu_us_per_task": round(median([1e6 * sum(cpu) / arguments.tasks for cpu in measured]), 1),
                "busiest_us_per_task": round(median([1e6 * max(cpu) / arguments.tasks for cpu in measured]), 1),
                "capacity_per_s": round(capacities[primaries]),
                "to_one": round(capacities[primaries] / capacities[1], 2),
            }
        )
    ratio = capacities[3] / capacities[1]
    report_target("capacity of three primaries by CPU, to one", ratio, f"≥ {TARGET}", ratio >= TARGET)


async def cpu_of(primaries: int, tasks: int) -> list[float]:
    """Return the CPU seconds of each primary while `tasks` are put and done."""
    async with cluster_of(primaries, SHARDS) as (store, nodes):
        await put_and_do(store, SHARDS)  # loads the library everywhere
        before = await main_thread_seconds(nodes)
        await put_and_do(store, tasks)
        after = await main_thread_seconds(nodes)
        return [end - begin for begin, end in zip(before, after, strict=True)]


async def put_and_do(store: Store, tasks: int) -> None:
    client, ended, left = QueueClient(store), asyncio.Event(), tasks

    async def handle(attempt: Attempt) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            ended.set()

    for first in range(0, tasks, PAGE):
        page = range(first, min(first + PAGE, tasks))
        await client.put_many(TUBE, [tens(number, tasks, 0) for number in page])
    worker = client.worker(TUBE, handle, CONCURRENCY)
    running = asyncio.create_task(worker.run())
    await ended.wait()
    worker.stop()
    await running
    await client.close()


async def main_thread_seconds(nodes: Sequence[Redis]) -> list[float]:
    found = [await node.info("cpu") for node in nodes]
    return [one["used_cpu_user_main_thread"] + one["used_cpu_sys_main_thread"] for one in found]


_SLOTS = 16384
_PASSWORD = "benchmark"


@asynccontextmanager
async def cluster_of(primaries: int, shards: int) -> AsyncIterator[tuple[Store, Sequence[Redis]]]:
    """Open a cluster; yield a store on it and a client of each primary."""
    async with AsyncExitStack() as opened:
        directory = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="ada-bench-")))
        ports = [await _start(opened, directory / f"node-{number}") for number in range(primaries)]
        nodes = [Redis(port=port, password=_PASSWORD, decode_responses=True, client_name="bench") for port in ports]
        for node in nodes:
            opened.push_async_callback(node.aclose)
        await _join(nodes, ports, shards)
        store = await Store.open(f"redis+cluster://:{_PASSWORD}@127.0.0.1:{ports[0]}?client_name=bench", shards)
        opened.push_async_callback(store.close)
        await sign_layout(store)
        yield store, nodes


async def _start(opened: AsyncExitStack, directory: Path) -> int:
    """Start a node; return its port."""
    place = embedded_valkey.prepare(directory)
    options = (
        "--requirepass",
        _PASSWORD,
        "--cluster-enabled",
        "yes",
        "--cluster-port",
        str(embedded_valkey.free_port()),
    )
    command = [*place.command(), *options]
    node = await ChildProcess.start("node", command, embedded_valkey.ENVIRONMENT, directory, valkey_is_ready)
    opened.push_async_callback(node.stop)
    await node.facts(START_TIMEOUT)
    return place.port


async def _join(nodes: Sequence[Redis], ports: Sequence[int], shards: int) -> None:
    """Give each node its part of the slots and wait until every node sees the whole cluster."""
    slots = sorted(key_slot(str(shard).encode()) for shard in range(shards))
    cuts = [0, *(slots[shards * number // len(nodes)] for number in range(1, len(nodes))), _SLOTS]
    for number, node in enumerate(nodes):
        await _command(node, "CLUSTER", "ADDSLOTSRANGE", cuts[number], cuts[number + 1] - 1)
        await _command(node, "CLUSTER", "SET-CONFIG-EPOCH", number + 1)
    for node, port in zip(nodes[1:], ports[1:], strict=True):
        bus = str((await node.config_get("cluster-port"))["cluster-port"])
        await _command(nodes[0], "CLUSTER", "MEET", "127.0.0.1", port, bus)

    async def is_whole() -> bool:
        views = await asyncio.gather(*(_command(node, "CLUSTER", "INFO") for node in nodes))
        return all(_is_ok(view, len(nodes)) for view in views)

    await wait_until(is_whole, START_TIMEOUT, "the cluster")


def _is_ok(view: object, primaries: int) -> bool:
    text = str(view)
    return "cluster_state:ok" in text and f"cluster_size:{primaries}" in text


async def _command(node: Redis, *words: str | int) -> object:
    return await node.execute_command(*words)  # type: ignore[no-untyped-call]
