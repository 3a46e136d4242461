"""The batcher: one step per turn of the event loop and key, in order; faults reach the callers of their step."""

import asyncio
from collections.abc import Sequence

from core.queue.batcher import Batcher


class Server:
    """Records the steps it gets. It answers an item with its double, and raises if a step holds a negative one."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, list[int]]] = []
        self.batcher: Batcher[str, int, int] = Batcher(self.send, page=3)

    async def send(self, key: str, items: Sequence[int]) -> list[int]:
        self.steps.append((key, list(items)))
        await asyncio.sleep(0)
        if min(items) < 0:
            raise ValueError("negative")
        return [2 * item for item in items]


async def test_items_of_one_turn_are_sent_in_pages_in_their_order_and_answered_one_by_one() -> None:
    server = Server()
    answers = [server.batcher.add("a", item) for item in range(5)]
    assert await asyncio.gather(*answers) == [0, 2, 4, 6, 8]
    assert server.steps == [("a", [0, 1, 2]), ("a", [3, 4])]


async def test_items_with_different_keys_are_sent_in_different_steps() -> None:
    server = Server()
    await asyncio.gather(server.batcher.add("a", 1), server.batcher.add("b", 2), server.batcher.add("a", 3))
    assert server.steps == [("a", [1, 3]), ("b", [2])]


async def test_items_sent_together_follow_those_added_before() -> None:
    server = Server()
    before = server.batcher.add("a", 0)
    assert await server.batcher.send_all("a", [1, 2, 3, 4]) == [2, 4, 6, 8]
    assert await before == 0
    assert server.steps == [("a", [0]), ("a", [1, 2, 3]), ("a", [4])]


async def test_a_fault_is_raised_to_every_caller_of_its_step_and_to_no_other() -> None:
    server = Server()
    answers = [server.batcher.add(key, item) for key, item in [("a", 1), ("a", -1), ("b", 1)]]
    found = await asyncio.gather(*answers, return_exceptions=True)
    assert [type(one) for one in found] == [ValueError, ValueError, int]


async def test_a_cancelled_caller_does_not_affect_its_step() -> None:
    server = Server()
    cancelled, other = server.batcher.add("a", 1), server.batcher.add("a", 2)
    cancelled.cancel()
    assert await other == 4
    assert server.steps == [("a", [1, 2])]
