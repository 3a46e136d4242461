"""A sample of the mutants of the functions: the model check must notice each. `./ada prove mutation` runs all."""

import re
from pathlib import Path

import pytest
from redis.asyncio import Redis

from core.errors import StoreError
from core.redis import library
from tests.support.servers import Server
from tests.system.model_checking.explore import Explorer
from tests.system.model_checking.many_shards import ManyShards
from tests.system.model_checking.mutants import CALL, LUA, Mutant, mutants, mutated
from tests.system.model_checking.task_operations import STARTS, TubeVariant, start_operations
from tests.system.model_checking.tasks import Tasks

SAMPLE = (
    ("queue/modules/claiming.lua", "redis_call('ZADD', Key.lease(), unpack(page.leases))"),
    ("queue/modules/lane.lua", "redis_call('ZPOPMIN', Key.lane(tube, lane))"),
    ("queue/modules/task.lua", "redis_call('ZADD', Key.due(), due, id)"),
    ("queue/modules/task.lua", "redis_call('HSET', Key.progress(id), 'allowed', most)"),
    ("queue/functions/release.lua", "redis_call('HEXISTS', Key.progress(id), 'cancel')"),
    ("queue/functions/put.lua", "redis_call('ZADD', Key.puts(client), call, call)"),
)
"""Calls on which a lane, a lease, a due time, a cancel or a repeated put depends."""

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
async def test_the_model_check_notices_a_missing_call(server: Server, file: str, text: str, tmp_path: Path) -> None:
    with mutated(named(file, text), tmp_path / "lua"), pytest.raises((AssertionError, StoreError)):
        await every_single_step(server)


async def every_single_step(server: Server) -> None:
    server.empty()
    shards = await ManyShards.open(server)
    try:
        explorer = Explorer(shards, Tasks(TubeVariant()))
        starts = await explorer.follow(STARTS, start_operations(TubeVariant()), {})
        await explorer.explore(list(starts.values()), 1)
    finally:
        await shards.close()


def test_there_is_a_mutant_of_every_call() -> None:
    bodies = (re.sub(r"^\s*--.*$", "", path.read_text(), flags=re.MULTILINE) for path in LUA.glob("**/*.lua"))
    assert len(mutants()) == sum(len(CALL.findall(body)) for body in bodies)


async def test_every_mutant_is_lua_that_the_server_understands(client: Redis) -> None:
    """A syntax error would be noticed by every test and prove nothing."""
    bodies = [mutant.body() for mutant in mutants()]
    assert await client.eval(_COMPILE, 0, *bodies) == []


def test_every_mutant_is_in_the_library() -> None:
    places = set(library.current().origin)
    assert [mutant.name for mutant in mutants() if mutant.place not in places] == []
