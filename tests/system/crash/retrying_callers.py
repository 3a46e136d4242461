"""Callers of the API that retry each failed request until it is accepted."""

import asyncio
from collections import Counter
from typing import Any

from aiohttp import ClientError

from tests.support.waiting import until
from tests.system.crash.api_client import ApiClient, delivery
from tests.system.crash.installation import Channel


class RetryingCallers:
    """Posts deliveries with one recipient each. Retries after connection errors and 503."""

    def __init__(self, api: ApiClient) -> None:
        self._api = api
        self._ids: list[str] = []

    async def post_many(self, channel: Channel, count: int) -> None:
        """One caller: posts `count` deliveries, one after the other."""
        for number in range(1, count + 1):
            await self._post(channel, number)

    async def _post(self, channel: Channel, number: int) -> None:
        body = delivery({channel.name: channel.address(number)})
        status, response = await until(lambda: self._try_post(body, f"{channel.name} {number}"), within=40)
        assert status == 202
        self._ids.append(response["id"])

    async def _try_post(self, body: object, idempotency_key: str) -> tuple[int, Any] | None:
        try:
            response = await self._api.post(body, idempotency_key)
        except (ClientError, OSError):
            return None
        return None if response[0] == 503 else response

    async def statuses(self) -> Counter[tuple[str, str]]:
        """(channel, status) → number of deliveries, when all are finished."""
        histories = await asyncio.gather(*(self._finished(delivery_id) for delivery_id in self._ids))
        return Counter(
            (channel, status)
            for history in histories
            for channel, counts in history["channels"].items()
            for status in counts
            if status != "state"
        )

    async def _finished(self, delivery_id: str) -> Any:
        return await until(lambda: self._history_if_finished(delivery_id), within=40, every=0.1)

    async def _history_if_finished(self, delivery_id: str) -> Any:
        status, history = await self._api.request("GET", f"/v1/deliveries/{delivery_id}")
        return history if status == 200 and history["finished_at"] else None
