"""A sample of the mutation of the scripts, of which tests/model_checking/mutate.py runs all: what is missing is seen at
once.
"""

import re
from pathlib import Path

import pytest
from redis.asyncio import Redis

from core.errors import StoreError
from tests.model_checking.explore import Explorer
from tests.model_checking.many_shards import Ground
from tests.model_checking.mutants import CALL, LUA, Mutant, mutants, mutated
from tests.model_checking.task_moves import STARTS, Ways, start_moves
from tests.model_checking.tasks import Tasks
from tests.support.servers import Server

pytestmark = pytest.mark.row("K-17", "K-30", "K-44")

SAMPLE = (
    ("queue/claim.lua", "redis.call(unpack(leases))"),
    ("shared/ready.lua", "redis.call('ZPOPMIN', lane_key(tube, lane))"),
    ("shared/ready.lua", "redis.call('ZADD', due_key(), due, id)"),
    ("shared/due.lua", "redis.call('HMGET', task_key(id), 'attempts', 'max', 'cancel')"),
    ("queue/release.lua", "redis.call('HEXISTS', task_key(id), 'cancel')"),
    ("queue/put.lua", "redis.call('ZADD', puts_key(client), call, call)"),
)
"""Of each file one that a lane, a lease, a due moment, a cancel or a repeat hangs on."""

_COMPILE = """
local bad = {}
for n, text in ipairs(ARGV) do
  local made, why = loadstring(text)
  if not made then bad[#bad + 1] = n .. ': ' .. why end
end
return bad
"""


def named(file: str, text: str) -> Mutant:
    (found,) = [mutant for mutant in mutants() if (mutant.file, mutant.text) == (file, text)]
    return found


@pytest.mark.parametrize(("file", "text"), SAMPLE, ids=[f"{file} {text[12:30]}" for file, text in SAMPLE])
async def test_every_order_of_scripts_shows_a_call_that_is_missing(
    server: Server, file: str, text: str, tmp_path: Path
) -> None:
    with mutated(named(file, text), tmp_path / "lua"), pytest.raises((AssertionError, StoreError)):
        await every_single_step(server)
    await every_single_step(server)


async def every_single_step(server: Server) -> None:
    server.empty()
    ground = await Ground.open(server)
    try:
        explorer = Explorer(ground, Tasks(Ways()))
        starts = await explorer.follow(STARTS, start_moves(Ways()), {})
        await explorer.explore(list(starts.values()), 1)
    finally:
        await ground.close()


def test_there_is_a_mutant_of_every_call() -> None:
    bodies = (re.sub(r"^\s*--.*$", "", path.read_text(), flags=re.MULTILINE) for path in LUA.glob("**/*.lua"))
    assert len(mutants()) == sum(len(CALL.findall(body)) for body in bodies)


async def test_every_mutant_is_lua_that_the_server_understands(client: Redis) -> None:
    """Or it would be found by its syntax and prove nothing."""
    bodies = [mutant.body() for mutant in mutants()]
    assert await client.eval(_COMPILE, 0, *bodies) == []


def test_every_mutant_is_in_a_script() -> None:
    assert [mutant.name for mutant in mutants() if not mutant.scripts()] == []
