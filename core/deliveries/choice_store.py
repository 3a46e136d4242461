"""The numbered choices of a tenant's last message to an address, so that its number answers it.

Written by `couriers.sending` before the message is sent, read by `core.updates` when a person writes a number. A later
message without choices removes them: a number then answers that message.
"""

import asyncio
from collections.abc import Iterable, Sequence
from datetime import timedelta

from core.model.contacts.addresses import canonical
from core.model.content import Button
from core.model.numbered_choices import chosen, encode_choices, may_be_answer
from core.redis.keys import KEYS
from core.redis.store import Store

LIFETIME = timedelta(days=1)


class Choices:
    """One per process. Methods raise StoreError."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def remember(self, tenant: str, channel: str, addresses: Iterable[str], choices: Sequence[Button]) -> None:
        """Replace the choices of these addresses; without choices, remove them."""
        keys = [self._key(tenant, channel, address) for address in addresses]
        if not choices:
            await asyncio.gather(*(self._store.command("DEL", key) for key in keys))
            return
        encoded, seconds = encode_choices(choices), LIFETIME // timedelta(seconds=1)
        await asyncio.gather(*(self._store.command("SET", key, encoded, "EX", seconds) for key in keys))

    async def button_of(self, tenant: str, channel: str, address: str, text: str) -> Button | None:
        """Return the button that a text answers; None if it is no number or there is no such choice."""
        if not may_be_answer(text):
            return None
        encoded = await self._store.command("GET", self._key(tenant, channel, address))
        return chosen(encoded, text) if encoded else None

    def _key(self, tenant: str, channel: str, address: str) -> str:
        """Return the Redis key. An address may be written in several ways."""
        known = canonical(channel, address)
        return KEYS["choices"].at(self._store.shard_of_person(tenant, channel, known), tenant, channel, known)
