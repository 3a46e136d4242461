"""bench scenarios rate: updates per second when many wait at the Bot API, beside a bare aiogram bot.

All updates are there before the bot starts; each is answered with one message. The rate counts from the first message
to the last one. One process of each kind: the bot that gets updates, the scenarios, the courier. `cpu_us` is the CPU of
all processes of the system for one update, `scenarios_us` that of the process of the scenarios.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence

from aiohttp import ClientSession

from bench.harness.child_process import ChildProcess
from bench.harness.environment import Environment
from bench.harness.process_cost import cpu_seconds
from bench.harness.report import Row, Rows, log_progress
from bench.harness.writing import first_answers
from bench.scenarios.sizes import Sizes
from bench.scenarios.systems import SYSTEMS, bench_environment, running, start_sandbox
from cli.command import CommandFailed

FIRST_PERSON = 100_001
_TIMEOUT = 300.0


async def measure(sizes: Sizes, rows: Rows) -> None:
    for system in SYSTEMS:
        async with bench_environment() as env:
            page = await start_sandbox(env)
            async with ClientSession(page, raise_for_status=True) as sandbox:
                rows.show(await measure_system(env, sandbox, system, sizes.backlog))


async def measure_system(env: Environment, sandbox: ClientSession, system: str, count: int) -> Row:
    log_progress(f"{system}: {count} updates")
    people = dict.fromkeys(map(str, range(FIRST_PERSON, FIRST_PERSON + count)), 0.0)
    for person in people:
        async with sandbox.post("/write/telegram-bot", json={"address": int(person), "text": "one"}):
            pass
    async with running(env, system) as children:
        before = cpu_of(children)
        await all_answered(sandbox, count)
        used = cpu_of(children)
    answered = sorted((await first_answers(sandbox, people)).values())
    rate = (count - 1) / (answered[-1] - answered[0])
    known: Row = {"part": "rate", "system": system, "n": count, "updates_per_s": round(rate)}
    return {**known, **{name: round((used[name] - before[name]) / count * 1e6) for name in used}}


async def all_answered(sandbox: ClientSession, count: int) -> None:
    """Waits until the sandbox has received this many messages. Raises CommandFailed if it takes too long."""
    deadline = time.monotonic() + _TIMEOUT
    while (newest := await _newest(sandbox)) < count:
        if time.monotonic() > deadline:
            raise CommandFailed(f"{newest} of {count} updates were answered")
        await asyncio.sleep(0.2)


async def _newest(sandbox: ClientSession) -> int:
    async with sandbox.get("/inbox.json?limit=1") as response:
        return int((await response.json())["newest"])


def cpu_of(children: Sequence[ChildProcess]) -> Mapping[str, float]:
    """Return the CPU seconds of all processes and of the scenarios, the start included."""
    used = {child.name: cpu_seconds(child.pid) for child in children}
    return {"cpu_us": sum(used.values()), "scenarios_us": used.get("scenarios", 0.0)}
