"""bench queue peers: arq and SAQ with the same job beside ours: tasks of 200 bytes whose handler does nothing.

Each is installed from PyPI, in one version, into an environment of its own that ends with the benchmark. Theirs have no
lanes and no fencing; ours have both, ten tasks to a lane. A task of theirs counts as done when its handler begins.
"""

import asyncio
import sys
import tempfile
from argparse import ArgumentTypeError
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.harness.child import Child
from bench.harness.ground import START, Ground, ground
from bench.harness.rows import Row, Rows, say
from bench.queue.latency import RATE, lags_of
from bench.queue.memory import bytes_of_each
from bench.queue.meter import contents, spread
from bench.queue.rates import CALLERS, done
from bench.queue.sizes import Sizes
from bench.queue.stage import staged
from bench.queue.worker import GO
from cli.command import NotDone
from cli.processes.supervisor import Facts

PEERS = {
    "arq": ("arq==0.28.0", "redis[hiredis]==5.3.1"),
    "saq": ("saq==0.26.4", "redis[hiredis]==5.3.1", "typing_extensions==4.16.0"),
}
_LONGEST = 600.0
_WARM = 100


def names(word: str) -> tuple[str, ...]:
    found = tuple(word.split(","))
    if unknown := [name for name in found if name not in PEERS]:
        raise ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(PEERS)}")
    return found


@dataclass(frozen=True, slots=True)
class Figures:
    """`puts`, `done`: per second; `bytes`: of a pending task."""

    puts: float
    done: float
    lags: Sequence[float]
    bytes: float

    def row(self, system: str) -> Row:
        rates: Row = {"part": "peers", "system": system, "put_per_s": round(self.puts), "done_per_s": round(self.done)}
        return {**rates, **spread("latency", self.lags), "bytes": round(self.bytes)}


async def measure(chosen: Sequence[str], sizes: Sizes, rows: Rows) -> None:
    with tempfile.TemporaryDirectory(prefix="ada-bench-peers-") as directory:
        programs = {name: await installed(name, Path(directory) / name) for name in chosen}
        rows.show((await of_ours(sizes)).row("ada"))
        for name, program in programs.items():
            rows.show((await of_peer(name, program, sizes)).row(" ".join(PEERS[name][:1])))


async def installed(name: str, directory: Path) -> Path:
    """The Python of an environment that has this queue. Raises NotDone."""
    say(f"installing {PEERS[name][0]}")
    await run(sys.executable, "-m", "venv", str(directory))
    program = directory / "bin" / "python"
    await run(str(program), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PEERS[name])
    return program


async def run(*command: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    said, _ = await process.communicate()
    if process.returncode:
        lines = said.decode(errors="replace").strip().splitlines() or ["no reason given"]
        raise NotDone(f"{' '.join(command)} failed; is PyPI reachable from here? It said: {lines[-1]}")


async def of_ours(sizes: Sizes) -> Figures:
    async with staged() as stage:
        put = await stage.put("own", sizes.put, CALLERS, 1)
    async with staged() as stage:
        spent = await done(stage, "tens", sizes.worked, 1)
    async with staged() as stage:
        lags = await lags_of(stage, sizes.latency_s)
    each = await bytes_of_each("tens", sizes.weighed, None)
    return Figures(put.count / put.seconds, spent.count / spent.seconds, lags, each)


async def of_peer(name: str, program: Path, sizes: Sizes) -> Figures:
    """Each figure on a fresh server."""
    async with ground() as place:
        puts = sizes.put / (await put(place, name, program, sizes.put))["seconds"]
    async with ground() as place:
        await put(place, name, program, sizes.worked)
        worker = await start(place, name, program, "work", sizes.worked, "held")
        await worker.facts(START)
        await place.redis.rpush(GO, "go")
        rate = sizes.worked / (await worker.facts(_LONGEST))["seconds"]
        await worker.stop()
    async with ground() as place:
        lags = await flow(place, name, program, sizes)
    async with ground() as place:
        await put(place, name, program, _WARM)
        before = await contents(place.redis)
        await put(place, name, program, sizes.weighed)
        each = ((await contents(place.redis)).bytes - before.bytes) / sizes.weighed
    return Figures(puts, rate, lags, each)


async def start(place: Ground, name: str, program: Path, what: str, count: int, how: object) -> Child:
    words = [str(program), "-P", "-m", "bench.baselines.other_queues", name, place.url, what, str(count), str(how)]
    return await Child.start(f"{name} {what}", words, place.environment, place.directory)


async def put(place: Ground, name: str, program: Path, count: int) -> Facts:
    child = await start(place, name, program, "put", count, CALLERS)
    facts = await child.facts(_LONGEST)
    await child.stop()
    return facts


async def flow(place: Ground, name: str, program: Path, sizes: Sizes) -> list[float]:
    worker = await start(place, name, program, "work", 0, "free")
    await worker.facts(START)
    putting = await start(place, name, program, "flow", round(RATE * sizes.latency_s), RATE)
    await putting.facts(_LONGEST)
    await putting.stop()
    await worker.stop()
    lags: list[float] = (await worker.facts(START))["lags"]
    return lags
