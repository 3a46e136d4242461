"""A tour through every verb of core, for the laws that hold for all of them."""

from datetime import timedelta

from core.courier.interface import Message, Outcome, Rejected, Sent
from core.history.delivery_reports import DeliveryReports
from core.history.parcels import Entry, load_parcel
from core.model.delivery import Recipient
from core.model.history_key import HistoryKey
from core.model.states import Reason, Status
from core.queue.tubes import Tube, Tubes
from core.redis.store import Argument, Store
from tests.support.servers import Server
from tests.support.stack import HOUR, SENDER, TENANT, Played, Stack, person


class NotingStore(Store):
    """Notes the scripts that are called, with the number of their arguments."""

    called: dict[str, set[int]]

    async def run(self, name: str, shard: int, *arguments: Argument) -> object:
        self.called.setdefault(name, set()).add(len(arguments))
        return await super().run(name, shard, *arguments)


async def noting_house(server: Server) -> tuple[Stack, NotingStore]:
    plain = await Store.open(server.url)
    store = NotingStore(plain.redis)
    store._flags = plain._flags
    store.called = {}
    return Stack(store, server), store


async def tour(stack: Stack) -> None:
    """Every verb at least once, with a queue that is in every state at its end."""
    await _through_the_queue(stack)
    await _through_deliveries(stack)


async def _through_the_queue(stack: Stack) -> None:
    queue = stack.queue
    ids = [await queue.put("t", str(n), lane="lane" if n < 3 else "", expires=stack.now() + HOUR) for n in range(8)]
    await queue.put("t", "deferred", due=stack.now() + HOUR)
    first, second = await stack.take(limit=2)
    await queue.extend(first, HOUR, checkpoint="so far")
    await queue.settle(first)
    await queue.release(second)
    await queue.bury(ids[6])
    await queue.kick(ids[6])
    await queue.bury(ids[7])
    await queue.cancel(ids[5])
    await stack.take(limit=1)
    await queue.wait(ids[6], "somebody")
    await Tubes(stack.store).create(Tube("kept", keep=HOUR / 2))
    await queue.put("kept", "")
    await stack.finish_all("kept")
    await queue.purge()
    await queue.throttle("t", "account:somebody", timedelta(minutes=1))
    await queue.release_timer("worker", 0)


async def _through_deliveries(stack: Stack) -> None:
    def answer(message: Message) -> Outcome:
        return Rejected(Reason.BLOCKED) if message.address == "p2" else Sent("1")

    courier = await stack.courier(Played(answer=answer))
    key = await stack.deliveries.reserve(TENANT, SENDER.id)
    await stack.deliver(person(1), person(2), Recipient(3), history_key=key)
    await stack.finished(key)
    await stack.deliveries.retry(key, TENANT, [Status.FAILED])
    await stack.finished(key)
    await stack.deliveries.receive(await receipt(stack, key), Status.DELIVERED, "1")
    later = (await stack.deliver(person(1), person(2), deliver_at=stack.now() + HOUR)).key
    await stack.deliveries.reschedule(later, TENANT, stack.now() + 2 * HOUR)
    await stack.deliveries.cancel(later, TENANT, ["1"])
    await stack.stop(courier)
    await stack.deliver(person(1, "nobody"), channels=("nobody",), lane="lane")


async def receipt(stack: Stack, key: HistoryKey, channel: str = "echo", index: int = 0, parcel: int = 0) -> str:
    """The receipt token of an entry of a delivery."""
    return await DeliveryReports(stack.store).token(
        key, channel, parcel, await entry_of(stack, key, channel, index, parcel)
    )


async def entry_of(stack: Stack, key: HistoryKey, channel: str, index: int, parcel: int) -> Entry:
    text = await stack.store.command("HGET", str(key), f"parcel:{channel}:{parcel}")
    return load_parcel(text)[1][index]
