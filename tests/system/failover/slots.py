"""Slots move while messages are sent and tasks are done: nothing is lost, doubled or reordered, and no call fails."""

import asyncio
from functools import partial
from pathlib import Path

from core.redis.store import Store
from sandbox.sandbox import Sandbox
from tests.support.cluster import Cluster
from tests.system.failover.failover import Failover, Outcome, Plan
from tests.system.failover.servers_under_blows import SHARDS, ServersUnderBlows
from tests.system.failover.slot_moves import SlotMoves
from tests.system.failover.task_load import TaskLoad
from tests.system.soak.nemesis import Log

CHANNELS = ("telegram", "sms")
SECONDS = 300.0
"""In these 5,000 messages are accepted on each channel."""

_TASKS = 100_000
_RATE = 500.0


async def move_slots(cluster: Cluster, sandbox: Sandbox, directory: Path, plan: Plan, log: Log) -> Outcome:
    """Move slots, send and do tasks."""
    moves = partial(SlotMoves, cluster, SHARDS)
    servers = ServersUnderBlows(cluster.url, cluster.nodes[0], SHARDS, 3, moves)
    store = await Store.open(cluster.url, SHARDS)
    load = TaskLoad(store, _RATE)
    sending = Failover(servers, sandbox, directory, plan, log).run()
    outcome, _ = await asyncio.gather(sending, load.run(lambda: load.put >= _TASKS))
    await store.close()
    log(f"{load.put} tasks")
    outcome.findings += [*load.findings, *(f"refused: {code}" for code in outcome.refused)]
    return outcome
