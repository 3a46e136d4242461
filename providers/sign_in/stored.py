"""Stored sign-ins: how they are encrypted, and reads that need no key.

Fernet of the library `cryptography` (AES-128-CBC with HMAC-SHA256). The first key encrypts, all of them decrypt: a new
key is put in front of the old one, and the old one is removed after `Tokens.rotate` has encrypted everything again.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from hashlib import blake2b
from itertools import chain

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from core.errors import AdaError, SetupError
from core.model.history_key import own_name
from core.redis.keys import KEYS
from core.redis.store import Store


class Undecryptable(AdaError):
    """None of the keys fits: what is stored is damaged, or its key was lost."""


class Vault:
    """`keys`: each 32 bytes as URL-safe base64, as `new_key` makes them. Raises SetupError for others.

    `fingerprints`: of the keys, in their order. A fingerprint identifies a key and does not disclose it.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        try:
            self._fernet = MultiFernet([Fernet(key) for key in keys])
        except ValueError:
            raise SetupError("ADA_SECRET_KEY is not a key: 32 bytes as URL-safe base64, 44 characters") from None
        self.fingerprints = [blake2b(key.encode(), digest_size=8, person=b"ada key").hexdigest() for key in keys]

    def encrypt(self, text: str) -> str:
        return self._fernet.encrypt(text.encode()).decode()

    def decrypt(self, stored: str) -> str:
        """Return the text of what `encrypt` has made. Raises Undecryptable."""
        try:
            return self._fernet.decrypt(stored.encode(errors="replace")).decode()
        except InvalidToken:
            raise Undecryptable("what is stored was encrypted with another key, or is damaged") from None


def new_key() -> str:
    return Fernet.generate_key().decode()


_PAGE = 500
_TOKENS = re.compile(r"sign-in:\{\d+\}:tokens:([^:]*):(.*)", re.DOTALL)


def shard_of(store: Store, tenant: str, user: str) -> int:
    """Return the shard of a user's sign-ins; for CHANNEL:ADDRESS that of all that belongs to this person."""
    return store.shard_of(own_name(tenant, user))


def tokens_key(store: Store, tenant: str, user: str) -> str:
    return KEYS["sign_in_tokens"].at(shard_of(store, tenant, user), tenant, user)


async def services_of(store: Store, tenant: str, user: str) -> list[str]:
    """Return the services that a user has signed in to, sorted."""
    return sorted(await store.command("HKEYS", tokens_key(store, tenant, user)))


async def forget(store: Store, tenant: str, user: str, service: str = "") -> dict[str, str]:
    """Delete the tokens of a user for a service. Without a service: for all of them, and sign-ins that have begun
    cannot be finished. Returns what was deleted: the stored tokens by service.
    """
    deleted = iter(await store.run("forget_sign_ins", shard_of(store, tenant, user), tenant, user, service))
    return dict(zip(deleted, deleted, strict=True))


async def reset(store: Store) -> int:
    """Sign all users of all tenants out, so that a new key may be used. Returns how many users."""
    signed_out = [bool(await forget(store, *person)) async for person in people_with_tokens(store)]
    for key in keys_by_shard(store):
        await store.command("DEL", key)
    return sum(signed_out)


def keys_by_shard(store: Store) -> list[str]:
    """Return the names of the sets of fingerprints: each shard has that of the keys of its tokens."""
    return [KEYS["sign_in_keys"].at(shard) for shard in range(store.shards)]


async def keys_in_use(store: Store) -> set[str]:
    """Return the fingerprints of the keys with which tokens were encrypted."""
    found = await asyncio.gather(*(store.command("SMEMBERS", key) for key in keys_by_shard(store)))
    return set(chain.from_iterable(found))


async def people_with_tokens(store: Store) -> AsyncIterator[tuple[str, str]]:
    """Yield (tenant, user) of all tokens, each perhaps more than once."""
    for homes in store.shard_map.primaries().values():
        async for person in _people_at(store, homes[0]):
            yield person


async def _people_at(store: Store, home: int) -> AsyncIterator[tuple[str, str]]:
    cursor = "0"
    while True:
        cursor, keys = await store.command_at(home, "SCAN", cursor, "MATCH", "sign-in:*:tokens:*", "COUNT", _PAGE)
        for match in filter(None, map(_TOKENS.fullmatch, keys)):
            yield match[1], match[2]
        if str(cursor) == "0":
            return


async def unreadable(store: Store, vault: Vault) -> AsyncIterator[tuple[str, str, str]]:
    """Yield (tenant, user, service) of the tokens that cannot be decrypted."""
    async for tenant, user in people_with_tokens(store):
        for service, stored in (await store.command("HGETALL", tokens_key(store, tenant, user))).items():
            try:
                vault.decrypt(stored)
            except Undecryptable:
                yield tenant, user, service
