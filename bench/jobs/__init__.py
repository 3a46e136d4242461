"""bench jobs: many long-running jobs on two processes.

idle  bytes of a job that waits for its next iteration, and the CPU of all of them
load  how late iterations begin; then one process is killed (kill -9): when all its jobs run again
bot   how long a bot takes to answer without jobs, under their load, and after processes were killed
"""

from argparse import ArgumentParser, Namespace
from dataclasses import replace

from bench import Parts, declare_parts, measure_parts
from bench.harness.report import Rows
from bench.jobs.bot import measure_bot
from bench.jobs.load import FULL, SHORT, JobSizes, measure_idle, measure_load

PARTS: Parts[JobSizes] = {
    "idle": measure_idle,
    "load": measure_load,
    "bot": measure_bot,
}


def declare_jobs(parser: ArgumentParser) -> None:
    declare_parts(parser, PARTS, "everything in a minute")
    parser.add_argument("--jobs", type=int, metavar="N", help=f"how many jobs ({FULL.jobs})")


async def measure_jobs(arguments: Namespace, rows: Rows) -> None:
    sizes = SHORT if arguments.short else FULL
    sizes = replace(sizes, jobs=arguments.jobs or sizes.jobs)
    await measure_parts(PARTS, arguments.parts, sizes, rows)
