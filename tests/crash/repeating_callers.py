"""Callers who repeat what failed, until everything has been accepted."""

import asyncio
from collections import Counter
from typing import Any

from aiohttp import ClientError

from tests.crash.api import Api, delivery
from tests.crash.installation import Channel
from tests.support.waiting import until


class Flow:
    """Deliveries to one person each, given to the API by callers who repeat what failed until they have an answer."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._ids: list[str] = []

    async def begin(self, channel: Channel, count: int) -> None:
        """One caller, who has something for so many people, one after the other."""
        for number in range(1, count + 1):
            await self._begin(channel, number)

    async def _begin(self, channel: Channel, number: int) -> None:
        body = delivery({channel.name: channel.address(number)})
        status, told = await until(lambda: self._accepted(body, f"{channel.name} {number}"), within=40)
        assert status == 202
        self._ids.append(told["id"])

    async def _accepted(self, body: object, repeat: str) -> tuple[int, Any] | None:
        try:
            answer = await self._api.post(body, repeat)
        except (ClientError, OSError):
            return None
        return None if answer[0] == 503 else answer

    async def statuses(self) -> Counter[tuple[str, str]]:
        """(channel, status) → how many, once all are over."""
        histories = await asyncio.gather(*(self._over(each) for each in self._ids))
        return Counter(
            (channel, status)
            for told in histories
            for channel, counts in told["channels"].items()
            for status in counts
            if status != "state"
        )

    async def _over(self, delivery_id: str) -> Any:
        return await until(lambda: self._told_if_over(delivery_id), within=40, every=0.1)

    async def _told_if_over(self, delivery_id: str) -> Any:
        status, told = await self._api.ask("GET", f"/v1/deliveries/{delivery_id}")
        return told if status == 200 and told["finished_at"] else None
