"""The e-mail addresses to which people reply: `reply+TOKEN@school.example`, one for each mail of a delivery.

A token names delivery, recipient and contact. It is encrypted and signed: only the installation reads and makes one.
It is in lower case and the local part has at most 64 characters, as mail servers expect it.
"""

import re
import struct
from base64 import b32decode, b32encode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable
from typing import NamedTuple

from core.deliveries.delivery_reports import EntryName
from core.deliveries.histories.parcels import load_parcel
from core.deliveries.histories.reader import HistoryReader
from core.errors import Forbidden
from core.model.history_key import HistoryKey, code_of
from core.redis.installation_secrets import Sealing
from core.redis.keys import KEYS
from core.redis.store import Store

_PLACE = struct.Struct(">H8sHHB")
_TOKEN = re.compile("[a-z2-7]{50}")


class MailedPlace(NamedTuple):
    """One mail: the entry of a parcel of a delivery."""

    key: HistoryKey
    number: int
    parcel: int
    contact: int


class MailedRecipient(NamedTuple):
    """The recipient of a mail. `number`: its place in the delivery. `takes_replies`: somebody reads replies. `entry`:
    under which the outcome is recorded.
    """

    tenant: str
    key: HistoryKey
    number: int
    address: str
    takes_replies: bool
    entry: EntryName


class ReplyAddresses:
    """One per process. `channel`: whose messages are mails. Methods raise StoreError."""

    def __init__(self, store: Store, channel: str) -> None:
        self._store = store
        self._channel = channel
        self._sealing = Sealing(store, "reply-addresses")
        self._reader = HistoryReader(store)

    async def address(self, mailbox: str, place: MailedPlace) -> str:
        """Return the address at which a reply to a mail is received, and note where it leads. A repeat returns the
        same. `mailbox`: such as reply@school.example.
        """
        key, code = place.key, code_of(place.key)
        packed = _PLACE.pack(key.shard, urlsafe_b64decode(f"{code}="), place.number, place.parcel, place.contact)
        token = b32encode(await self._sealing.seal(packed)).decode().rstrip("=").lower()
        await self._store.run("note_mailed", key.shard, code, key.suffix)
        local, _, domain = mailbox.rpartition("@")
        return f"{local}+{token}@{domain}"

    async def recipient(self, token: str) -> MailedRecipient:
        """Return the recipient of the mail with this token. Raises Forbidden MAIL_TOKEN_WRONG if it was not made
        here, or has expired.
        """
        if _TOKEN.fullmatch(token) is None:
            raise _wrong()
        try:
            opened = await self._sealing.open(b32decode(f"{token.upper()}======"))
        except ValueError:
            raise _wrong() from None
        shard, code, number, parcel, contact = _PLACE.unpack(opened)
        place = KEYS["mailed"].at(shard, urlsafe_b64encode(code).decode().rstrip("="))
        suffix = await self._store.command("GET", place) if shard < self._store.shards else None
        if not suffix:
            raise _wrong()
        key, field = HistoryKey.of(shard, str(suffix)), f"parcel:{self._channel}:{parcel}"
        fields = await self._reader.read_fields(key, ["tenant", "replies", field])
        entries = load_parcel(stored)[1] if (stored := fields[field]) else ()
        entry = next((one for one in entries if (one.number, one.contact) == (number, contact)), None)
        if not entry or not entry.address or not fields["tenant"]:
            raise _wrong()
        name = EntryName(key.shard, key.suffix, self._channel, parcel, *entry[:4])
        return MailedRecipient(fields["tenant"], key, number, entry.address, bool(fields["replies"]), name)


def tokens_in(mailbox: str, addresses: Iterable[str]) -> list[str]:
    """Return the tokens of the addresses that were made for a mailbox, as they are written."""
    local, _, domain = mailbox.lower().rpartition("@")
    found = [one.lower().rpartition("@") for one in addresses]
    prefix = f"{local}+"
    return [before.removeprefix(prefix) for before, _, after in found if after == domain and before.startswith(prefix)]


def _wrong() -> Forbidden:
    return Forbidden("MAIL_TOKEN_WRONG", "No mail of this installation has such an address to reply to.")
