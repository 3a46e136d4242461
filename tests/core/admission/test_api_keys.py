"""API keys as several processes of one installation see them."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from core.admission.api_keys import SCOPES, ApiKeys
from core.errors import Invalid, NotFound
from core.redis.keys import KEYS
from core.redis.store import Store
from tests.support.stack import Stack
from tests.support.waiting import until


@pytest.fixture
async def second_process(stack: Stack) -> AsyncIterator[ApiKeys]:
    store = await Store.open(stack.server.url)
    yield ApiKeys(store)
    await store.close()


async def test_a_revoked_key_is_unknown_in_a_second_process_that_has_just_used_it(
    stack: Stack, second_process: ApiKeys
) -> None:
    keys = ApiKeys(stack.store)
    key, secret = await keys.create("one", ["send"])
    _, other_secret = await keys.create("other", ["send"])
    assert await second_process.find(secret) == key
    assert await keys.find(secret) == key
    await keys.revoke(key.id)
    assert await keys.find(secret) is None
    await until(lambda: is_unknown(second_process, secret))
    assert await second_process.find(other_secret)


async def is_unknown(keys: ApiKeys, secret: str) -> bool:
    return await keys.find(secret) is None


async def test_a_new_key_is_known_in_a_second_process_that_has_just_refused_it(
    stack: Stack, second_process: ApiKeys
) -> None:
    secret = "chosen by the operator"
    assert await second_process.find(secret) is None
    await ApiKeys(stack.store).create("one", ["send"], secret=secret)
    assert await until(lambda: second_process.find(secret))


async def test_a_key_is_revoked_in_one_process_and_no_other_key_with_it(stack: Stack, second_process: ApiKeys) -> None:
    keys = ApiKeys(stack.store)
    made = [(await keys.create(name, ["read"], tenant))[0] for name in "ab" for tenant in ("one", "two")]
    await second_process.revoke(made[0].id)
    assert {key.id for key in await keys.list()} == {key.id for key in made[1:]}
    with pytest.raises(NotFound):
        await keys.revoke(made[0].id)


async def test_the_name_of_a_key_has_at_most_128_characters(stack: Stack) -> None:
    keys = ApiKeys(stack.store)
    assert (await keys.create("n" * 128, ["read"]))[0].name == "n" * 128
    with pytest.raises(Invalid, match="128"):
        await keys.create("n" * 129, ["read"])


async def test_a_revoked_key_is_unknown_at_once_in_the_process_that_revokes_it(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.admission.api_keys._CACHED_SECONDS", 60)
    keys = ApiKeys(stack.store)
    key, secret = await keys.create("one", ["send"])
    assert await keys.find(secret) == key
    await keys.revoke(key.id)
    assert await keys.find(secret) is None


async def test_a_new_key_is_known_at_once_in_the_process_that_makes_it(stack: Stack) -> None:
    keys = ApiKeys(stack.store)
    assert await keys.find("chosen by the operator") is None
    made, _ = await keys.create("one", ["send"], secret="chosen by the operator")
    assert await keys.find("chosen by the operator") == made


async def test_the_first_key_is_made_once_however_often_a_process_starts(stack: Stack) -> None:
    made = await ApiKeys(stack.store).ensure("ada_first")
    assert made
    assert await ApiKeys(stack.store).ensure("ada_first") == made
    assert (await ApiKeys(stack.store).list(), made.scopes) == ([made], SCOPES - {"scim"})


async def test_a_first_key_that_was_revoked_stays_so_when_a_process_starts(stack: Stack) -> None:
    keys = ApiKeys(stack.store)
    first = await keys.ensure("ada_leaked")
    assert first
    await keys.revoke(first.id)
    assert await ApiKeys(stack.store).ensure("ada_leaked") is None
    assert (await ApiKeys(stack.store).find("ada_leaked"), await keys.list()) == (None, [])
    (left,) = [await stack.redis.hgetall(key) for key in await stack.redis.keys("access:{0}:*")]
    assert list(left) == ["revoked"]


async def test_keys_are_listed_from_the_oldest_to_the_newest_in_whatever_order_they_are_stored(stack: Stack) -> None:
    keys = ApiKeys(stack.store)
    made = [(await keys.create(f"key {number}", ["read"]))[0] for number in range(12)]
    index = KEYS["accesses"].at(0)
    oldest = await stack.redis.hget(index, made[0].id)
    await stack.redis.hdel(index, made[0].id)
    await stack.redis.hset(index, made[0].id, oldest)
    assert await keys.list() == made


async def test_the_list_has_the_last_use_of_each_key_also_by_another_process(
    stack: Stack, second_process: ApiKeys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.admission.api_keys._NOTED_SECONDS", 0)
    keys, before = ApiKeys(stack.store), datetime.now(UTC) - timedelta(seconds=1)
    used, secret = await keys.create("used", ["read"])
    unused, _ = await keys.create("unused", ["read"])
    assert [key.used_at for key in await keys.list()] == [None, None]
    await second_process.use(secret)
    first, second = await keys.list()
    assert (first.id, second.id, second.used_at) == (used.id, unused.id, None)
    assert first.used_at is not None
    assert before < first.used_at < datetime.now(UTC) + timedelta(seconds=1)
    assert first.as_json()["used_at"] == first.used_at.isoformat()
    await keys.find(secret)
    assert (await keys.list())[0].used_at == first.used_at, "a lookup is no use"
    await until(lambda: is_used_later(second_process, secret, first.used_at))
    await keys.revoke(used.id)
    assert await stack.redis.hgetall(KEYS["uses"].at(0)) == {}


async def is_used_later(keys: ApiKeys, secret: str, at: datetime | None) -> bool:
    await keys.use(secret)
    newest = (await keys.list())[0].used_at
    return newest is not None and at is not None and newest > at


async def test_a_use_is_noted_once_a_minute(stack: Stack) -> None:
    keys = ApiKeys(stack.store)
    _, secret = await keys.create("one", ["read"])
    await keys.use(secret)
    (first,) = await keys.list()
    for _ in range(5):
        await keys.use(secret)
    assert await keys.list() == [first]
    assert await keys.use("no such secret") is None
