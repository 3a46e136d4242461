"""Tokens of delivery reports stay valid over updates: gateways hold those of messages sent before."""

from core.deliveries.delivery_reports import DeliveryReports
from core.deliveries.histories.parcels import Entry
from core.model.history_key import HistoryKey
from core.redis.store import Store
from tests.support.servers import Server

SECRET = "00" * 32
TOKEN = "WzAsIjc6MTc2MzcxMjAwMDAwMDAwMDAwMCIsInNtcyIsMCw0MiwzLDEsMl0.3e3d11ac2b7f06619dac3cc2d9498a3a"


async def test_a_token_is_the_same_in_every_version(server: Server) -> None:
    store = await Store.open(server.url)
    await store.command("SET", "secret:{0}:receipts", SECRET)
    entry = Entry(42, 3, 1, 2, "+79990000001")
    token = await DeliveryReports(store).token(HistoryKey.of(0, "7:1763712000000000000"), "sms", 0, entry)
    await store.close()
    assert token == TOKEN
