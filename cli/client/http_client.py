"""A running Ada, called over HTTP, for the verbs that a person gives."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

from cli.client import first_api_key as keys
from cli.command import NO, WRONG_USAGE, NotDone
from cli.settings.parsing import Address
from cli.settings.settings import Settings
from core.errors import SetupError

Answer = dict[str, Any]


@dataclass(frozen=True)
class Event:
    """One event of a delivery's stream."""

    name: str
    data: Answer


class Api:
    """`call` answers the decoded body; a refusal by the API is NotDone with its own words."""

    def __init__(self, session: aiohttp.ClientSession, base: str) -> None:
        self._session = session
        self._base = base

    async def call(
        self, method: str, path: str, body: Any = None, query: Mapping[str, str] | None = None, repeat: str = ""
    ) -> Answer:
        """`repeat` is the Idempotency-Key. Raises NotDone."""
        headers = {"Idempotency-Key": repeat} if repeat else {}
        try:
            async with self._session.request(
                method, self._base + path, json=body, params=query, headers=headers
            ) as response:
                return await answered(response)
        except aiohttp.ClientConnectionError as fault:
            raise self._unreachable(fault) from fault

    async def events(self, path: str) -> AsyncIterator[Event]:
        """The stream of a delivery, from its beginning to its end. Raises NotDone, also when it breaks off."""
        try:
            async with self._session.get(self._base + path, timeout=aiohttp.ClientTimeout(total=None)) as response:
                if response.status >= 400:
                    await answered(response)
                async for event in read_events(response.content):
                    yield event
        except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError) as fault:
            raise self._unreachable(fault) from fault

    def _unreachable(self, fault: Exception) -> SetupError:
        return SetupError(f"no Ada answers at {self._base} ({fault}); start `./ada up`, or set ADA_HTTP")


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[Api]:
    """The API where the settings say it is, with the first key. Raises SetupError."""
    async with connected(base_url(settings.http), keys.known(settings)) as api:
        yield api


@asynccontextmanager
async def connected(base: str, key: str) -> AsyncIterator[Api]:
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {key}"}) as session:
        yield Api(session, base.rstrip("/"))


def base_url(address: Address) -> str:
    """How to reach what listens there: who listens everywhere is called on loopback."""
    here = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address.host, address.host)
    return f"http://{Address(here, address.port)}"


async def answered(response: aiohttp.ClientResponse) -> Answer:
    text = await response.text()
    if response.status >= 400:
        raise NotDone(refusal(response.status, text), WRONG_USAGE if response.status == 400 else NO)
    answer: Answer = json.loads(text) if text else {}
    return answer


def refusal(status: int, text: str) -> str:
    """A problem+json as a sentence; anything else as it came."""
    try:
        problem = json.loads(text)
        faults = "; ".join(f"{one['path']}: {one['message']}" for one in problem.get("errors", []))
        return f"{problem['code']}: {faults or problem.get('detail') or problem['title']}"
    except (ValueError, KeyError, TypeError, AttributeError):
        return f"HTTP {status}: {text[:200]}"


async def read_events(stream: aiohttp.StreamReader) -> AsyncIterator[Event]:
    """Server-Sent Events as they come; comments (heartbeats) are left out."""
    name, data = "", ""
    async for raw in stream:
        line = raw.decode().rstrip("\r\n")
        field, _, value = line.partition(": ")
        if field == "event":
            name = value
        elif field == "data":
            data += value
        elif not line and data:
            yield Event(name, json.loads(data))
            name, data = "", ""
