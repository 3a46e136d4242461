"""A process that puts, or takes and settles, until it is killed. It prints a line for each task it takes.

python -m tests.core.queue.process put URL
python -m tests.core.queue.process take URL ACCOUNT
python -m tests.core.queue.process work URL SHARDS
"""

import asyncio
import sys
from datetime import timedelta

from cli.processes.supervisor import announce
from core.queue import Claim, NewTask, Queue, Settlement, Task, Worker, WorkerOptions
from core.queue.task import ClaimRequest
from core.redis.store import Store

TUBE = "t"
PAGE = 20
LEASE, FLOOR = timedelta(seconds=30), timedelta(seconds=1)
THROTTLE = timedelta(seconds=1)
PAUSE = 0.005


def print_line(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


async def put(queue: Queue) -> None:
    """Put single tasks and pages of tasks as fast as possible."""
    while True:
        await queue.put(TUBE, NewTask(""))
        await queue.put_many(TUBE, [NewTask("")] * PAGE)


async def take(queue: Queue, account: str) -> None:
    """Print `taken MS BODY`. A task with the body `throttle` throttles the account: print `throttled MS`, its end."""
    while True:
        claim = await queue.claim(0, ClaimRequest(TUBE, queue.ids.client, 5, LEASE, FLOOR, account))
        for task in claim.tasks:
            print_line("taken", task.claimed, task.body)
            if task.body == "throttle":
                await queue.throttle(TUBE, f"account:{account}", THROTTLE)
                throttles = await queue.throttles(TUBE, 0, [f"account:{account}"])
                print_line("throttled", *throttles.values())
            await queue.settle(task)
        await asyncio.sleep(PAUSE)


async def work(store: Store) -> None:
    """Run a worker as couriers do. Print `taken MS BODY`."""

    async def handle(task: Task, claim: Claim) -> Settlement:
        print_line("taken", task.claimed, task.body)
        return Settlement()

    worker = Worker(store, TUBE, handle, options=WorkerOptions(max_sleep=FLOOR))
    announce(client=worker.owner)
    await worker.run()


async def run(verb: str, url: str, word: str = "") -> None:
    store = await Store.open(url, int(word) if verb == "work" else 1)
    if verb == "work":
        await work(store)
    queue = Queue(store)
    announce(client=queue.ids.client)
    await (put(queue) if verb == "put" else take(queue, word))


if __name__ == "__main__":
    asyncio.run(run(*sys.argv[1:]))
