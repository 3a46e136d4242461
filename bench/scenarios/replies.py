"""bench scenarios latency, rate and teacher: how long people wait for a reply, and how many a bot serves.

`latency`: people write one after the other at a fixed rate: "one" is answered with one message, "five" with a chain of
five; the bot sends as many messages per second in both cases. The time runs from the call that makes a person write
until the sandbox receives the first, or the fifth, message: long polling, the queue, the run and the courier are all in
it. Ada and the bare aiogram bot are measured in each round, in turn.

`rate`: all updates are there before the bot starts; each is answered with one message. The rate counts from the first
message to the last one. One process of each kind: the bot that gets updates, the scenarios, the courier. `cpu_us` is
the CPU of all processes of the system for one update, `scenarios_us` that of the process of the scenarios.

`teacher`: as `latency`, with the dialog of teachers: strangers write /start, teachers /help and /select, which shows
the list of their groups.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import count

from aiohttp import ClientSession

from bench.harness.environment import ChildProcess, Environment, environment
from bench.harness.measurements import cpu_seconds, latency_columns
from bench.harness.report import Row, Rows, log_progress, percentile, report_target
from bench.scenarios.bots import (
    ADA,
    SYSTEMS,
    BotSizes,
    answers_to,
    bench_environment,
    first_answers,
    running,
    start_sandbox,
)
from cli.command import CommandFailed
from core.directory import Directory
from core.model.people import Group, User
from core.redis.store import Store

P50_MS, P99_MS = 10.0, 30.0
SENDS = {"one": "1", "five": "5"}
"""The text of the person → the message whose arrival is measured."""

FIRST_PERSON, WARM_UP = 100_001, 10


async def measure_latency(sizes: BotSizes, rows: Rows) -> None:
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
    show_latency(waits, rows)


class LatencyPeople:
    """People who have not written yet."""

    def __init__(self) -> None:
        self._numbers = count(FIRST_PERSON)

    def next(self, many: int) -> list[int]:
        return [next(self._numbers) for _ in range(many)]


async def measure_round(
    sandbox: ClientSession,
    sizes: BotSizes,
    people: LatencyPeople,
    waits: defaultdict[tuple[str, str], list[float]],
    system: str,
) -> None:
    for written, answer in SENDS.items():
        rate = sizes.messages_per_second / int(answer)
        await answers_to(sandbox, people.next(WARM_UP), rate, written, answer)
        waits[system, written] += await answers_to(sandbox, people.next(sizes.updates), rate, written, answer)


def show_latency(waits: defaultdict[tuple[str, str], list[float]], rows: Rows) -> None:
    for (system, written), found in waits.items():
        known: Row = {"part": "latency", "system": system, "send": SENDS[written], "n": len(found)}
        rows.show({**known, **latency_columns("request", found)})
    for written, answer in SENDS.items():
        found = waits[ADA, written]
        for name, share, target in (("p50", 0.5, P50_MS), ("p99", 0.99, P99_MS)):
            value = percentile(found, share)
            report_target(f"send {answer} of a chain, {name} ms", value, f"≤ {target:g}", value <= target)


_BACKLOG_TIMEOUT = 300.0


async def measure_rate(sizes: BotSizes, rows: Rows) -> None:
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
    deadline = time.monotonic() + _BACKLOG_TIMEOUT
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


TENANT, GROUPS = "default", 20
WRITTEN = ("/start", "/help", "/select")


async def measure_teacher(sizes: BotSizes, rows: Rows) -> None:
    waits: defaultdict[str, list[float]] = defaultdict(list)
    people = LatencyPeople()
    async with environment() as env:
        page = await start_sandbox(env)
        store = await Store.open(f"{env.url}?client_name=bench")
        async with ClientSession(page, raise_for_status=True) as sandbox, running(env, ADA):
            for number in range(sizes.rounds):
                for written in WRITTEN:
                    log_progress(f"round {number + 1} of {sizes.rounds}: {written}")
                    warm, measured = people.next(WARM_UP), people.next(sizes.updates)
                    if written != "/start":
                        await employ(store, [*warm, *measured])
                    await answers_to(sandbox, warm, sizes.messages_per_second, written)
                    waits[written] += await answers_to(sandbox, measured, sizes.messages_per_second, written)
        await store.close()
    for written, found in waits.items():
        rows.show({"part": "teacher", "written": written, "n": len(found), **latency_columns("reply", found)})
    for written, found in waits.items():
        p99 = percentile(found, 0.99)
        report_target(f"reply to {written}, p99 ms", p99, f"≤ {P99_MS:g}", p99 <= P99_MS)


async def employ(store: Store, accounts: list[int]) -> None:
    """Make these accounts teachers, each with groups of its own title."""
    directory = Directory(store)
    known = [group.id for group in await directory.groups.lookup(TENANT, ["g0"]) if group]
    for number in range(0 if known else GROUPS):
        await directory.groups.create(TENANT, Group(f"g{number}", f"Group {number}"))
    for account in accounts:
        contacts = {"telegram-bot": [str(account)]}
        await directory.users.create(TENANT, User(account, f"Teacher {account}", role="trainer", contacts=contacts))
        for number in range(GROUPS):
            await directory.ownerships.own(TENANT, account, "group", f"g{number}")
