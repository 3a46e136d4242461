"""A process that sends many deliveries of one sender at once: `python -m tests.core.orders.racing_senders URL COUNT`.

It prints "ready", waits for a line on its standard input, and prints how many deliveries were accepted.
"""

import asyncio
import sys
from datetime import timedelta

from core.deliveries.channels import Channels
from core.deliveries.deliveries import Deliveries
from core.directory import Directory
from core.errors import QuotaExceeded
from core.model.delivery import Accepted, Quota
from core.orders import Caller, Sending, SendingPolicy
from core.redis.store import Store
from tests.core.orders.conftest import LATER, TRAINER, order
from tests.support.stack import TENANT

QUOTA = Quota(16, timedelta(hours=24))


async def race(url: str, count: int) -> int:
    store = await Store.open(url)
    sending = Sending(
        store, Deliveries(store, Channels(store, ())), Directory(store), SendingPolicy({"trainer": QUOTA})
    )
    caller = Caller(TENANT, is_admin=True)
    orders = [order(sender=TRAINER, deliver_at=LATER) for _ in range(count)]
    print("ready", flush=True)  # noqa: T201
    await asyncio.to_thread(sys.stdin.readline)
    results = await asyncio.gather(*(sending.send(one, caller) for one in orders), return_exceptions=True)
    await store.close()
    unexpected = [one for one in results if not isinstance(one, Accepted | QuotaExceeded)]
    assert not unexpected, unexpected
    return sum(isinstance(one, Accepted) for one in results)


if __name__ == "__main__":
    print(asyncio.run(race(sys.argv[1], int(sys.argv[2]))), flush=True)  # noqa: T201
