"""A process of its own that puts, or takes and settles, until it is killed. What it takes it tells line by line.

python -m tests.queue.process put URL
python -m tests.queue.process take URL ACCOUNT
"""

import asyncio
import sys
from datetime import timedelta

from cli.processes.supervisor import announce
from core.queue.queue import NewTask, Queue
from core.redis.store import Store

TUBE = "t"
PAGE = 20
LEASE, FLOOR = timedelta(seconds=30), timedelta(seconds=1)
HOLD = timedelta(seconds=1)
PAUSE = 0.005


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


async def put(queue: Queue) -> None:
    """One by one and many in one step, as fast as it can."""
    while True:
        await queue.put(TUBE, "")
        await queue.put_many(TUBE, [NewTask("")] * PAGE)


async def take(queue: Queue, account: str) -> None:
    """`taken MS BODY`. The provider answers “wait” to the body that says so: `held MS`, until when."""
    while True:
        claim = await queue.claim(TUBE, queue.ids.client, shard=0, limit=5, lease=LEASE, floor=FLOOR, account=account)
        for task in claim.tasks:
            say("taken", task.claimed, task.body)
            if task.body == "wait":
                await queue.throttle(TUBE, f"account:{account}", HOLD)
                waits = await queue.throttles(TUBE, 0, [f"account:{account}"])
                say("held", *waits.values())
            await queue.settle(task)
        await asyncio.sleep(PAUSE)


async def live(verb: str, url: str, *account: str) -> None:
    store = await Store.open(url)
    queue = Queue(store)
    announce(client=queue.ids.client)
    await (put(queue) if verb == "put" else take(queue, *account))


if __name__ == "__main__":
    asyncio.run(live(*sys.argv[1:]))
