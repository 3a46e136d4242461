"""The client of VK's API: one call, with VK's body as it is, or with its errors as exceptions.

A call is one POST of aiohttp, which repeats no POST (docs/decisions/0122-vk-is-called-with-plain-aiohttp.md).
"""

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import aiohttp

from providers.vk.errors import TOKEN_REFUSED, NotJson, TokenRefused, VkRefused, VkUnavailable, error_code

API_URL = "https://api.vk.ru/method/"
API_VERSION = "5.199"
FAILURES = (aiohttp.ClientError, OSError, NotJson)
"""The errors of a request that has no response of VK."""


class Client:
    """The client of one community. Safe for concurrent calls. `api_url`: "…/method/" of a sandbox in place of VK."""

    def __init__(self, token: str, api_url: str | None, timeout: timedelta = timedelta(seconds=20)) -> None:
        seconds = timeout.total_seconds()
        self._url = f"{(api_url or API_URL).rstrip('/')}/"
        self._query = {"access_token": token, "v": API_VERSION}
        self._timeout = aiohttp.ClientTimeout(total=seconds, connect=seconds / 3)
        self._session: aiohttp.ClientSession | None = None

    async def request(self, method: str, parameters: Mapping[str, str | int]) -> Any:
        """Return VK's body. Raises one of FAILURES."""
        # A redirect would take the token to another host.
        async with self._open().post(
            self._url + method, params=self._query, data=dict(parameters), allow_redirects=False
        ) as response:
            return await _decoded(response)

    async def call(self, method: str, **parameters: Any) -> Any:
        """Return the response. Raises VkUnavailable, VkRefused, TokenRefused."""
        try:
            body = await self.request(method, parameters)
        except FAILURES as error:
            raise unreachable(error) from None
        code = error_code(body)
        if code in TOKEN_REFUSED:
            raise TokenRefused("VK does not accept the token: check ADA_VK_TOKEN")
        if code is not None:
            raise VkRefused(f"{method}: error {code}")
        if not isinstance(body, dict):
            raise VkUnavailable("the answer is no object")
        return body.get("response")

    async def get(self, url: str, parameters: dict[str, Any]) -> Any:
        """Return the JSON at an address that VK named. Raises VkUnavailable."""
        try:
            async with self._open().get(url, params=parameters) as response:
                return await _decoded(response)
        except (*FAILURES, ValueError) as error:
            raise unreachable(error) from None

    async def upload(self, url: str, field: str, name: str, media_type: str, data: bytes) -> Any:
        """Transfer a file to an address that VK named; return VK's body. Raises one of FAILURES."""
        form = aiohttp.FormData(quote_fields=False)  # names have no quotation marks, and arrive as they are
        form.add_field(field, data, filename=name, content_type=media_type)
        async with self._open().post(url, data=form) as response:
            return await _decoded(response)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    def _open(self) -> aiohttp.ClientSession:
        """Return the session, made at the first call: it belongs to the running event loop."""
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=self._timeout, cookie_jar=aiohttp.DummyCookieJar())
        return self._session


def unreachable(error: Exception) -> VkUnavailable:
    """Return the error of a connection, without the text of its cause: that can contain the token."""
    return VkUnavailable(f"VK cannot be reached ({type(error).__name__}): check the network and ADA_VK_API_URL")


async def _decoded(response: aiohttp.ClientResponse) -> Any:
    try:
        return json.loads(await response.text("utf-8", errors="replace"))
    except (ValueError, RecursionError) as error:
        raise NotJson(response.url.path) from error
