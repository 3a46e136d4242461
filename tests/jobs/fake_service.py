"""An outside service in the test's process: a search with three items, to which a job applies one by one."""

import asyncio

from jobs import Iteration


class FakeService:
    """`gate`: applications wait for it; `applied`: in the order of arrival."""

    def __init__(self) -> None:
        self.applied: list[int] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.waiting = 0
        self.searches = 0

    async def search(self) -> list[int]:
        self.searches += 1
        return [1, 2, 3]

    async def apply(self, item: int) -> str:
        self.waiting += 1
        await self.gate.wait()
        self.applied.append(item)
        return f"letter {item}"

    async def hunt(self, iteration: Iteration) -> None:
        found = await iteration.step("search", self.search)
        await iteration.each(found, self.apply, key=lambda item: item)
