"""Reads of stored sign-ins that need no key."""

from collections.abc import AsyncIterator

from core.redis.keys import KEYS
from core.redis.store import Store
from providers.sign_in.vault import Undecryptable, Vault

_PAGE = 500


def tokens_key(tenant: str, user: str) -> str:
    return KEYS["sign_in_tokens"].at(0, tenant, user)


async def services_of(store: Store, tenant: str, user: str) -> list[str]:
    """Return the services that a user has signed in to, sorted."""
    return sorted(await store.command("HKEYS", tokens_key(tenant, user)))


async def forget(store: Store, tenant: str, user: str, service: str = "") -> dict[str, str]:
    """Delete the tokens of a user for a service. Without a service: for all of them, and sign-ins that have begun
    cannot be finished. Returns what was deleted: the stored tokens by service.
    """
    deleted = iter(await store.run("forget_sign_ins", 0, tenant, user, service))
    return dict(zip(deleted, deleted, strict=True))


async def reset(store: Store) -> int:
    """Sign all users of all tenants out, so that a new key may be used. Returns how many users."""
    signed_out = [bool(await forget(store, *person)) async for person in people_with_tokens(store)]
    await store.command("DEL", KEYS["sign_in_keys"].at(0))
    return sum(signed_out)


async def keys_in_use(store: Store) -> set[str]:
    """Return the fingerprints of the keys with which tokens were encrypted."""
    return set(await store.command("SMEMBERS", KEYS["sign_in_keys"].at(0)))


async def people_with_tokens(store: Store) -> AsyncIterator[tuple[str, str]]:
    """Yield (tenant, user) of all tokens, each perhaps more than once."""
    prefix, cursor = tokens_key("", "").removesuffix(":"), "0"
    while True:
        cursor, keys = await store.command("SCAN", cursor, "MATCH", f"{prefix}*", "COUNT", _PAGE)
        for key in keys:
            tenant, _, user = key.removeprefix(prefix).partition(":")
            yield tenant, user
        if str(cursor) == "0":
            return


async def unreadable(store: Store, vault: Vault) -> AsyncIterator[tuple[str, str, str]]:
    """Yield (tenant, user, service) of the tokens that cannot be decrypted."""
    async for tenant, user in people_with_tokens(store):
        for service, stored in (await store.command("HGETALL", tokens_key(tenant, user))).items():
            try:
                vault.decrypt(stored)
            except Undecryptable:
                yield tenant, user, service
