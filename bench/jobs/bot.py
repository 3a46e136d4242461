"""bench jobs bot: how long a bot takes to answer while the jobs of killed processes resume, at the sandbox's Bot API.

People write /start to the bot of examples/job-hunter, one after the other at a fixed rate. The time runs from the call
that makes a person write until the sandbox receives the answer: long polling, the queue, the scenario and the courier
are all in it. The same is measured without jobs, and under their usual load.
"""

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from itertools import count, islice
from typing import NamedTuple

from aiohttp import ClientSession

from bench.harness.environment import Environment
from bench.harness.measurements import latency_columns, wait_until
from bench.harness.report import Row, Rows, report_target
from bench.harness.writing import answers_to
from bench.jobs.load import FIRST_IN_MS, LONGER_THAN_LEASE, begun_since, busy_process, held_by, next_round
from bench.jobs.samples import PROCESSES, Bench, running_jobs, store_busy
from bench.jobs.sizes import Sizes
from core.model.clock import to_ms
from examples import JOB_HUNTER_BOT

P99_MS = 50.0
FIRST_PERSON, WARM_UP = 100_001, 20
_PROCESSES = (("courier", "telegram-bot"), ("scenarios",), ("bot", "telegram"))
_TIMEOUT = 120.0


class BotKilled(NamedTuple):
    """The jobs (users) whose iteration was interrupted, and when (Unix ms)."""

    held: set[str]
    at: float


async def measure(sizes: Sizes, rows: Rows) -> None:
    async with running_jobs(sizes) as bench:
        page = await start_bot(bench.env)
        async with ClientSession(page, raise_for_status=True) as sandbox:
            people = count(FIRST_PERSON)
            await answers_to(sandbox, list(islice(people, WARM_UP)), sizes.updates_per_s, "/start")
            for name, begin in SITUATIONS.items():
                killed = await begin(bench, sizes)
                waits = await measure_answers(sandbox, people, sizes)
                show_answers(name, waits, sizes, rows, await run_again(bench, killed) if killed else {})


async def start_bot(env: Environment) -> str:
    """Starts the sandbox, and the bot with all its processes; returns the address of the sandbox's page."""
    _, facts = await env.start_command("sandbox", "--json")
    env.variables |= facts["environment"]
    env.variables["ADA_SCENARIOS"] = str(JOB_HUNTER_BOT)
    for args in _PROCESSES:
        await env.start_command(*args)
    return str(facts["page"])


async def measure_answers(sandbox: ClientSession, people: Iterator[int], sizes: Sizes) -> Sequence[float]:
    """Return the ms to each answer, while people write for as long as killed jobs may take to run again."""
    updates = round((sizes.lease + LONGER_THAN_LEASE) * sizes.updates_per_s)
    return await answers_to(sandbox, list(islice(people, updates)), sizes.updates_per_s, "/start")


async def run_again(bench: Bench, killed: BotKilled) -> Row:
    """Waits until the interrupted jobs have begun another iteration: how many, and after how long the last one."""
    begun: dict[str, float] = {}

    async def all_run() -> bool:
        begun.update(begun_since(bench.notes(), killed.at))
        return killed.held <= begun.keys()

    await wait_until(all_run, _TIMEOUT, f"another begin of {len(killed.held)} jobs")
    seconds = (max(begun[user] for user in killed.held) - killed.at) / 1000
    return {"held": len(killed.held), "run_again_s": round(seconds, 2)}


def show_answers(name: str, waits: Sequence[float], sizes: Sizes, rows: Rows, again: Row) -> None:
    columns = latency_columns("answer", waits)
    known: Row = {"part": "bot", "jobs": name, "n": len(waits), "updates_per_s": sizes.updates_per_s}
    rows.show({**known, **columns, "held": None, "run_again_s": None, **again})
    p99 = float(columns["answer_p99_ms"] or 0)
    report_target(f"the bot's answers, jobs {name}, p99 ms", p99, f"≤ {P99_MS:g}", p99 <= P99_MS)


async def no_jobs(bench: Bench, sizes: Sizes) -> None:
    """Do nothing: the processes run without jobs."""


async def usual_load(bench: Bench, sizes: Sizes) -> None:
    period = sizes.jobs / sizes.rate
    first = to_ms(bench.jobs.now()) + FIRST_IN_MS
    await store_busy(bench.jobs, sizes.jobs, first, period)
    await next_round(first, period)


async def kill_one(bench: Bench, sizes: Sizes) -> BotKilled:
    return await kill(bench, await busy_process(bench))


async def kill_and_start(bench: Bench, sizes: Sizes) -> BotKilled:
    """Kill the busy process, and start the processes anew without waiting for them."""
    killed = await kill(bench, await busy_process(bench))
    for _ in range(PROCESSES):
        bench.processes.append(await bench.env.start("jobs", "cli", "jobs"))
    return killed


async def kill(bench: Bench, pid: int) -> BotKilled:
    victim = next(process for process in bench.processes if process.pid == pid)
    await victim.kill()
    bench.processes.remove(victim)
    return BotKilled(held_by(bench.notes(), pid), time.time() * 1000)


SITUATIONS: Mapping[str, Callable[[Bench, Sizes], Awaitable[BotKilled | None]]] = {
    "none": no_jobs,
    "under load": usual_load,
    "a process killed": kill_one,
    "all killed": kill_and_start,
}
