"""What a job does outside while its primary may be lost, with durability `replica`."""

from collections.abc import AsyncIterator
from typing import cast

import pytest

from core.errors import StoreError
from core.jobs import Actor
from core.model.durability import Durability
from core.redis.store import Store
from jobs import Iteration
from tests.jobs.conftest import ANNA, Playground
from tests.support.replica_set import ReplicaSet
from tests.support.servers import Server
from tests.support.stack import Stack
from tests.support.waiting import stays, until


@pytest.fixture
async def replicated(replica_set: ReplicaSet) -> AsyncIterator[Playground]:
    store = await Store.open(replica_set.url, durability=Durability.REPLICA)
    opened = Playground(Stack(store, cast(Server, replica_set.primary)))
    await opened.jobs.kinds.publish(opened.registry.schedules)
    yield opened
    await opened.kill()
    await opened.jobs.stop(ANNA, Actor.ADMIN)
    await store.close()


async def test_an_effect_begins_when_a_replica_knows_of_it(replicated: Playground, replica_set: ReplicaSet) -> None:
    """A promoted replica that did not know of it would do it again, with another idempotency key."""
    bought: list[str] = []
    is_held: list[bool] = []

    async def buy(*, idempotency_key: str = "") -> None:
        bought.append(idempotency_key)

    async def run(iteration: Iteration) -> None:
        if not is_held:
            replica_set.hold_replication()
            is_held.append(True)
        await iteration.effect("buy", buy)

    replicated.run = run
    replicas = replica_set.replicas
    replicated.start_worker()
    await replicated.jobs.start(ANNA)
    await until(lambda: is_held)
    await stays(lambda: not bought, during=2.5)
    for replica in replicas:
        replica.resume()
    await until(lambda: len(bought) == 1)
    await replicated.iterations(1)
    assert len(bought) == 1


async def test_a_signal_that_is_accepted_is_on_a_replica(replicated: Playground, replica_set: ReplicaSet) -> None:
    await replicated.jobs.start(ANNA)
    replica_set.hold_replication()
    with pytest.raises(StoreError, match="replica"):
        await replicated.jobs.signal(ANNA, "go")
    replica_set.repair()
