"""Finds out whether a delivery has sent a message that a provider or a recipient names.

There is no index of it: a list reads the deliveries that may have sent it, the newest first (docs/decisions/0108).
"""

from typing import NamedTuple

from core.deliveries.histories.parcels import load_parcel
from core.deliveries.histories.projection import read_outcome
from core.deliveries.histories.reader import HistoryReader
from core.model.history_key import HistoryKey
from core.redis.keys import KEYS
from core.redis.store import Store


class SentMessage(NamedTuple):
    """`address`: of the recipient in the channel. `reference`: the provider's id of the message."""

    channel: str
    address: str
    reference: str


async def has_sent(store: Store, reader: HistoryReader, key: HistoryKey, message: SentMessage) -> bool:
    """Return whether a delivery has sent this message, as far as its outcome is known."""
    names = [name for name in await reader.field_names(key) if name.startswith(f"parcel:{message.channel}:")]
    texts = await reader.read_fields(key, names) if names else {}
    entries = [entry for text in texts.values() if text for entry in load_parcel(text)[1]]
    fields = [entry.field(message.channel) for entry in entries if entry.address == message.address]
    stored = await store.command("HMGET", KEYS["outcomes"].at(key.shard, key.suffix), *fields) if fields else []
    references = [read_outcome(text, over=False).reference or "" for text in stored if text]
    return any(message.reference in reference.split(",") for reference in references)
