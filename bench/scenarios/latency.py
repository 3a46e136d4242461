"""bench scenarios latency: from an update to the request at the sandbox's Bot API, beside a bare aiogram bot.

People write one after the other at a fixed rate: "one" is answered with one message, "five" with a chain of five; the
bot sends as many messages per second in both cases. The time runs from the call that makes a person write until the
sandbox receives the first, or the fifth, message: long polling, the queue, the run and the courier are all in it. Both
systems are measured in each round, in turn.
"""

from collections import defaultdict
from itertools import count

from aiohttp import ClientSession

from bench.harness.measurements import latency_columns
from bench.harness.report import Row, Rows, log_progress, percentile, report_target
from bench.harness.writing import answers_to
from bench.scenarios.sizes import Sizes
from bench.scenarios.systems import ADA, SYSTEMS, bench_environment, running, start_sandbox

P50_MS, P99_MS = 10.0, 30.0
SENDS = {"one": "1", "five": "5"}
"""The text of the person → the message whose arrival is measured."""

FIRST_PERSON, WARM_UP = 100_001, 10


async def measure(sizes: Sizes, rows: Rows) -> None:
    waits: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    people = LatencyPeople()
    async with bench_environment() as env:
        page = await start_sandbox(env)
        async with ClientSession(page, raise_for_status=True) as sandbox:
            for number in range(sizes.rounds):
                for system in SYSTEMS:
                    log_progress(f"round {number + 1} of {sizes.rounds}: {system}")
                    async with running(env, system):
                        await measure_round(sandbox, sizes, people, waits, system)
    show(waits, rows)


class LatencyPeople:
    """People who have not written yet."""

    def __init__(self) -> None:
        self._numbers = count(FIRST_PERSON)

    def next(self, many: int) -> list[int]:
        return [next(self._numbers) for _ in range(many)]


async def measure_round(
    sandbox: ClientSession,
    sizes: Sizes,
    people: LatencyPeople,
    waits: defaultdict[tuple[str, str], list[float]],
    system: str,
) -> None:
    for written, answer in SENDS.items():
        rate = sizes.messages_per_second / int(answer)
        await answers_to(sandbox, people.next(WARM_UP), rate, written, answer)
        waits[system, written] += await answers_to(sandbox, people.next(sizes.updates), rate, written, answer)


def show(waits: defaultdict[tuple[str, str], list[float]], rows: Rows) -> None:
    for (system, written), found in waits.items():
        known: Row = {"part": "latency", "system": system, "send": SENDS[written], "n": len(found)}
        rows.show({**known, **latency_columns("request", found)})
    for written, answer in SENDS.items():
        found = waits[ADA, written]
        for name, share, target in (("p50", 0.5, P50_MS), ("p99", 0.99, P99_MS)):
            value = percentile(found, share)
            report_target(f"send {answer} of a chain, {name} ms", value, f"≤ {target:g}", value <= target)
