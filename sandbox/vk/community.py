"""The community that sends. It numbers its messages and remembers random ids, as VK does.

VK treats a message with a known random id as a repeat: per dialog, for an hour, among the dialog's last 100 messages
(dev.vk.com, method messages.send).
"""

import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass

from sandbox.rate_limit import RateLimit
from sandbox.state import SandboxState
from sandbox.vk.dialogs import DialogMessage, Dialogs, MessageContent

REMEMBERED_SECONDS = 3600
REMEMBERED_MESSAGES = 100


@dataclass(frozen=True, slots=True)
class RememberedMessage:
    """A message whose random id is remembered."""

    message: DialogMessage
    position: int  # in its dialog: 1 is the first message
    at: float


@dataclass(frozen=True, slots=True)
class _Draft:
    peer: str
    message: DialogMessage
    random_id: int


class Community:
    """Messages are drafts until `commit`, so a request that fails as a whole stores none."""

    def __init__(self, state: SandboxState, clock: Callable[[], float] = time.time) -> None:
        self._state = state
        self._clock = clock
        self._rate_limit = RateLimit()
        self._last = 0
        self.dialogs = Dialogs()
        self._drafts: dict[tuple[str, int], _Draft] = {}
        self._sent: dict[tuple[str, int], RememberedMessage] = {}
        self._order: deque[tuple[tuple[str, int], RememberedMessage]] = deque()
        self._message_counts: Counter[str] = Counter()
        self.newest_to: dict[str, DialogMessage] = {}  # by peer

    def send(self, peer: str, content: MessageContent, random_id: int) -> DialogMessage:
        """Draft a message and return it. A known random id returns its first message."""
        known = self._drafts.get((peer, random_id)) or self._remembered(peer, random_id)
        if known is not None:
            self._state.count("vk", "repeated")
            return known.message
        message = DialogMessage(self._next_id(), self.dialogs.next_number(peer), content)
        self._drafts[peer, random_id] = _Draft(peer, message, random_id)
        return message

    def _next_id(self) -> int:
        self._last += 1
        return self._last

    def receive(self, peer: str) -> tuple[int, int]:
        """Number a message of a person: its id, and its number in the dialog."""
        return self._next_id(), self.dialogs.next_number(peer)

    def knows(self, peer: str, random_id: int) -> bool:
        """Return whether a message with this random id is a repeat."""
        return self._remembered(peer, random_id) is not None

    def _remembered(self, peer: str, random_id: int) -> RememberedMessage | None:
        sent = self._sent.get((peer, random_id))
        if sent is None or self._clock() - sent.at >= REMEMBERED_SECONDS:
            return None
        return sent if self._message_counts[peer] - sent.position < REMEMBERED_MESSAGES else None

    def accepts_request(self, per_second: int) -> bool:
        """Return whether one more request is within this rate, and count it if so."""
        return self._rate_limit.accepts(per_second, self._clock())

    def commit(self) -> None:
        """Deliver the drafts to the inbox."""
        self._drop_expired()
        for draft in self._drafts.values():
            self._remember(draft)
            peer, message = draft.peer, draft.message
            self.newest_to[peer] = message
            self.dialogs.add(peer, message)
            text, reference = message.content.text, str(message.id)
            self._state.receive("vk", peer, text, reference=reference, random_id=draft.random_id)
        self._drafts.clear()

    def discard(self) -> None:
        self._drafts.clear()

    def _remember(self, draft: _Draft) -> None:
        self._message_counts[draft.peer] += 1
        key = (draft.peer, draft.random_id)
        self._sent[key] = RememberedMessage(draft.message, self._message_counts[draft.peer], self._clock())
        self._order.append((key, self._sent[key]))

    def _drop_expired(self) -> None:
        """Drop random ids older than an hour, so memory is bounded by the traffic of an hour."""
        while self._order and self._clock() - self._order[0][1].at >= REMEMBERED_SECONDS:
            key, sent = self._order.popleft()
            if self._sent.get(key) is sent:
                del self._sent[key]
