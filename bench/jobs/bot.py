"""bench jobs bot: how long a bot takes to answer while the jobs of killed processes resume, at the sandbox's Bot API.

People write /start to the bot of examples/job-hunter, one after the other at a fixed rate. The time runs from the call
that makes a person write until the sandbox receives the answer: long polling, the queue, the scenario and the courier
are all in it. The same is measured without jobs, and under their usual load.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from itertools import count, islice

from aiohttp import ClientSession

from bench.harness.measurements import latency_columns
from bench.harness.report import Row, Rows, report_target
from bench.jobs.load import (
    LONGER_THAN_LEASE,
    PROCESSES,
    Bench,
    JobSizes,
    ProcessKilled,
    busy_process,
    kill,
    running_jobs,
    seconds_until_resumed,
    start_busy,
)
from bench.scenarios.bots import answers_to, start_ada, start_sandbox
from examples import JOB_HUNTER_BOT

P99_MS = 50.0
FIRST_PERSON, WARM_UP = 100_001, 20


async def measure_bot(sizes: JobSizes, rows: Rows) -> None:
    async with running_jobs(sizes) as bench:
        page = await start_sandbox(bench.env)
        bench.env.variables["ADA_SCENARIOS"] = str(JOB_HUNTER_BOT)
        await start_ada(bench.env)
        async with ClientSession(page, raise_for_status=True) as sandbox:
            people = count(FIRST_PERSON)
            await answers_to(sandbox, list(islice(people, WARM_UP)), sizes.updates_per_s, "/start")
            for name, begin in SITUATIONS.items():
                killed = await begin(bench, sizes)
                waits = await measure_answers(sandbox, people, sizes)
                show_answers(name, waits, sizes, rows, await takeover_columns(bench, killed))


async def measure_answers(sandbox: ClientSession, people: Iterator[int], sizes: JobSizes) -> Sequence[float]:
    """Return the ms to each answer, while people write for as long as killed jobs may take to run again."""
    updates = round((sizes.lease + LONGER_THAN_LEASE) * sizes.updates_per_s)
    return await answers_to(sandbox, list(islice(people, updates)), sizes.updates_per_s, "/start")


async def takeover_columns(bench: Bench, killed: ProcessKilled | None) -> Row:
    if not killed:
        return {"held": None, "run_again_s": None}
    return {"held": len(killed.held), "run_again_s": await seconds_until_resumed(bench, killed)}


def show_answers(name: str, waits: Sequence[float], sizes: JobSizes, rows: Rows, takeover: Row) -> None:
    columns = latency_columns("answer", waits)
    known: Row = {"part": "bot", "jobs": name, "n": len(waits), "updates_per_s": sizes.updates_per_s}
    rows.show({**known, **columns, **takeover})
    p99 = float(columns["answer_p99_ms"] or 0)
    report_target(f"the bot's answers, jobs {name}, p99 ms", p99, f"≤ {P99_MS:g}", p99 <= P99_MS)


async def no_jobs(bench: Bench, sizes: JobSizes) -> None:
    """Do nothing: the processes run without jobs."""


async def usual_load(bench: Bench, sizes: JobSizes) -> None:
    await start_busy(bench, sizes)


async def kill_one(bench: Bench, sizes: JobSizes) -> ProcessKilled:
    return await kill(bench, await busy_process(bench))


async def kill_and_start(bench: Bench, sizes: JobSizes) -> ProcessKilled:
    """Kill the busy process, and start the processes anew without waiting for them."""
    killed = await kill(bench, await busy_process(bench))
    for _ in range(PROCESSES):
        bench.processes.append(await bench.env.start("jobs", "cli", "jobs"))
    return killed


SITUATIONS: Mapping[str, Callable[[Bench, JobSizes], Awaitable[ProcessKilled | None]]] = {
    "none": no_jobs,
    "under load": usual_load,
    "a process killed": kill_one,
    "all killed": kill_and_start,
}
