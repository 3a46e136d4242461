"""The bounded store of what people wrote on Telegram, VK and SMS, by person."""

from collections import OrderedDict, deque

from sandbox.events import WrittenMessage

KEPT_ADDRESSES = 10_000
KEPT_MESSAGES = 200  # of one address


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
