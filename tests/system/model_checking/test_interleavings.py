"""All orders of several scripts on one task or one delivery, from every state it can be in.

A script is one atomic step of the server, so whatever workers, producers and operators do at the same time is some
order of scripts. After each step the audit is clean, the lane moves, the task is in one place and a stale token changed
nothing; and from every state reached a plain worker completes all work.

`./ada test` tries each script from every state, `./ada prove interleavings` three scripts in every order, and two on
Debian's Redis.
"""

from collections.abc import AsyncIterator

import pytest

from tests.support.servers import Server
from tests.system.model_checking.deliveries import Deliveries
from tests.system.model_checking.delivery_operations import DeliveryVariant
from tests.system.model_checking.explore import Explorer
from tests.system.model_checking.many_shards import ManyShards
from tests.system.model_checking.questions import Needed, Placed, Reminded
from tests.system.model_checking.task_operations import STARTS, TubeVariant, start_operations
from tests.system.model_checking.tasks import Tasks

TUBE_VARIANTS = {
    "a lane that keeps its place": TubeVariant(),
    "a lane that parks, of two tenants": TubeVariant(parks=True, tenants=True),
    "no lane": TubeVariant(lane=""),
    "a lane, with expiry and ends that are kept": TubeVariant(expires=True, keeps=True),
}

every_tube_variant = pytest.mark.parametrize("variant", TUBE_VARIANTS.values(), ids=TUBE_VARIANTS)

DELIVERY_VARIANTS = {
    "free": DeliveryVariant(),
    "a lane, with expiry": DeliveryVariant(lane="x", expires=True),
    "with a question and reminders": Reminded(),
    "with places and a waiting list": Placed(),
    "with a number of people that are needed": Needed(),
}
every_delivery_variant = pytest.mark.parametrize("variant", DELIVERY_VARIANTS.values(), ids=DELIVERY_VARIANTS)


@pytest.fixture
async def shards(server: Server) -> AsyncIterator[ManyShards]:
    opened = await ManyShards.open(server)
    yield opened
    await opened.close()


async def explored(shards: ManyShards, variant: TubeVariant, depth: int) -> Explorer:
    explorer = Explorer(shards, Tasks(variant))
    starts = await explorer.follow(STARTS, start_operations(variant), variant.options())
    await explorer.explore(list(starts.values()), depth)
    return explorer


async def explored_delivery(shards: ManyShards, variant: DeliveryVariant, depth: int) -> Explorer:
    explorer = Explorer(shards, Deliveries(variant))
    starts = await explorer.follow(variant.starts(), variant.start_operations(), {})
    await explorer.explore(list(starts.values()), depth)
    return explorer


@every_tube_variant
async def test_no_order_of_scripts_leaves_a_task_stuck(
    shards: ManyShards, variant: TubeVariant, long_form: bool
) -> None:
    depth, least = (3, 10_000) if long_form else (1, 300)
    assert (await explored(shards, variant, depth)).steps > least, "this many scripts were really tried"


@pytest.mark.long
@every_tube_variant
@pytest.mark.parametrize("server", ["redis"], indirect=True)
async def test_no_order_of_scripts_leaves_a_task_stuck_on_debians_redis(
    shards: ManyShards, variant: TubeVariant, long_form: bool
) -> None:
    depth, least = (2, 2_000) if long_form else (1, 300)
    assert (await explored(shards, variant, depth)).steps > least, "this many scripts were really tried"


@every_delivery_variant
async def test_no_order_of_scripts_leaves_a_delivery_stuck(
    shards: ManyShards, variant: DeliveryVariant, long_form: bool
) -> None:
    depth, least = (3, 2_000) if long_form else (1, 80)
    assert (await explored_delivery(shards, variant, depth)).steps > least, "this many scripts were really tried"
