"""bench people expansion: one delivery to a supergroup, compared with the same delivery with inline people.

No courier runs: the time is that of the POST, until the delivery is stored with all parcels. Both are measured in turn,
because the speed of the machine changes. Each member is in two groups, so that repeated members are found.
"""

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.harness.delivery_samples import SHORT
from bench.harness.environment import START_TIMEOUT, Environment, environment
from bench.harness.measurements import latency_columns, script_timings
from bench.harness.report import Rows, log_progress, median, report_target
from bench.people.samples import CHANNELS, contacts, csv_file, import_csv, name, people_csv, start_api
from bench.people.sizes import Sizes
from bench.queue.queue_environment import values_between
from cli.client.http_client import HttpClient
from cli.command import CommandFailed

SUPERGROUP = "1 курс"
INLINE, EXPANDED = "inline people", "supergroup"
READS = ("HMGET", "HGET", "ZRANGE", "ZRANGEBYLEX", "ZSCORE")
"""The commands that read the directory."""

READ_MS = 10.0


@dataclass(frozen=True, slots=True)
class PostRun:
    """One POST. `ms`: until the response; `enqueue_ms`: of its script; `reads`: commands that read the directory, and
    `longest_read_ms` of them; `pings`: how long another client waited.
    """

    ms: float
    enqueue_ms: float
    reads: int
    longest_read_ms: float
    pings: Sequence[float]


async def measure(sizes: Sizes, rows: Rows) -> None:
    async with environment() as env:
        api = await start_api(env)
        await fill(api, sizes)
        runs = await measure_in_turn(env, api, sizes)
        show(runs, sizes.members, rows)


async def fill(api: HttpClient, sizes: Sizes) -> None:
    """Import people, overlapping groups and their supergroup."""
    groups = [str(number) for number in range(sizes.members // sizes.per_group)]
    members = (
        [groups[place % len(groups)], str(number)]
        for number in range(sizes.members)
        for place in (number // sizes.per_group, number // sizes.per_group + 1)
    )
    await import_csv(api, "users", people_csv(sizes.members))
    await import_csv(api, "groups", csv_file(["id"], ([group] for group in groups)))
    await import_csv(api, "members", csv_file(["group", "user"], members))
    await import_csv(api, "supergroups", csv_file(["id", "groups"], [[SUPERGROUP, ";".join(groups)]]))
    log_progress(f"{sizes.members:,} people in {len(groups)} groups, each in two of them")


def orders(count: int) -> Mapping[str, Mapping[str, Any]]:
    """Return the same delivery, written in two ways."""
    inline = [{"id": number, "name": name(number), "contacts": contacts(number)} for number in range(count)]
    common = {"sender": {"id": "dean"}, "text": SHORT, "channels": CHANNELS}
    return {
        INLINE: {**common, "recipients": inline},
        EXPANDED: {**common, "recipients": [{"supergroup": SUPERGROUP}]},
    }


async def measure_in_turn(env: Environment, api: HttpClient, sizes: Sizes) -> Mapping[str, Sequence[PostRun]]:
    """Measure all ways in turn. The first run of each is not counted: it loads the functions."""
    runs: defaultdict[str, list[PostRun]] = defaultdict(list)
    for _ in range(sizes.expansions + 1):
        for way, order in orders(sizes.members).items():
            runs[way].append(await measure_post(env, api, order, sizes.members))
    return {way: found[1:] for way, found in runs.items()}


async def measure_post(env: Environment, api: HttpClient, order: Mapping[str, Any], count: int) -> PostRun:
    pings = await env.start("pings", "bench.queue.processes.pings", env.url)
    await pings.facts(START_TIMEOUT)
    async with script_timings(env.redis) as timings:
        began = time.time()
        accepted = await api.call("POST", "/v1/deliveries", order)
        ended = time.time()
    await env.stop_child(pings)
    if accepted["recipients"] != count:
        raise CommandFailed(f"{accepted['recipients']} recipients instead of {count}")
    enqueues = timings.of("enqueue")
    if len(enqueues) != 1:
        raise CommandFailed(f"{len(enqueues)} enqueue scripts instead of one")
    waits = values_between((await pings.facts(START_TIMEOUT))["waits"], began * 1000, ended * 1000)
    reads = [took for verb in READS for took in timings.by_verb[verb]]
    return PostRun((ended - began) * 1000, enqueues[0] / 1000, len(reads), max(reads, default=0) / 1000, waits)


def show(runs: Mapping[str, Sequence[PostRun]], count: int, rows: Rows) -> None:
    """Show the medians, and the maximum of the reads."""
    for way, found in runs.items():
        ratios = [own.ms / other.ms for own, other in zip(found, runs[INLINE], strict=True)]
        rows.show(
            {
                "part": "expansion",
                "recipients": way,
                "n": count,
                "post_ms": round(median([run.ms for run in found]), 1),
                "to_inline": round(median(ratios), 2),
                "enqueue_scripts": 1,
                "enqueue_ms": round(median([run.enqueue_ms for run in found]), 2),
                "reads": round(median([run.reads for run in found])),
                "longest_read_ms": max(run.longest_read_ms for run in found),
                **latency_columns("ping", [wait for run in found for wait in run.pings]),
            }
        )
    longest = max(run.longest_read_ms for run in runs[EXPANDED])
    report_target("expansion, longest read of the directory, ms", longest, f"≤ {READ_MS:g}", longest <= READ_MS)
