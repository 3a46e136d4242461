"""The journal of an import: makes the writes of many pages all happen, or none.

    begin ─▶ add a page … ─▶ commit ─▶ write a page … ─▶ done         decision 0037
      │           │             one step
      └───────────┴─▶ abort, or the lease ends: nothing is written

Until the commit nothing of the directory is changed, and the journal expires if its process is gone. From the commit on
the journal stays until the last page is written, by whichever process: `write_page` writes the next page and counts it
in one step, so a page is written exactly once.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Iterable, Sequence
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from core.directory.records import ImportRunning
from core.redis.keys import KEYS
from core.redis.store import Store

LEASE_MS = 30_000
"""Time for which an import that is being checked outlives its process."""
IDLE_MS = 3_000
"""An import that is being written is continued by another process if no page was written for this long."""

Step = tuple[str, ...]
"""One write, for example ("user", id, record); see lua/imports/functions/write_import.lua."""

_pack = msgspec.msgpack.Encoder().encode


class ImportState(Struct, frozen=True):
    """The import of the tenant that is under way. `rows`: of the file; `done`: of them, in this state."""

    state: Annotated[str, Meta(description="idle, checking or writing")]
    kind: str
    rows: int
    done: int


class ImportLost(Exception):
    """The journal is gone: the process was stopped for longer than the lease. Nothing was written."""


class Journal:
    """The journal of one import of one tenant."""

    def __init__(self, store: Store, tenant: str) -> None:
        self._store = store
        self._tenant = tenant
        self._token = secrets.token_hex(8)
        self._pages = 0

    async def begin(self, kind: str, rows: int) -> None:
        """Lock the directory of the tenant. Continues an interrupted import first. Raises ImportRunning."""
        arguments = (self._token, kind, rows, LEASE_MS)
        reply = await self._store.run_for_tenant("begin_import", self._tenant, *arguments)
        if reply[0] == "running" and reply[1] == "writing" and await roll_forward(self._store, self._tenant, IDLE_MS):
            reply = await self._store.run_for_tenant("begin_import", self._tenant, *arguments)
        if reply[0] == "running":
            raise ImportRunning

    async def add(self, steps: Sequence[Step], done: int) -> None:
        """Add a page; `done`: rows checked so far. Without steps it only prolongs the lease. Raises ImportLost."""
        page = _pack(steps) if steps else b""
        arguments = (self._token, self._pages, page, done, LEASE_MS)
        if not await self._store.run_for_tenant("journal_import", self._tenant, *arguments):
            raise ImportLost
        self._pages += bool(steps)

    async def commit(self) -> None:
        """Decide that all pages are written. Raises ImportLost, and nothing is written."""
        if not await self._store.run_for_tenant("commit_import", self._tenant, self._token, self._pages):
            raise ImportLost

    async def abort(self) -> None:
        """End an import that is not committed. Nothing was written."""
        await self._store.run_for_tenant("abort_import", self._tenant, self._token)


async def roll_forward(store: Store, tenant: str, idle_ms: int = 0) -> bool:
    """Write all pages that are left of a committed import. Returns whether none is left.

    `idle_ms`: leave it to the process that writes it if that wrote a page within this time.
    """
    while True:
        left = await store.run_for_tenant("write_import", tenant, idle_ms)
        if left <= 0:
            return bool(left == 0)
        idle_ms = 0


async def roll_forward_all(store: Store) -> int:
    """Continue the committed imports of all tenants whose process is gone. Returns how many were completed. Raises
    StoreError if a primary does not answer, after those of the others.
    """
    return await _sum(_roll_forward_shards(store, shards) for shards in store.in_one_command(range(store.shards)))


async def _roll_forward_shards(store: Store, shards: Sequence[int]) -> int:
    if not await store.command("EXISTS", *(KEYS["imports"].at(shard) for shard in shards)):
        return 0
    return await _sum(_roll_forward_shard(store, shard) for shard in shards)


async def _roll_forward_shard(store: Store, shard: int) -> int:
    tenants = await store.command("ZRANGE", KEYS["imports"].at(shard), 0, -1)
    return sum([await roll_forward(store, tenant, IDLE_MS) for tenant in tenants])


async def _sum(parts: Iterable[Awaitable[int]]) -> int:
    """Return the sum of the parts when all have ended. Raises the first fault of them."""
    numbers = await asyncio.gather(*parts, return_exceptions=True)
    for fault in numbers:
        if isinstance(fault, BaseException):
            raise fault
    return sum(number for number in numbers if isinstance(number, int))


async def progress(store: Store, tenant: str) -> ImportState:
    fields = ("state", "kind", "rows", "done", "pages", "next")
    state, kind, *numbers = await store.read_hash(store.tenant_key("import", tenant), *fields)
    rows, done, pages, written = (int(number or 0) for number in numbers)
    if state is None:
        return ImportState("idle", "", 0, 0)
    return ImportState(state, kind or "", rows, rows * written // pages if pages else done)
