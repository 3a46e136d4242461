"""The community that sends: it numbers its messages and remembers random ids, as VK does.

VK takes a message with a known random id for the same message, per dialog, for an hour and among that dialog's last
100 messages (dev.vk.com, method messages.send).
"""

import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass

from sandbox.state import World

REMEMBERED_SECONDS = 3600
REMEMBERED_MESSAGES = 100


@dataclass(frozen=True, slots=True)
class Sent:
    """A message the community remembers."""

    number: int  # message_id
    place: int  # the how many-th message of its dialog
    at: float


@dataclass(frozen=True, slots=True)
class _Draft:
    number: int
    peer: str
    text: str
    random_id: int


class Community:
    """Messages are drafts until `commit`, so that a request that fails as a whole leaves nothing."""

    def __init__(self, world: World, clock: Callable[[], float] = time.time) -> None:
        self._world = world
        self._clock = clock
        self._last = 0
        self._drafts: dict[tuple[str, int], _Draft] = {}
        self._sent: dict[tuple[str, int], Sent] = {}
        self._order: deque[tuple[tuple[str, int], Sent]] = deque()
        self._places: Counter[str] = Counter()

    def send(self, peer: str, text: str, random_id: int) -> int:
        """Draft a message and return its id; a known random id gives the id of the first message with it."""
        known = self._drafts.get((peer, random_id)) or self._remembered(peer, random_id)
        if known is not None:
            self._world.count("vk", "repeated")
            return known.number
        self._last += 1
        self._drafts[peer, random_id] = _Draft(self._last, peer, text, random_id)
        return self._last

    def _remembered(self, peer: str, random_id: int) -> Sent | None:
        sent = self._sent.get((peer, random_id))
        if sent is None or self._clock() - sent.at >= REMEMBERED_SECONDS:
            return None
        return sent if self._places[peer] - sent.place < REMEMBERED_MESSAGES else None

    def commit(self) -> None:
        """The drafts reach their people."""
        self._forget()
        for draft in self._drafts.values():
            self._remember(draft)
            self._world.receive("vk", draft.peer, draft.text, reference=str(draft.number), random_id=draft.random_id)
        self._drafts.clear()

    def discard(self) -> None:
        self._drafts.clear()

    def _remember(self, draft: _Draft) -> None:
        self._places[draft.peer] += 1
        key = (draft.peer, draft.random_id)
        self._sent[key] = Sent(draft.number, self._places[draft.peer], self._clock())
        self._order.append((key, self._sent[key]))

    def _forget(self) -> None:
        """Drop what is older than an hour, so that memory follows the traffic of an hour."""
        while self._order and self._clock() - self._order[0][1].at >= REMEMBERED_SECONDS:
            key, sent = self._order.popleft()
            if self._sent.get(key) is sent:
                del self._sent[key]
