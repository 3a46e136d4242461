"""Channels: which couriers exist, how large their parcels may be, and the accounts that were set at the console.

A courier registers itself at its start. Called by `couriers.sending.runtime` (registers), `core.deliveries.deliveries`
(cuts parcels) and `delivery/` (refuses unknown channels).

The settings of an account are encrypted by the writer. A setting of the environment, of .env or of settings.yaml is
used in place of the stored one (`cli.services.accounts`).
"""

import asyncio
import json
import logging
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

import msgspec
from msgspec import Struct

from core.errors import Conflict, StoreRefuses
from core.model.contacts.addresses import channel_records
from core.model.content import Display
from core.model.json_form import compact_json
from core.redis.keys import KEYS
from core.redis.store import Store

log = logging.getLogger(__name__)

# The parcel size of a channel that has never had a courier: the most that any known provider takes at once.
_UNKNOWN_PARCEL = 2500
_CACHED_SECONDS = 1.0
# Seconds. While the primary of shard 0 is replaced, what is sent in other shards does not wait for it.
_PATIENCE = 0.1
_decode_display = msgspec.json.Decoder(Display).decode
_KEY = KEYS["accounts"].at(0)
_VERSION = ":version"


@dataclass(frozen=True, slots=True)
class ChannelFacts:
    """The facts that a courier registers of its channel. `parcel`: most recipients of one parcel. `halted`: why an
    operator is needed, "" while the courier runs.
    """

    parcel: int
    halted: str = ""


class ChannelView(NamedTuple):
    """A channel as people see it. `facts`, `display`: None if it has never had a courier."""

    name: str
    facts: ChannelFacts | None
    display: Display | None


class ChannelRegister(NamedTuple):
    """`names`: the channels that are known at the start, then the others in the order of registration. `parcel_sizes`:
    the most recipients of one parcel, for any channel.
    """

    names: Sequence[str]
    parcel_sizes: Mapping[str, int]


class Channels:
    """One per process. `configured`: the channels that are known before their couriers start; None: as records say."""

    def __init__(self, store: Store, configured: Sequence[str] | None = None) -> None:
        self._store = store
        known = [name for name, record in channel_records().items() if record.is_known_at_start]
        self._configured = tuple(known if configured is None else configured)
        self._cached: ChannelRegister | None = None
        self._cached_until = float("-inf")
        self._reading: asyncio.Task[ChannelRegister] | None = None

    async def register(
        self, channel: str, facts: ChannelFacts, *, announces: bool = False, display: Display | None = None
    ) -> None:
        """Register a channel, or update it, in every shard. `announces`: its couriers write `sending` before each
        attempt; `lua/delivery/modules/unclear.lua` reads it. On a server that refuses writes only a warning is logged:
        couriers must be able to start there, because they make room on a full one.
        """
        try:
            if display is not None:
                await self._store.command("HSET", KEYS["displays"].at(0), channel, compact_json(display))
            for shard in range(self._store.shards):
                await self._store.command("HSET", KEYS["channels"].at(shard), channel, json.dumps(asdict(facts)))
                option, field = KEYS["options"].at(shard), f"{channel}:announces"
                await self._store.command(*(("HSET", option, field, 1) if announces else ("HDEL", option, field)))
        except StoreRefuses as fault:
            log.warning("channel %s not registered: %s", channel, fault)

    async def current(self) -> ChannelRegister:
        """Return the register, at most a second old; older while its server does not answer."""
        if self._cached is None:
            return await self.read()
        if time.monotonic() >= self._cached_until:
            await self._try_to_read()
        return self._cached

    async def _try_to_read(self) -> None:
        """Read the register in `_PATIENCE`, or later: one reading at a time."""
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self.read(), name="channels")
            self._reading.add_done_callback(_note_failure)
        await asyncio.wait([self._reading], timeout=_PATIENCE)
        self._cached_until = max(self._cached_until, time.monotonic() + _PATIENCE)

    async def read(self) -> ChannelRegister:
        """Return the register, read now."""
        facts = await self._facts()
        names = tuple(dict.fromkeys((*self._configured, *facts)))
        sizes = defaultdict(lambda: _UNKNOWN_PARCEL, {channel: one.parcel for channel, one in facts.items()})
        self._cached, self._cached_until = ChannelRegister(names, sizes), time.monotonic() + _CACHED_SECONDS
        return self._cached

    async def views(self) -> Sequence[ChannelView]:
        """Return every channel, read now, in the order of `ChannelRegister.names`."""
        facts = await self._facts()
        displays = await self._store.command("HGETALL", KEYS["displays"].at(0))
        shown = {channel: _decode_display(text) for channel, text in displays.items()}
        names = dict.fromkeys((*self._configured, *facts))
        return [ChannelView(name, facts.get(name), shown.get(name)) for name in names]

    async def _facts(self) -> Mapping[str, ChannelFacts]:
        registered = await self._store.command("HGETALL", KEYS["channels"].at(0))
        return {channel: ChannelFacts(**json.loads(text)) for channel, text in registered.items()}


def _note_failure(reading: "asyncio.Task[ChannelRegister]") -> None:
    if not reading.cancelled() and (fault := reading.exception()):
        log.warning("the register of channels was not read: %s", fault)


class StoredAccount(Struct, frozen=True):
    """`settings`: name → encrypted text. `by`: who stored them, `at`: when, Unix ms."""

    settings: Mapping[str, str]
    by: str
    at: int


class StoredAccounts:
    """The accounts of all channels. Methods raise StoreError."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def all(self) -> Mapping[str, StoredAccount]:
        stored = (await self._store.command("HGETALL", _KEY)).items()
        return {
            channel: msgspec.json.decode(text, type=StoredAccount)
            for channel, text in stored
            if not channel.endswith(_VERSION)
        }

    async def versions(self) -> Mapping[str, int]:
        """Return how often the account of each channel has changed; a channel that is missing has never had one."""
        stored = (await self._store.command("HGETALL", _KEY)).items()
        return {name.removesuffix(_VERSION): int(text) for name, text in stored if name.endswith(_VERSION)}

    async def change(self, channel: str, version: int, account: StoredAccount | None) -> int:
        """Store or remove an account; return the new version. `version`: of what the caller has read. Raises Conflict
        ACCOUNT_CHANGED if it is another one by now.
        """
        text = msgspec.json.encode(account).decode() if account else ""
        new = int(await self._store.run("change_account", 0, channel, version, text))
        if not new:
            raise Conflict("ACCOUNT_CHANGED", "Somebody else has changed this account meanwhile. Look at it again.")
        return new
