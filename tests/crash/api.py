"""A client of an API process that may be killed under it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from aiohttp import ClientSession

KEY = "ada_crash"
SETTINGS = {"ADA_API_KEY": KEY}


def delivery(contacts: Mapping[str, str], text: str = "Пары не будет", **more: Any) -> dict[str, Any]:
    return {
        "sender": {"id": 42},
        "text": text,
        "recipients": [{"id": 1, "contacts": dict(contacts)}],
        "channels": list(contacts),
        **more,
    }


class Api:
    """Asks with the operator's key."""

    def __init__(self, url: str, session: ClientSession) -> None:
        self.url = url
        self._session = session

    async def ask(self, method: str, path: str, body: object = None, repeat: str = "") -> tuple[int, Any]:
        """Status and JSON. `repeat`: the Idempotency-Key."""
        headers = {"Authorization": f"Bearer {KEY}"} | ({"Idempotency-Key": repeat} if repeat else {})
        async with self._session.request(method, self.url + path, json=body, headers=headers) as answer:
            return answer.status, await answer.json(content_type=None)

    async def post(self, body: object, repeat: str = "") -> tuple[int, Any]:
        return await self.ask("POST", "/v1/deliveries", body, repeat)

    async def post_lines(self, bodies: Sequence[object]) -> list[dict[str, Any]]:
        """Many deliveries in one request; an answer for each, in order."""
        lines = "".join(json.dumps(body) + "\n" for body in bodies)
        headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/x-ndjson"}
        async with self._session.post(self.url + "/v1/deliveries/bulk", data=lines, headers=headers) as answer:
            return [json.loads(line) for line in (await answer.text()).splitlines()]
