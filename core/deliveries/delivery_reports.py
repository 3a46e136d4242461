"""Delivery reports: the token by which a provider reports on a message, and what a report changes.

The token names one entry of one delivery and is signed with a secret of this installation, so that no one else can mark
a message as delivered. Reports may come early, late, twice and in any order (`core.model.states.supersedes`).

`couriers.sending.parcels.parcel_executor` puts the token into the message's report address; `delivery/` passes the
provider's report to `record`, and a courier that has lost its lease its outcomes to `record_late`.
"""

import base64
import binascii
import hmac
import json
import secrets
from collections.abc import Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from core.deliveries.histories.parcels import Entry
from core.errors import Forbidden, NotFound
from core.model.history_key import HistoryKey, Id
from core.model.json_form import compact_json
from core.model.states import Status
from core.redis.keys import KEYS
from core.redis.store import Store


class EntryName(NamedTuple):
    """Names one entry of one delivery, without its address; `parcel` is the parcel that was attempted."""

    shard: int
    suffix: str
    channel: str
    parcel: int
    id: Id
    number: int
    contact: int
    contacts: int


class DeliveryReports:
    """One per process."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._secret = b""

    async def token(self, key: HistoryKey, channel: str, parcel: int, entry: Entry) -> str:
        """Return a URL-safe, signed name of the entry. It does not contain the recipient's address."""
        name = EntryName(key.shard, key.suffix, channel, parcel, *entry[:4])
        body = base64.urlsafe_b64encode(compact_json(name).encode()).decode().rstrip("=")
        return f"{body}.{await self._sign(body)}"

    async def record(self, token: str, status: Status, reference: str) -> bool:
        """Return whether the history changed. Raises Forbidden RECEIPT_SECRET_WRONG, NotFound HISTORY_NOT_FOUND."""
        return await self.record_entry(EntryName(*await self._read(token)), status, reference)

    async def record_entry(
        self, name: "EntryName", status: Status, reference: str, reason: str = "", detail: str = ""
    ) -> bool:
        """Do the same for a report that came on another way. `detail`: the words of the provider. Raises NotFound
        HISTORY_NOT_FOUND.
        """
        item = Entry(*name[4:], "").item(status, reason, reference, detail=detail)
        changed = await self._store.run("record_report", *name[:4], compact_json(item))
        if changed < 0:
            raise NotFound("HISTORY_NOT_FOUND", "There is no such delivery.")
        return bool(changed)

    async def record_late(self, key: HistoryKey, channel: str, parcel: int, items: Sequence[Any]) -> None:
        """Record what a courier that has lost the lease of a parcel knows of its attempts: outcomes in the form of
        `Entry.item`. A better known outcome stays (docs/decisions/0079).
        """
        await self._store.run("record_late", key.shard, key.suffix, channel, parcel, compact_json(list(items)))

    async def _read(self, token: str) -> list[Any]:
        body, _, signature = token.rpartition(".")
        if not hmac.compare_digest(signature.encode(), (await self._sign(body)).encode()):
            raise Forbidden("RECEIPT_SECRET_WRONG", "This delivery report was not signed by us.")
        try:
            return list(json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))))
        except (ValueError, binascii.Error):
            raise Forbidden("RECEIPT_SECRET_WRONG", "This delivery report was not signed by us.") from None

    async def _sign(self, body: str) -> str:
        if not self._secret:
            self._secret = await self._installation_secret()
        return hmac.new(self._secret, body.encode(), sha256).hexdigest()[:32]

    async def _installation_secret(self) -> bytes:
        name = KEYS["secret"].at(0, "receipts")
        await self._store.command("SET", name, secrets.token_hex(32), "NX")
        return str(await self._store.command("GET", name)).encode()
