"""The calls of VK's API that Bots Long Poll needs.

Source: dev.vk.com, "Bots Long Poll API". The community must have long poll and its events `message_new` and, for
bots with scenarios, `message_event` switched on.
"""

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from msgspec import Struct

from core.updates.presses import Press

log = logging.getLogger(__name__)

API_URL = "https://api.vk.com/method/"
VERSION = "5.199"
WAIT = 10
"""Seconds that VK holds a request without events."""

_TOKEN_REFUSED = frozenset({5, 27, 28})
_TIMEOUT = aiohttp.ClientTimeout(total=WAIT + 10, connect=10)


class VkUnavailable(Exception):
    """VK cannot be reached or refuses the call. The text contains no token."""


class CallRefused(VkUnavailable):
    """VK refuses this call."""


class TokenRefused(Exception):
    """The token was withdrawn, or is of no community; only an operator can help."""


class Server(Struct, frozen=True):
    """Where to poll. `ts`: the number of the next event."""

    url: str
    key: str
    ts: str


class Events(Struct, frozen=True):
    """The answer to one poll. `ts`: the number of the next event, "" if VK has lost it. `needs_server`: the key is no
    longer valid.
    """

    events: Sequence[Mapping[str, Any]] = ()
    ts: str = ""
    needs_server: bool = False


class VkAccount:
    """The account of a community. Methods raise VkUnavailable, TokenRefused."""

    def __init__(self, session: aiohttp.ClientSession, token: str, api_url: str | None = None) -> None:
        self._session = session
        self._token = token
        self._url = f"{(api_url or API_URL).rstrip('/')}/"

    @classmethod
    @asynccontextmanager
    async def open(cls, token: str, api_url: str | None = None) -> AsyncIterator["VkAccount"]:
        """An account with a connection of its own."""
        async with aiohttp.ClientSession(timeout=_TIMEOUT) as session:
            yield cls(session, token, api_url)

    async def community(self) -> int:
        """The id of the community that the token belongs to."""
        found = await self._call("groups.getById")
        groups = found.get("groups") if isinstance(found, dict) else found
        if not isinstance(groups, list) or not groups or not isinstance(groups[0].get("id"), int):
            raise TokenRefused("The token belongs to no community: check ADA_VK_TOKEN")
        return int(groups[0]["id"])

    async def server(self, community: int) -> Server:
        """Where to poll, from the newest event on."""
        found = await self._call("groups.getLongPollServer", group_id=community)
        if not isinstance(found, dict) or not {"server", "key", "ts"} <= found.keys():
            raise VkUnavailable("the answer has no server; is long poll switched on in the community?")
        return Server(str(found["server"]), str(found["key"]), str(found["ts"]))

    async def poll(self, server: Server) -> Events:
        """Wait for the next events."""
        parameters = {"act": "a_check", "key": server.key, "ts": server.ts, "wait": str(WAIT)}
        answer = await self._request("GET", server.url, params=parameters)
        match answer.get("failed"):
            case 1:  # events too old are gone
                return Events((), str(answer.get("ts", server.ts)))
            case 2:  # the key is no longer valid
                return Events((), server.ts, needs_server=True)
            case failed if failed is not None:  # 3: the key and the position are lost
                return Events((), "", needs_server=True)
        events = answer.get("updates")
        known = [one for one in events if isinstance(one, dict)] if isinstance(events, list) else []
        return Events(known, str(answer.get("ts", server.ts)))

    async def acknowledge(self, press: Press) -> bool:
        """End the wait that a pressed button shows. Returns False if VK was not reached. A press that VK no longer
        knows is only logged.
        """
        try:
            await self._call(
                "messages.sendMessageEventAnswer", event_id=press.id, user_id=press.user_id, peer_id=press.chat_id
            )
        except CallRefused as refusal:
            log.debug("the press %s was not acknowledged: %s", press.id, refusal)
        except VkUnavailable as fault:
            log.debug("the press %s is acknowledged later: %s", press.id, fault)
            return False
        return True

    async def _call(self, method: str, **parameters: object) -> Any:
        data = {"access_token": self._token, "v": VERSION, **parameters}
        body = await self._request("POST", self._url + method, data=data)
        error = body.get("error")
        if isinstance(error, dict):
            if error.get("error_code") in _TOKEN_REFUSED:
                raise TokenRefused("VK does not accept the token: check ADA_VK_TOKEN")
            raise CallRefused(f"{method}: error {error.get('error_code')}")
        return body.get("response")

    async def _request(self, method: str, url: str, **more: Any) -> Mapping[str, Any]:
        try:
            async with self._session.request(method, url, **more) as response:
                body = await response.json(content_type=None)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise VkUnavailable(type(error).__name__) from None  # its own text may contain the token
        if not isinstance(body, dict):
            raise VkUnavailable("the answer is no object")
        return body
