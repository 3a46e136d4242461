"""A tour through every verb of core, for the laws that hold for all of them."""

from datetime import timedelta

from core.orders import HistoryKey, Recipient
from core.parcels import Entry, load_parcel
from core.port import Message, Outcome, Rejected, Sent
from core.receipts import Receipts
from core.store import Argument, Store
from core.tubes import Tube, Tubes
from core.words import Reason, Status
from tests.core.house import HOUR, SENDER, TENANT, House, Played, person
from tests.servers import Server


class NotingStore(Store):
    """Notes the scripts that are called, with the number of their arguments."""

    called: dict[str, set[int]]

    async def run(self, name: str, shard: int, *arguments: Argument) -> object:
        self.called.setdefault(name, set()).add(len(arguments))
        return await super().run(name, shard, *arguments)


async def noting_house(server: Server) -> tuple[House, NotingStore]:
    plain = await Store.open(server.url)
    store = NotingStore(plain.redis)
    store._flags = plain._flags
    store.called = {}
    return House(store, server), store


async def tour(house: House) -> None:
    """Every verb at least once, with a queue that is in every state at its end."""
    await _through_the_queue(house)
    await _through_deliveries(house)


async def _through_the_queue(house: House) -> None:
    queue = house.queue
    ids = [await queue.put("t", str(n), lane="lane" if n < 3 else "", expires=house.now() + HOUR) for n in range(8)]
    await queue.put("t", "deferred", due=house.now() + HOUR)
    first, second = await house.take(limit=2)
    await queue.extend(first, HOUR, checkpoint="so far")
    await queue.settle(first)
    await queue.release(second)
    await queue.bury(ids[6])
    await queue.kick(ids[6])
    await queue.bury(ids[7])
    await queue.cancel(ids[5])
    await house.take(limit=1)
    await queue.wait(ids[6], "somebody")
    await Tubes(house.store).create(Tube("kept", keep=HOUR / 2))
    await queue.put("kept", "")
    await house.finish_all("kept")
    await queue.purge()
    await queue.hold("t", "account:somebody", timedelta(minutes=1))
    await queue.resign("worker", 0)


async def _through_deliveries(house: House) -> None:
    def answer(message: Message) -> Outcome:
        return Rejected(Reason.BLOCKED) if message.address == "p2" else Sent("1")

    courier = await house.courier(Played(answer=answer))
    key = await house.histories.reserve(TENANT, SENDER.id)
    await house.deliver(person(1), person(2), Recipient(3), history_key=key)
    await house.finished(key)
    await house.histories.retry(key, TENANT, [Status.FAILED])
    await house.finished(key)
    await house.histories.receive(await receipt(house, key), Status.DELIVERED, "1")
    later = (await house.deliver(person(1), person(2), deliver_at=house.now() + HOUR)).key
    await house.histories.reschedule(later, TENANT, house.now() + 2 * HOUR)
    await house.histories.cancel(later, TENANT, ["1"])
    await house.stop(courier)
    await house.deliver(person(1, "nobody"), channels=("nobody",), lane="lane")


async def receipt(house: House, key: HistoryKey, channel: str = "echo", index: int = 0, parcel: int = 0) -> str:
    """The receipt token of an entry of a delivery."""
    return await Receipts(house.store).token(key, channel, parcel, await entry_of(house, key, channel, index, parcel))


async def entry_of(house: House, key: HistoryKey, channel: str, index: int, parcel: int) -> Entry:
    text = await house.store.command("HGET", str(key), f"parcel:{channel}:{parcel}")
    return load_parcel(text)[1][index]
