"""All orders of two and of three scripts on one task or one delivery, from every state it can be in.

A script is one step of the server, so whatever workers, producers and operators do at once is some order of scripts.
Every order is tried: after each step the audit is clean, the lane moves, the task is in one place and an old token has
changed nothing; and from wherever it led a plain worker comes to the end of everything.
"""

from collections.abc import AsyncIterator

import pytest

from tests.model_checking import delivery_moves
from tests.model_checking.deliveries import Deliveries
from tests.model_checking.delivery_moves import Terms
from tests.model_checking.explore import Explorer
from tests.model_checking.many_shards import Ground
from tests.model_checking.task_moves import STARTS, Ways, start_moves
from tests.model_checking.tasks import Tasks
from tests.support.servers import Server

pytestmark = [pytest.mark.row("K-12", "K-15", "K-17", "K-30", "K-44"), pytest.mark.timeout(300)]

WAYS = {
    "a lane that keeps its place": Ways(),
    "a lane that parks, of two tenants": Ways(parks=True, tenants=True),
    "no lane": Ways(lane=""),
    "a lane, with expiry and ends that are kept": Ways(expires=True, keeps=True),
}
every_way = pytest.mark.parametrize("ways", WAYS.values(), ids=WAYS)

TERMS = {"free": Terms(), "a lane, with expiry": Terms(lane="x", expires=True)}
every_term = pytest.mark.parametrize("terms", TERMS.values(), ids=TERMS)


@pytest.fixture
async def ground(server: Server) -> AsyncIterator[Ground]:
    opened = await Ground.open(server)
    yield opened
    await opened.close()


async def explored(ground: Ground, ways: Ways, depth: int) -> Explorer:
    explorer = Explorer(ground, Tasks(ways))
    starts = await explorer.follow(STARTS, start_moves(ways), ways.options())
    await explorer.explore(list(starts.values()), depth)
    return explorer


async def delivered(ground: Ground, terms: Terms, depth: int) -> Explorer:
    explorer = Explorer(ground, Deliveries(terms))
    starts = await explorer.follow(delivery_moves.STARTS, delivery_moves.start_moves(terms), {})
    await explorer.explore(list(starts.values()), depth)
    return explorer


@every_way
async def test_no_single_script_in_any_state_leaves_a_task_stuck(ground: Ground, ways: Ways) -> None:
    assert (await explored(ground, ways, 1)).steps > 300, "so many scripts were really tried"


@every_way
async def test_no_three_scripts_in_any_order_leave_a_task_stuck(ground: Ground, ways: Ways) -> None:
    explorer = await explored(ground, ways, 3)
    assert explorer.steps > 10_000, "so many scripts were really tried"


@every_way
@pytest.mark.parametrize("server", ["redis"], indirect=True)
async def test_no_two_scripts_in_any_order_leave_a_task_stuck_on_debians_redis(ground: Ground, ways: Ways) -> None:
    explorer = await explored(ground, ways, 2)
    assert explorer.steps > 2_000, "so many scripts were really tried"


@pytest.mark.row("D-42", "D-40")
@every_term
async def test_no_single_script_in_any_state_leaves_a_delivery_stuck(ground: Ground, terms: Terms) -> None:
    assert (await delivered(ground, terms, 1)).steps > 200, "so many scripts were really tried"


@pytest.mark.row("D-42", "D-40")
@every_term
async def test_no_three_scripts_in_any_order_leave_a_delivery_stuck(ground: Ground, terms: Terms) -> None:
    assert (await delivered(ground, terms, 3)).steps > 10_000, "so many scripts were really tried"
