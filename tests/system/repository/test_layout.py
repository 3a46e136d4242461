"""A server has data of one layout; a version of Ada with another layout refuses to use it."""

from pathlib import Path

import pytest
from redis.asyncio import Redis

from cli.main import main
from core.errors import LayoutUnknown, ShardsDiffer
from core.queue import connect
from core.redis.keys import LAYOUT, layout_of_shards
from core.redis.server_checks import sign_layout
from core.redis.store import Store
from tests.support.servers import Server


async def start(server: Server, shards: int = 1) -> None:
    store = await Store.open(server.url, shards)
    try:
        await sign_layout(store)
    finally:
        await store.close()


async def test_the_first_start_signs_every_shard_and_the_next_one_agrees(server: Server, client: Redis) -> None:
    for _ in range(2):
        await start(server, 2)
    assert [await client.get(f"layout:{{{shard}}}") for shard in range(2)] == [str(layout_of_shards(2))] * 2


@pytest.mark.parametrize("found", [str(LAYOUT), str(LAYOUT + 2), "nonsense"])
async def test_data_of_another_layout_is_refused_and_unchanged(server: Server, client: Redis, found: str) -> None:
    await client.set("layout:{1}", found)
    with pytest.raises(LayoutUnknown, match="LAYOUT_UNKNOWN"):
        await start(server, 2)
    assert server.all_keys() == ["layout:{1}"]
    assert await client.get("layout:{1}") == found


async def test_another_number_of_shards_is_refused_with_what_to_do(server: Server) -> None:
    await start(server, 2)
    before = server.all_keys()
    for shards in (1, 4):
        with pytest.raises(
            ShardsDiffer, match=rf"SHARDS_DIFFER: .* over 2 shards, ADA_SHARDS is {shards}. Set ADA_SHARDS=2"
        ):
            await start(server, shards)
    assert server.all_keys() == before


async def test_a_full_server_is_signed_later(server: Server, client: Redis) -> None:
    await start(server)  # a full server takes no functions
    server.empty()
    await client.set("filling", "x" * 100_000)
    await client.config_set("maxmemory", 1)
    await start(server)
    assert server.all_keys() == ["filling"]


async def test_an_application_refuses_too(server: Server, client: Redis) -> None:
    await client.set("layout:{0}", "99")
    with pytest.raises(LayoutUnknown):
        async with connect(server.url):
            pytest.fail("connected to data of an unknown layout")


@pytest.mark.parametrize(("key", "found"), [("layout:{0}", "LAYOUT_UNKNOWN"), ("shards", "SHARDS_DIFFER")])
@pytest.mark.parametrize(("verb", "code"), [(["queue", "stats"], 2), (["audit"], 2), (["doctor"], 1)])
def test_commands_refuse_with_a_message(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    verb: list[str], code: int, key: str, found: str,
) -> None:  # fmt: skip
    monkeypatch.setenv("ADA_REDIS_URL", server.url)
    monkeypatch.setenv("ADA_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    import redis

    with redis.Redis.from_url(server.url) as client:
        client.set(key, "99")
    assert main(verb) == code
    output = capsys.readouterr()
    assert found in output.out + output.err
