"""bench queue peers: arq and SAQ with the same work as Ada: tasks of 200 bytes whose handler does nothing.

Each is installed from PyPI, in one fixed version, into a temporary virtual environment. They have no lanes and no
fencing; Ada has both, ten tasks to a lane. Their tasks count as done when the handler begins. All reach the server over
TCP: SAQ takes no address of a socket.
"""

import asyncio
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.harness.environment import START_TIMEOUT, ChildProcess, Environment, environment
from bench.harness.measurements import latency_columns, server_size
from bench.harness.report import Row, Rows, log_progress
from bench.queue.programs import GO
from bench.queue.queue_environment import QueueSizes, queue_environment
from bench.queue.server_cost import bytes_of_each
from bench.queue.speed import CALLERS, RATE, measure_done, measure_lags
from cli.command import CommandFailed
from cli.processes.supervisor import Announcement

PEERS = {
    "arq": ("arq==0.28.0", "redis[hiredis]==5.3.1"),
    "saq": ("saq==0.26.4", "redis[hiredis]==5.3.1", "typing_extensions==4.16.0"),
}
_TIMEOUT = 600.0
_WARM_UP = 100


@dataclass(frozen=True, slots=True)
class PeerFigures:
    """`puts`, `done`: per second; `bytes`: of a pending task."""

    puts: float
    done: float
    lags: Sequence[float]
    bytes: float

    def row(self, system: str) -> Row:
        rates: Row = {"part": "peers", "system": system, "put_per_s": round(self.puts), "done_per_s": round(self.done)}
        return {**rates, **latency_columns("latency", self.lags), "bytes": round(self.bytes)}


async def measure(chosen: Sequence[str], sizes: QueueSizes, rows: Rows) -> None:
    with tempfile.TemporaryDirectory(prefix="ada-bench-peers-") as directory:
        programs = {name: await install(name, Path(directory) / name) for name in chosen}
        rows.show((await measure_ada(sizes)).row("ada"))
        for name, program in programs.items():
            rows.show((await measure_peer(name, program, sizes)).row(" ".join(PEERS[name][:1])))


async def install(name: str, directory: Path) -> Path:
    """Installs the queue into a virtual environment; returns its Python. Raises CommandFailed."""
    log_progress(f"installing {PEERS[name][0]}")
    await run(sys.executable, "-m", "venv", str(directory))
    program = directory / "bin" / "python"
    await run(str(program), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PEERS[name])
    return program


async def run(*command: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await process.communicate()
    if process.returncode:
        lines = output.decode(errors="replace").strip().splitlines() or ["no reason given"]
        raise CommandFailed(f"{' '.join(command)} failed; is PyPI reachable from here? Its output: {lines[-1]}")


async def measure_ada(sizes: QueueSizes) -> PeerFigures:
    async with queue_environment(over_tcp=True) as env:
        put = await env.put("own", sizes.put, CALLERS, 1)
    async with queue_environment(over_tcp=True) as env:
        cost = await measure_done(env, "tens", sizes.worked, 1)
    async with queue_environment(over_tcp=True) as env:
        lags = await measure_lags(env, sizes.latency_s)
    each = await bytes_of_each("tens", sizes.weighed, None)
    return PeerFigures(put.count / put.seconds, cost.count / cost.seconds, lags, each)


async def measure_peer(name: str, program: Path, sizes: QueueSizes) -> PeerFigures:
    """Return each figure on a fresh server."""
    async with environment(over_tcp=True) as env:
        puts = sizes.put / (await put(env, name, program, sizes.put))["seconds"]
    async with environment(over_tcp=True) as env:
        await put(env, name, program, sizes.worked)
        worker = await start(env, name, program, "work", sizes.worked, "wait")
        await worker.facts(START_TIMEOUT)
        await env.redis.rpush(GO, "go")
        rate = sizes.worked / (await worker.facts(_TIMEOUT))["seconds"]
        await worker.stop()
    async with environment(over_tcp=True) as env:
        lags = await peer_lags(env, name, program, sizes)
    async with environment(over_tcp=True) as env:
        await put(env, name, program, _WARM_UP)
        before = await server_size(env.redis)
        await put(env, name, program, sizes.weighed)
        each = ((await server_size(env.redis)).bytes - before.bytes) / sizes.weighed
    return PeerFigures(puts, rate, lags, each)


async def start(env: Environment, name: str, program: Path, what: str, count: int, option: object) -> ChildProcess:
    args = [str(program), "-P", "-m", "bench.peer_program", name, env.url, what, str(count), str(option)]
    return await ChildProcess.start(f"{name} {what}", args, env.variables, env.directory, read_facts)


def read_facts(line: str) -> Announcement | None:
    """Return what a line of `bench.peer_program` announces."""
    return dict(json.loads(line)) if line.startswith("{") else None


async def put(env: Environment, name: str, program: Path, count: int) -> Announcement:
    child = await start(env, name, program, "put", count, CALLERS)
    facts = await child.facts(_TIMEOUT)
    await child.stop()
    return facts


async def peer_lags(env: Environment, name: str, program: Path, sizes: QueueSizes) -> list[float]:
    worker = await start(env, name, program, "work", 0, "now")
    await worker.facts(START_TIMEOUT)
    putting = await start(env, name, program, "flow", round(RATE * sizes.latency_s), RATE)
    await putting.facts(_TIMEOUT)
    await putting.stop()
    await worker.stop()
    lags: list[float] = (await worker.facts(START_TIMEOUT))["lags"]
    return lags
