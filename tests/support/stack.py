"""Everything of core on one store, and couriers whose providers are simulated by the test."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

from redis.asyncio import Redis

from core.deliveries.channels import Channels
from core.deliveries.deliveries import Deliveries
from core.deliveries.tracker import Tracker
from core.model.clock import Backoff
from core.model.content import Feature, Limits
from core.model.delivery import Accepted, NewDelivery, Recipient, Sender
from core.model.history import History
from core.model.history_key import HistoryKey, Id
from core.queue import Claim, Queue, Task
from core.queue.task import ClaimRequest, Settled, Settlement
from core.redis.keys import KEYS
from core.redis.store import Store
from couriers.sending.interface import FOREVER, NEVER, Courier, Message, Outcome, Sent
from couriers.sending.runtime import OnRefusal, Runtime
from couriers.sending.services import CourierOptions
from tests.support.audited import Dump, dump_through, unfinished_keys, violations_in
from tests.support.limits import REPLY
from tests.support.servers import Server
from tests.support.waiting import until

HOUR = timedelta(hours=1)
LEASE = timedelta(seconds=30)
FLOOR = timedelta(seconds=0.2)
TENANT = "university"
SETTLES = 100
"""Tasks of one call: while it runs, the server does nothing else."""
SENDER = Sender(7, "Anna", "staff")

QUICK = CourierOptions(max_sleep=FLOOR, backoff=Backoff(timedelta(milliseconds=10), timedelta(milliseconds=50), 4))
"""Options of a courier process with pauses short enough for a test."""

Respond = Callable[[Message], Outcome | Awaitable[Outcome]]


def sent(message: Message) -> Outcome:
    return Sent(f"ref-{message.address}")


@dataclass
class FakeCourier:
    """A courier with a simulated provider. `respond`: returns the outcome of a message. `attempted`: all messages."""

    channel: str = "echo"
    respond: Respond = sent
    account: str = "ada"
    batch: int = 1
    parcel: int = 100
    remembers: timedelta = FOREVER
    shows: frozenset[Feature] = frozenset()
    attempted: list[Message] = field(default_factory=list)

    async def attempt(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        self.attempted += messages
        return [await self._outcome(message) for message in messages]

    async def _outcome(self, message: Message) -> Outcome:
        outcome = self.respond(message)
        return await outcome if inspect.isawaitable(outcome) else outcome

    async def close(self) -> None:
        """Do nothing: there is nothing to close."""

    @property
    def addresses(self) -> list[str]:
        """The addresses of all attempts, in order."""
        return [message.address for message in self.attempted]


PAID = Limits(in_sms=True, price="4.20 ₽")


@dataclass
class PaidCourier(FakeCourier):
    """A courier of SMS, whose messages are paid in parts."""

    channel: str = "sms"
    remembers: timedelta = NEVER
    limits: Limits = PAID


class Stack:
    """Everything of core on one server. `close` also stops the couriers."""

    def __init__(self, store: Store, server: Server) -> None:
        self.store = store
        self.server = server
        self.queue = Queue(store)
        self.tracker = Tracker(store)
        self.deliveries = Deliveries(store, Channels(store, ("echo", "sms")))
        self._couriers: dict[Runtime, asyncio.Task[None]] = {}
        self._plain = Redis.from_url(server.url, protocol=2, driver_info=None, socket_timeout=REPLY)

    @classmethod
    async def open(cls, server: Server, shards: int = 1) -> "Stack":
        return cls(await Store.open(server.url, shards), server)

    async def close(self) -> None:
        for runtime in list(self._couriers):
            await self.stop(runtime)
        await self.tracker.close()
        await self._plain.aclose()
        await self.store.close()

    @property
    def redis(self) -> Redis:
        return self.store.redis

    # time

    def advance_clock(self, time: timedelta) -> None:
        """Move the clock of the scripts."""
        self.store.clock_offset_ms += int(time.total_seconds() * 1000)

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(milliseconds=self.store.clock_offset_ms)

    async def have_noted(self) -> None:
        """Wait until no task is taken. An attempt that is not noted when the clock is moved is made again."""
        await until(self._has_no_lease)

    async def _has_no_lease(self) -> bool:
        leases = [KEYS["lease"].at(shard) for shard in range(self.store.shards)]
        return not any([await self.store.command("EXISTS", lease) for lease in leases])

    async def tick(self, tube: str = "nobody's", times: int = 3) -> Claim:
        """Claim without taking a task, so that what has fallen due happens."""
        for shard in [*range(1, self.store.shards), *[0] * (times - 1)]:
            await self.claim(tube, 0, shard=shard)
        return await self.claim(tube, 0)

    # the queue

    async def claim(
        self,
        tube: str = "t",
        limit: int = 1,
        *,
        owner: str = "worker",
        lease: timedelta = LEASE,
        account: str = "",
        shard: int = 0,
    ) -> Claim:
        return await self.queue.claim(shard, ClaimRequest(tube, owner, limit, lease, FLOOR, account))

    async def settle_all(self, ends: Sequence[tuple[Task, Settlement]]) -> list[Settled]:
        """Settle attempts, those of each shard together, a page in one step."""
        states: list[Settled] = []
        for shard, of_shard in groupby(ends, key=lambda end: end[0].shard):
            page = list(of_shard)
            for start in range(0, len(page), SETTLES):
                states += await self.queue.settle_page(
                    shard, [end.row(task) for task, end in page[start : start + SETTLES]]
                )
        return states

    async def take(self, tube: str = "t", limit: int = 1, **options: Any) -> list[Task]:
        """Take up to `limit` tasks of each shard."""
        claims = [await self.claim(tube, limit, shard=shard, **options) for shard in range(self.store.shards)]
        return [task for claim in claims for task in claim.tasks]

    async def state(self, task_id: str) -> str:
        return str((await self.queue.inspector.peek(task_id)).state)

    async def finish_all(self, tube: str = "t") -> list[str]:
        """Take and settle until the tube is empty; return the bodies in their order, those of each shard together."""
        done: list[str] = []
        for shard in range(self.store.shards):
            while (claim := await self.claim(tube, 100, shard=shard)).tasks or 0 <= claim.next_at <= claim.now:
                for task in claim.tasks:
                    await self.queue.settle(task)
                    done.append(task.body)
        return done

    # deliveries

    async def deliver(self, *people: Recipient, channels: Sequence[str] = ("echo",), **options: Any) -> Accepted:
        return await self.deliveries.enqueue(order(*people, channels=channels, **options))

    async def history(self, key: HistoryKey, limit: int = 100) -> History:
        return await self.deliveries.read(key, TENANT, limit=limit)

    async def finished(self, key: HistoryKey, within: float = 60.0) -> History:
        await until(lambda: self._is_over(key), within=within)
        return await self.history(key)

    async def _is_over(self, key: HistoryKey) -> bool:
        return (await self.history(key, limit=1)).finished_at is not None

    async def courier(
        self,
        courier: Courier,
        options: CourierOptions = QUICK,
        store: Store | None = None,
        on_refusal: OnRefusal | None = None,
    ) -> Runtime:
        """Start a courier runtime in this process; return after its first claim."""
        runtime = Runtime(store or self.store, courier.channel, options, on_refusal=on_refusal)
        await runtime.add(courier)
        self._couriers[runtime] = asyncio.create_task(runtime.run())
        await until(lambda: runtime.claims > 0)
        self.deliveries = Deliveries(self.store, Channels(self.store, ("echo", "sms")))
        return runtime

    @property
    def runtimes(self) -> list[Runtime]:
        """The couriers that run."""
        return list(self._couriers)

    async def stop(self, runtime: Runtime) -> None:
        """Stop a courier; wait until it has ended."""
        runtime.stop()
        await asyncio.wait_for(self._couriers.pop(runtime), 20)

    def abandon(self, runtime: Runtime) -> None:
        """End a courier without settling its parcels, as a crash does."""
        self._couriers.pop(runtime).cancel()

    # the end

    async def dump(self) -> Dump:
        """Return all keys, from one atomic read."""
        return await dump_through(self._plain)

    async def audit(self) -> None:
        """Assert that all invariants hold."""
        found = await violations_in(self.store)
        assert not found, "\n".join(str(violation) for violation in found)

    async def end_everything(self) -> None:
        """Cancel all unfinished tasks and deliveries, so that the keys that remain can be checked."""
        for runtime in list(self._couriers):
            await self.stop(runtime)
        await self.audit()
        unfinished = unfinished_keys(await self.dump())
        if not unfinished:
            return
        for key in unfinished:
            if key.startswith("queue:"):
                shard, _, name = key.partition("task:")
                await self.store.run("cancel_tasks", int(shard[7:-2]), name)
        await self.deliveries.cancel_by(TENANT, "kind_prefix", "")
        self.advance_clock(HOUR)
        for number in range(self.store.shards):
            await self.queue.claim(number, ClaimRequest("nobody's", "end", 0, LEASE, FLOOR))
        await self.audit()


def person(number: Id, *channels: str, **contacts: Sequence[str]) -> Recipient:
    """Return recipient `number` with the address `p<number>` in each of the channels, and with these contacts."""
    return Recipient(number, contacts={**{channel: [f"p{number}"] for channel in channels or ("echo",)}, **contacts})


def people(count: int, *channels: str) -> list[Recipient]:
    return [person(number, *channels) for number in range(1, count + 1)]


def order(
    *recipients: Recipient, channels: Sequence[str] = ("echo",), text: str = "hello", **options: Any
) -> NewDelivery:
    return NewDelivery(
        options.pop("tenant", TENANT), options.pop("sender", SENDER), text, recipients, channels, **options
    )
