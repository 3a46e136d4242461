"""The verb audit: proves the invariants on the running server, names what breaks them, and mends what it safely can."""

import asyncio
import json
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from dataclasses import asdict

from cli.command import FAILURE, SUCCESS, Command
from cli.processes.startup import redis_url
from cli.settings.settings import Configuration, load
from core.audit.audit import UNSEEN, Audit, Summary
from core.audit.invariant import Violation
from core.redis.server_checks import check_layout
from core.redis.store import Store

# Mending one thing may bring another to light: so often it is looked again.
PASSES = 5


def declare(parser: ArgumentParser) -> None:
    parser.add_argument("--repair", action="store_true", help="mend what can be mended safely, then look again")


def run(arguments: Namespace) -> int:
    return asyncio.run(examine(load(), arguments))


async def examine(configuration: Configuration, arguments: Namespace) -> int:
    store = await Store.open(redis_url(configuration.settings), configuration.settings.shards)
    try:
        await check_layout(store)
        if arguments.repair:
            await repair(store, arguments.json)
        return await report(store, arguments.json)
    finally:
        await store.close()


async def repair(store: Store, as_json: bool) -> int:
    """Look and mend until there is nothing that can be; answers how much was mended."""
    total = 0
    for _ in range(PASSES):
        mended = 0
        audit = Audit(store)
        async for violation in audit.find():
            if done := await audit.mend(violation):
                mended += 1
                say_mended(violation, done, as_json)
        total += mended
        if not mended:
            break
    return total


def say_mended(violation: Violation, done: list[str], as_json: bool) -> None:
    if as_json:
        print(json.dumps(row(violation) | {"mended": done}, ensure_ascii=False), flush=True)
    else:
        print(f"mended  {violation}\n        {'; '.join(done)}", flush=True)


async def report(store: Store, as_json: bool) -> int:
    """What is wrong, each as it is found, and at the end what was looked at."""
    audit, count = Audit(store), 0
    async for violation in audit.find():
        count += 1
        say(violation, as_json)
    if as_json:
        print(json.dumps({"violations": count, "seen": asdict(audit.summary), "unseen": UNSEEN}, ensure_ascii=False))
    else:
        print(summed_up(audit.summary, count))
    return FAILURE if count else SUCCESS


def say(violation: Violation, as_json: bool) -> None:
    if as_json:
        print(json.dumps(row(violation), ensure_ascii=False), flush=True)
        return
    cure = "--repair mends it" if violation.mend else f"not mended: {violation.why}"
    print(f"BROKEN  {violation}\n        {cure}", flush=True)


def row(violation: Violation) -> dict[str, object]:
    """For programs. `mend`: the script that `--repair` runs, or null and `why` not."""
    mend = violation.mend.script if violation.mend else None
    facts = {"rule": violation.rule, "key": violation.key, "found": violation.found, "wanted": violation.wanted}
    return {**facts, "mend": mend, "why": violation.why if mend is None else ""}


def summed_up(seen: Summary, count: int) -> str:
    lines = [
        f"{'sound' if not count else f'{count} broken'}: {seen.keys} keys, {seen.tasks} tasks, {seen.lanes} lanes, "
        f"{seen.deliveries} deliveries, {seen.events} events"
    ]
    lines += [
        f"        {tube} moved: its count is exact but for {flow} tasks" for tube, flow in seen.moving.items() if flow
    ]
    if seen.unread:
        lines.append(
            f"        {seen.unread} deliveries moved whenever they were looked at: their outcomes were not judged"
        )
    return "\n".join([*lines, *(f"        {rule} is not seen here: {why}" for rule, why in UNSEEN.items())])


COMMANDS: Mapping[str, Command] = {"audit": Command(declare, run)}
