"""The server is killed in the middle of cancelling many deliveries: a repeat of the request completes it."""

import asyncio
from collections import Counter
from typing import Any

from core.redis.keys import KEYS
from core.redis.stream_reader import entry_fields
from tests.support.stack import HOUR, order
from tests.support.waiting import until
from tests.system.crash.api_client import ApiClient
from tests.system.crash.installation import SMS, Installation, person

TENANT = "default"
COUNT = 4_000
LIVE = KEYS["live"].at(0, TENANT)


async def cancel(api: ApiClient) -> tuple[int, Any]:
    return await api.request("POST", "/v1/cancellations", {"tag": "exam"}, idempotency_key="once")


async def is_in_the_middle(installation: Installation) -> bool:
    return 0 < await installation.core.redis.zcard(LIVE) < COUNT


async def has_succeeded(api: ApiClient) -> bool:
    return (await cancel(api))[0] == 200


async def test_a_server_killed_in_the_middle_of_cancelling_leaves_nothing_out_and_cancels_nothing_twice(
    own_installation: Installation,
) -> None:
    installation, core = own_installation, own_installation.core
    orders = [
        order(person(n, SMS), channels=["sms"], tenant=TENANT, tags=("exam",), deliver_at=core.now() + HOUR)
        for n in range(COUNT)
    ]
    await core.deliveries.enqueue_many([(one, None) for one in orders])
    api = await installation.client_of(installation.start_api())
    cancelling = asyncio.create_task(cancel(api))
    await until(lambda: is_in_the_middle(installation), every=0.001)
    installation.server.kill()
    assert not cancelling.done()
    installation.server.start()
    await cancelling
    await until(lambda: has_succeeded(api), within=60, every=0.1)
    assert await core.redis.zcard(LIVE) == 0
    cancelled = await cancellations(installation)
    assert (len(cancelled), set(cancelled.values())) == (COUNT, {1})
    await installation.audit()


async def cancellations(installation: Installation) -> Counter[str]:
    """History → how often its event `cancelled` was written."""
    rows = await installation.core.store.command("XRANGE", KEYS["events"].at(0), "-", "+")
    entries = [entry_fields(flat) for _, flat in rows]
    return Counter(entry["history"] for entry in entries if entry["event"] == "cancelled")
