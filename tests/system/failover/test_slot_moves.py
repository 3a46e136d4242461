"""Slots move under load: nothing is lost, done twice or reordered, and no call fails."""

import asyncio
from collections.abc import AsyncIterator
from typing import cast

import pytest

from core.model.durability import Durability
from core.redis.server_checks import register, sign_layout
from core.redis.store import Store
from tests.support.audited import violations_in
from tests.support.cluster import Cluster
from tests.support.servers import Server
from tests.support.stack import FakeCourier, Stack, people
from tests.system.failover.slot_mover import SlotMover
from tests.system.failover.task_load import TaskLoad

SHARDS = 16
MOVES = 4 * SHARDS
RATE = 200.0
"""Tasks a second."""
PATIENCE = 5.0
"""Slots move for longer. No call may wait so long."""


@pytest.fixture
async def stack(cluster: Cluster, request: pytest.FixtureRequest) -> AsyncIterator[Stack]:
    store = await Store.open(cluster.url, SHARDS, patience=PATIENCE, durability=request.param)
    await sign_layout(store)
    await register(store)
    opened = Stack(store, cast(Server, cluster.nodes[0]))
    yield opened
    await opened.close()


@pytest.mark.parametrize("stack", [Durability.LOCAL, Durability.REPLICA], indirect=True)
async def test_slots_that_move_under_load_lose_double_and_reorder_nothing(stack: Stack, cluster: Cluster) -> None:
    """No call fails: the load and the deliveries would end with its error."""
    courier, mover, load = FakeCourier(), SlotMover(cluster, SHARDS, seed=1), TaskLoad(stack.store, RATE)
    await stack.courier(courier)
    moving = asyncio.create_task(mover.move(MOVES))
    loading = asyncio.create_task(load.run(moving.done))
    keys = []
    while not moving.done():
        keys.append((await stack.deliver(*people(5))).key)
        await stack.finished(keys[-1])
    await moving
    await loading
    assert load.findings == []
    assert len(courier.attempted) == 5 * len(keys)
    assert await violations_in(stack.store) == []
