"""The verb audit: proves the invariants on the running server, prints violations, repairs what is safe to repair."""

import asyncio
import json
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict

from cli.command import FAILURE, SUCCESS, Command
from cli.services.sign_in import known_keys
from cli.services.store import redis_url
from cli.settings.settings import Configuration, Settings, load
from core.audit import UNSEEN, Audit, Summary, Violation
from core.audit.invariants.directory import damaged_tokens, lost_keys
from core.errors import StoreError
from core.model.text.characters import counted
from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.server_checks import check_layout
from core.redis.store import Store
from providers.sign_in import Vault
from providers.sign_in.stored import keys_by_shard, tokens_key, unreadable

# A repair may reveal another violation, so the audit is repeated, at most this often.
PASSES = 5
PROGRESS_INTERVAL = 3.0
"""Seconds between two lines of progress."""


def declare(parser: ArgumentParser) -> None:
    parser.add_argument("--repair", action="store_true", help="repair what can be repaired safely, then check again")


def run(arguments: Namespace) -> int:
    return asyncio.run(examine(load(), arguments))


async def examine(configuration: Configuration, arguments: Namespace) -> int:
    store = await Store.open(redis_url(configuration.settings), configuration.settings.shards)
    try:
        await check_layout(store)
        if arguments.repair:
            await repair(store, arguments.json)
        return await report(store, configuration.settings, arguments.json)
    finally:
        await store.close()


async def repair(store: Store, as_json: bool) -> int:
    """Check and repair until nothing can be repaired any more; returns the number of repairs."""
    total = 0
    for _ in range(PASSES):
        repaired = 0
        audit = Audit(store)
        async with shown_progress(audit):
            async for violation in audit.find():
                if changes := await audit.repair(violation):
                    repaired += 1
                    print_repair(violation, changes, as_json)
        total += repaired
        if not repaired:
            break
    return total


def print_repair(violation: Violation, changes: list[str], as_json: bool) -> None:
    if as_json:
        print(json.dumps(row(violation) | {"changes": changes}, ensure_ascii=False), flush=True)
    else:
        print(f"REPAIRED  {violation}\n          {'; '.join(changes)}", flush=True)


async def report(store: Store, settings: Settings, as_json: bool) -> int:
    """Print each violation when it is found, and a summary of what was read at the end."""
    audit, count = Audit(store), 0
    async with shown_progress(audit):
        async for violation in audit.find():
            count += 1
            print_violation(violation, as_json)
        async for violation in unreadable_tokens(store, settings):
            count += 1
            print_violation(violation, as_json)
    if as_json:
        print(json.dumps({"violations": count, "seen": asdict(audit.summary), "unseen": UNSEEN}, ensure_ascii=False))
    else:
        print(summary_text(audit.summary, count))
    return FAILURE if count else SUCCESS


@asynccontextmanager
async def shown_progress(audit: Audit, interval: float = PROGRESS_INTERVAL) -> AsyncIterator[None]:
    """Print on stderr how far the audit has come, at its start and every few seconds, also where no terminal is."""
    began = time.monotonic()
    await print_progress(audit, began)
    printing = asyncio.create_task(print_often(audit, began, interval))
    try:
        yield
    finally:
        await cancel_and_wait(printing)


async def print_often(audit: Audit, began: float, interval: float) -> None:
    while True:
        await asyncio.sleep(interval)
        with suppress(StoreError):  # the audit itself meets the same fault
            await print_progress(audit, began)


async def print_progress(audit: Audit, began: float) -> None:
    done = await audit.progress()
    line = (
        f"audit: {done.keys} of {counted(done.all_keys, 'key')}, {counted(done.tasks, 'task')}, "
        f"{counted(done.deliveries, 'delivery', 'deliveries')} "
        f"after {time.monotonic() - began:.0f} s"
    )
    print(line, file=sys.stderr, flush=True)


async def unreadable_tokens(store: Store, settings: Settings) -> AsyncIterator[Violation]:
    """Yield the violations of I25; none where no sign-in is set up."""
    keys = known_keys(settings)
    if not keys and settings.sign_in is None:
        return
    vault = Vault(keys) if keys else None
    known, is_lost = set(vault.fingerprints if vault else ()), False
    for key in keys_by_shard(store):
        for violation in lost_keys(key, sorted(set(await store.command("SMEMBERS", key)) - known)):
            is_lost = True
            yield violation
    if vault and not is_lost:
        async for tenant, user, service in unreadable(store, vault):
            yield damaged_tokens(tokens_key(store, tenant, user), service)


def print_violation(violation: Violation, as_json: bool) -> None:
    if as_json:
        print(json.dumps(row(violation), ensure_ascii=False), flush=True)
        return
    remedy = "--repair repairs it" if violation.repair else f"no safe repair: {violation.why}"
    print(f"VIOLATED  {violation}\n          {remedy}", flush=True)


def row(violation: Violation) -> dict[str, object]:
    """Return a JSON row. `repair`: the script that `--repair` runs; if null, `why` is the reason."""
    repair = violation.repair.script if violation.repair else None
    facts = {"rule": violation.rule, "key": violation.key, "found": violation.found, "wanted": violation.wanted}
    return {**facts, "repair": repair, "why": violation.why if repair is None else ""}


def summary_text(seen: Summary, count: int) -> str:
    parts = [
        counted(seen.keys, "key"),
        counted(seen.tasks, "task"),
        counted(seen.lanes, "lane"),
        counted(seen.deliveries, "delivery", "deliveries"),
        counted(seen.events, "event"),
    ]
    lines = [f"{counted(count, 'violation') if count else 'sound'}: {', '.join(parts)}"]
    lines += [
        f"        {tube} changed meanwhile, the count may be off by {counted(flow, 'task')}"
        for tube, flow in seen.moving.items()
        if flow
    ]
    if seen.unread:
        unread = counted(seen.unread, "delivery", "deliveries")
        lines.append(f"        {unread} changed during every read, so the outcomes were not checked")
    return "\n".join([*lines, *(f"        {rule} is not checked here: {why}" for rule, why in UNSEEN.items())])


COMMANDS: Mapping[str, Command] = {"audit": Command(declare, run)}
