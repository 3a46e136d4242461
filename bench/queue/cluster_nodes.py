"""Primaries of a cluster for `bench cluster`, in a temporary directory. The shards are spread evenly over them."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from redis.asyncio import Redis
from redis.crc import key_slot

from bench.harness.child_process import ChildProcess
from bench.harness.environment import START_TIMEOUT
from bench.harness.measurements import wait_until
from cli.commands.start.installation import valkey_is_ready
from cli.processes import embedded_valkey
from core.redis.server_checks import sign_layout
from core.redis.store import Store

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
