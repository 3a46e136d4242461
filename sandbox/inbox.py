"""The bounded store of everything that people received.

Appending is O(1): numbers grow without gaps, so the oldest message is also the oldest of its address.
"""

from collections import deque
from collections.abc import Iterator
from itertools import islice

from sandbox.events import Received

KEPT = 200_000


class Inbox:
    """Keeps the newest `kept` messages, in the order of their numbers and by address."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._messages: dict[int, Received] = {}
        self._of: dict[tuple[str, str], deque[Received]] = {}
        self._oldest = 1
        self.newest = 0  # the last number given

    def append(self, message: Received) -> None:
        """Store one message whose number is `newest + 1`; the oldest makes room for it."""
        self.newest = message.number
        self._messages[message.number] = message
        self._of.setdefault((message.channel, message.address), deque()).append(message)
        if len(self._messages) > self._kept:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        gone = self._messages.pop(self._oldest)
        self._oldest += 1
        mine = self._of[gone.channel, gone.address]
        mine.popleft()
        if not mine:
            del self._of[gone.channel, gone.address]

    def read(
        self, channel: str | None = None, address: str | None = None, after: int = 0, limit: int | None = None
    ) -> list[Received]:
        """Return the oldest `limit` messages with a number above `after`, of one channel or address or of all."""
        found = (
            message
            for message in self._candidates(channel, address, after)
            if channel in (None, message.channel) and address in (None, message.address)
        )
        return list(islice(found, limit))

    def _candidates(self, channel: str | None, address: str | None, after: int) -> Iterator[Received]:
        if channel is not None and address is not None:
            return (message for message in self._of.get((channel, address), ()) if message.number > after)
        numbers = range(max(self._oldest, after + 1), self.newest + 1)
        return (self._messages[number] for number in numbers)

    def people(self) -> dict[str, int]:
        """Return the number of people reached, by channel."""
        reached: dict[str, int] = {}
        for channel, _ in self._of:
            reached[channel] = reached.get(channel, 0) + 1
        return reached

    def clear(self) -> None:
        """Forget all messages; the numbers go on, so a reader with an `after` misses nothing."""
        self._messages.clear()
        self._of.clear()
        self._oldest = self.newest + 1

    def __len__(self) -> int:
        return len(self._messages)
