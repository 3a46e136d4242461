"""bench scenarios teacher: from an update to the reply of the dialog of teachers, at the sandbox's Bot API.

People write one after the other at a fixed rate: strangers write /start, teachers /help and /select, which shows the
list of their groups. The time runs from the call that makes a person write until the sandbox receives the reply: long
polling, the queue, the run and the courier are all in it.
"""

from collections import defaultdict

from aiohttp import ClientSession

from bench.harness.environment import environment
from bench.harness.measurements import latency_columns
from bench.harness.report import Rows, log_progress, percentile, report_target
from bench.harness.writing import answers_to
from bench.scenarios.latency import WARM_UP, LatencyPeople
from bench.scenarios.sizes import Sizes
from bench.scenarios.systems import ADA, running, start_sandbox
from core.directory import Directory
from core.model.people import Group, User
from core.redis.store import Store

P99_MS = 30.0
TENANT, GROUPS = "default", 20
WRITTEN = ("/start", "/help", "/select")


async def measure(sizes: Sizes, rows: Rows) -> None:
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
