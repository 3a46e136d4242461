"""The bounded store of all messages received.

Appending is O(1): numbers have no gaps, so the oldest message is also the oldest of its address.
"""

from collections import OrderedDict, deque
from collections.abc import Iterator
from itertools import islice

from sandbox.events import ReceivedMessage, WrittenMessage

DEFAULT_CAPACITY = 200_000

KEPT_ADDRESSES = 10_000
KEPT_MESSAGES = 200  # of one address


class Inbox:
    """Keeps the newest `capacity` messages, in the order of their numbers and by address."""

    def __init__(self, capacity: int = DEFAULT_CAPACITY) -> None:
        self._capacity = capacity
        self._messages: dict[int, ReceivedMessage] = {}
        self._by_address: dict[tuple[str, str], deque[ReceivedMessage]] = {}
        self._read_up_to: dict[tuple[str, str], int] = {}
        self._oldest = 1
        self.newest = 0  # the number of the newest message

    def append(self, message: ReceivedMessage) -> None:
        """Store a message with the number `newest + 1`. At capacity the oldest message is dropped."""
        self.newest = message.number
        self._messages[message.number] = message
        self._by_address.setdefault((message.channel, message.address), deque()).append(message)
        if len(self._messages) > self._capacity:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        dropped = self._messages.pop(self._oldest)
        self._oldest += 1
        same_address = self._by_address[dropped.channel, dropped.address]
        same_address.popleft()
        if not same_address:
            del self._by_address[dropped.channel, dropped.address]
            self._read_up_to.pop((dropped.channel, dropped.address), None)

    def read(
        self,
        channel: str | None = None,
        address: str | None = None,
        after: int = 0,
        limit: int | None = None,
        text: str = "",
    ) -> list[ReceivedMessage]:
        """Return the oldest `limit` messages with a number above `after`, filtered by channel, address and a part of
        what they say.
        """
        found = (
            message
            for message in self._candidates(channel, address, after)
            if channel in (None, message.channel) and address in (None, message.address)
            if not text or text.casefold() in f"{message.subject}\n{message.text}\n{message.address}".casefold()
        )
        return list(islice(found, limit))

    def _candidates(self, channel: str | None, address: str | None, after: int) -> Iterator[ReceivedMessage]:
        if channel is not None and address is not None:
            return (message for message in self._by_address.get((channel, address), ()) if message.number > after)
        numbers = range(max(self._oldest, after + 1), self.newest + 1)
        return (self._messages[number] for number in numbers)

    def newest_of(self, channel: str, address: str, count: int) -> list[ReceivedMessage]:
        """Return the newest `count` messages of one address, oldest first."""
        newest = list(islice(reversed(self._by_address.get((channel, address), ())), count))
        return newest[::-1]

    def mark_read(self, channel: str, address: str) -> None:
        """Remember that this recipient has read all messages received so far."""
        if messages := self._by_address.get((channel, address)):
            self._read_up_to[channel, address] = messages[-1].number

    def is_read(self, message: ReceivedMessage) -> bool:
        return message.number <= self._read_up_to.get((message.channel, message.address), 0)

    def recipient_counts(self) -> dict[str, int]:
        """Return the number of recipients with a message, by channel."""
        counts: dict[str, int] = {}
        for channel, _ in self._by_address:
            counts[channel] = counts.get(channel, 0) + 1
        return counts

    def clear(self) -> None:
        """Drop all messages. The numbers continue, so a reader that passes `after` misses nothing."""
        self._messages.clear()
        self._by_address.clear()
        self._read_up_to.clear()
        self._oldest = self.newest + 1

    def __len__(self) -> int:
        return len(self._messages)


class Written:
    """Keeps the newest messages of the addresses that wrote last."""

    def __init__(self) -> None:
        self._by_address: OrderedDict[tuple[str, str], deque[WrittenMessage]] = OrderedDict()
        self._last = 0

    def append(self, channel: str, address: str, text: str, at: float) -> None:
        """Store a message. At capacity the address that has not written for the longest time is dropped."""
        self._last += 1
        same_address = self._by_address.setdefault((channel, address), deque(maxlen=KEPT_MESSAGES))
        same_address.append(WrittenMessage(self._last, channel, address, text, at))
        self._by_address.move_to_end((channel, address))
        if len(self._by_address) > KEPT_ADDRESSES:
            self._by_address.popitem(last=False)

    def read(self, channel: str, address: str) -> list[WrittenMessage]:
        """Return the messages of one address, oldest first."""
        return list(self._by_address.get((channel, address), ()))
