"""A client of an API process that a test may kill during a call."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from aiohttp import ClientSession

KEY = "ada_crash"
SETTINGS = {"ADA_API_KEY": KEY, "ADA_QUIET_HOURS": "off"}


def delivery(contacts: Mapping[str, str], text: str = "Пары не будет", **more: Any) -> dict[str, Any]:
    return {
        "sender": {"id": 42},
        "text": text,
        "recipients": [{"id": 1, "contacts": dict(contacts)}],
        "channels": list(contacts),
        **more,
    }


class ApiClient:
    """Calls the API with the operator's key."""

    def __init__(self, url: str, session: ClientSession) -> None:
        self.url = url
        self._session = session

    async def request(self, method: str, path: str, body: object = None, idempotency_key: str = "") -> tuple[int, Any]:
        """Returns status and JSON."""
        headers = {"Authorization": f"Bearer {KEY}"}
        if idempotency_key:
            headers["Idempotency-Key"] = idempotency_key
        async with self._session.request(method, self.url + path, json=body, headers=headers) as response:
            return response.status, await response.json(content_type=None)

    async def post(self, body: object, idempotency_key: str = "") -> tuple[int, Any]:
        return await self.request("POST", "/v1/deliveries", body, idempotency_key)

    async def import_csv(self, kind: str, text: str, idempotency_key: str = "") -> tuple[int, Any]:
        """Imports a file into the directory; returns status and JSON."""
        headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "text/csv"}
        if idempotency_key:
            headers["Idempotency-Key"] = idempotency_key
        path = f"{self.url}/v1/import?kind={kind}"
        async with self._session.post(path, data=text.encode(), headers=headers) as response:
            return response.status, await response.json(content_type=None)

    async def upload(self, name: str, content: bytes) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/pdf"}
        async with self._session.post(f"{self.url}/v1/files?name={name}", data=content, headers=headers) as response:
            return response.status, await response.json(content_type=None)

    async def post_bulk(self, bodies: Sequence[object]) -> list[dict[str, Any]]:
        """Posts many deliveries in one request; returns one result for each, in order."""
        lines = "".join(json.dumps(body) + "\n" for body in bodies)
        headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/x-ndjson"}
        async with self._session.post(self.url + "/v1/deliveries/bulk", data=lines, headers=headers) as response:
            return [json.loads(line) for line in (await response.text()).splitlines()]
