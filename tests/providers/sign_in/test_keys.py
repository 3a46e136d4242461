"""The key of the tokens: foreign keys, a change of the key, tokens that no key reads, and the reset."""

from collections.abc import Sequence
from typing import Any

import pytest

from core.redis.connection import Word
from core.redis.store import Argument, Store
from providers.sign_in import KeyLost, SignInExpired, Tokens, Vault
from providers.sign_in.stored import (
    Undecryptable,
    keys_by_shard,
    keys_in_use,
    new_key,
    people_with_tokens,
    reset,
    services_of,
    shard_of,
    tokens_key,
    unreadable,
)
from tests.support.servers import Server

ANNA = ("university", "vacancies", "1")
OLD, NEW = new_key(), new_key()
TOKEN: dict[str, Any] = {"access_token": "x"}


@pytest.fixture(params=[1, 16])
def shards(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
async def store(server: Server, shards: int) -> Any:
    store = await Store.open(server.url, shards)
    yield store
    await store.close()


class Killed(BaseException):
    """The process is killed."""


class MortalStore(Store):
    """Kills the process at the n-th call. `left` counts down."""

    left = 0

    async def run(self, name: str, shard: int, *arguments: Argument) -> Any:
        self._live()
        return await super().run(name, shard, *arguments)

    async def command(self, *command: Word) -> Any:
        self._live()
        return await super().command(*command)

    def _live(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Killed


def tokens_with(store: Store, *keys: str) -> Tokens:
    return Tokens(store, Vault(keys), {})


async def test_two_processes_with_different_keys_do_not_both_encrypt(store: Store) -> None:
    """Both have started before anything was encrypted."""
    first, second = tokens_with(store, OLD), tokens_with(store, NEW)
    await first.write(*ANNA, TOKEN)
    with pytest.raises(KeyLost, match="ADA_SECRET_KEY"):
        await second.write("university", "vacancies", "2", TOKEN)
    with pytest.raises(KeyLost, match="ADA_SECRET_KEY"):
        await second.access_token(*ANNA)
    assert await first.access_token(*ANNA) == "x"
    assert await services_of(store, "university", "2") == []


async def test_a_process_checks_that_it_has_all_keys(store: Store) -> None:
    await tokens_with(store, NEW).check_keys()
    await tokens_with(store, OLD).write(*ANNA, TOKEN)
    await tokens_with(store, NEW, OLD).check_keys()
    with pytest.raises(KeyLost):
        await tokens_with(store, NEW).check_keys()


async def test_damaged_tokens_need_a_new_sign_in(store: Store) -> None:
    tokens = tokens_with(store, OLD)
    await tokens.write(*ANNA, TOKEN)
    await store.command("HSET", tokens_key(store, "university", "1"), "vacancies", "damaged")
    with pytest.raises(SignInExpired, match="cannot be read"):
        await tokens.access_token(*ANNA)


async def test_after_a_rotation_the_old_key_is_not_needed(store: Store) -> None:
    await tokens_with(store, OLD).write(*ANNA, TOKEN)
    await tokens_with(store, OLD).write("another", "calendar", "7", TOKEN)
    with pytest.raises(KeyLost):
        await tokens_with(store, NEW).rotate()
    assert await tokens_with(store, NEW, OLD).rotate() == 2
    assert await keys_in_use(store) == set(Vault([NEW]).fingerprints)
    assert await tokens_with(store, NEW).access_token(*ANNA) == "x"
    assert await tokens_with(store, NEW).rotate() == 2
    with pytest.raises(KeyLost):
        await tokens_with(store, OLD).access_token(*ANNA)


async def test_a_rotation_that_is_killed_at_any_call_loses_no_tokens_and_a_repeat_ends_it(
    store: Store, server: Server, shards: int
) -> None:
    mortal = await MortalStore.open(server.url, shards)
    people = [("university", "vacancies", str(number)) for number in range(8)]
    for calls in range(1000):
        await reset(store)
        for person in people:
            await tokens_with(store, OLD).write(*person, TOKEN)
        mortal.left = calls
        try:
            await tokens_with(mortal, NEW, OLD).rotate()
        except Killed:
            await assert_keys_are_noted(store, people)
            assert await tokens_with(store, NEW, OLD).rotate() == len(people)
        assert await keys_in_use(store) == set(Vault([NEW]).fingerprints)
        assert {await tokens_with(store, NEW).access_token(*person) for person in people} == {"x"}
        if mortal.left >= 0:
            break
    assert calls > 3 * shards
    await mortal.close()


async def assert_keys_are_noted(store: Store, people: Sequence[tuple[str, str, str]]) -> None:
    """I25: each shard has the fingerprint of each key that has encrypted tokens in it."""
    for tenant, service, user in people:
        noted = await store.command("SMEMBERS", keys_by_shard(store)[shard_of(store, tenant, user)])
        stored = await store.command("HGET", tokens_key(store, tenant, user), service)
        (used,) = [vault for vault in (Vault([OLD]), Vault([NEW])) if is_readable(vault, stored)]
        assert set(used.fingerprints) <= set(noted)


def is_readable(vault: Vault, stored: str) -> bool:
    try:
        vault.decrypt(stored)
    except Undecryptable:
        return False
    return True


async def test_tokens_that_no_key_reads_are_listed(store: Store) -> None:
    await tokens_with(store, OLD).write(*ANNA, TOKEN)
    await tokens_with(store, OLD).write("university", "calendar", "1", TOKEN)
    await store.command("HSET", tokens_key(store, "university", "1"), "calendar", Vault([NEW]).encrypt("{}"))
    assert [found async for found in unreadable(store, Vault([OLD]))] == [("university", "1", "calendar")]
    assert [found async for found in unreadable(store, Vault([OLD, NEW]))] == []


async def test_a_reset_signs_all_people_out_and_forgets_the_keys(store: Store) -> None:
    people = {("university", "1"), ("university", "telegram-bot:7"), ("another", "1")}
    for tenant, user in people:
        await tokens_with(store, OLD).write(tenant, "vacancies", user, TOKEN)
    assert {person async for person in people_with_tokens(store)} == people
    assert await reset(store) == len(people)
    assert [person async for person in people_with_tokens(store)] == []
    assert await keys_in_use(store) == set()
    await tokens_with(store, NEW).write(*ANNA, TOKEN)
    assert await tokens_with(store, NEW).access_token(*ANNA) == "x"


def test_a_vault_reads_only_what_its_keys_have_encrypted() -> None:
    vault = Vault([NEW, OLD])
    assert vault.decrypt(Vault([OLD]).encrypt("text")) == "text"
    assert Vault([NEW]).decrypt(vault.encrypt("text")) == "text"
    assert len(set(vault.fingerprints)) == 2
    assert Vault([OLD]).fingerprints == vault.fingerprints[1:]
    for stored in (Vault([new_key()]).encrypt("text"), "", "text", "\ud800"):
        with pytest.raises(Undecryptable):
            vault.decrypt(stored)
