"""The client of VK's API: one call, with VK's body as it is, or with its errors as exceptions."""

import json
from datetime import timedelta
from typing import Any

import aiohttp
from vkbottle import API
from vkbottle.api.response_validator import ABCResponseValidator
from vkbottle.http import AiohttpClient

from providers.vk.errors import TOKEN_REFUSED, NotJson, TokenRefused, VkRefused, VkUnavailable, error_code

FAILURES = (aiohttp.ClientError, OSError, NotJson)
"""What a request raises that has no answer of VK."""


class Client:
    """The client of one community. Safe for concurrent calls. `api_url`: "…/method/" of a sandbox in place of VK."""

    def __init__(self, token: str, api_url: str | None, timeout: timedelta = timedelta(seconds=20)) -> None:
        seconds = timeout.total_seconds()
        self._http = AiohttpClient(timeout=aiohttp.ClientTimeout(total=seconds, connect=seconds / 3))
        self._api = API(token, http_client=self._http)
        self._api.response_validators = [_RawValidator()]
        if api_url is not None:
            self._api.API_URL = f"{api_url.rstrip('/')}/"

    async def request(self, method: str, parameters: dict[str, Any]) -> Any:
        """Return VK's body. Raises one of FAILURES."""
        return await self._api.request(method, parameters)

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
            return await self._http.request_json(url, method="GET", params=parameters)
        except (*FAILURES, ValueError) as error:
            raise unreachable(error) from None

    async def upload(self, url: str, field: str, name: str, media_type: str, data: bytes) -> Any:
        """Transfer a file to an address that VK named; return VK's body. Raises one of FAILURES."""
        form = aiohttp.FormData()
        form.add_field(field, data, filename=name, content_type=media_type)
        # vkbottle hands the form to aiohttp, which takes it; its type names only dict.
        return _decoded(await self._http.request_text(url, method="POST", data=form), url)  # type: ignore[arg-type]

    async def close(self) -> None:
        await self._http.close()


def unreachable(error: Exception) -> VkUnavailable:
    """Return the error of a connection, without the text of its cause: that can contain the token."""
    return VkUnavailable(f"VK cannot be reached ({type(error).__name__}): check the network and ADA_VK_API_URL")


class _RawValidator(ABCResponseValidator):
    """Returns VK's body unchanged.

    vkbottle's own validators repeat a call without end when the body is not JSON, and turn errors into exceptions; one
    of them (a captcha without a picture) fails.
    """

    async def validate(self, method: str, data: dict[str, Any], response: Any, ctx_api: Any) -> Any:
        return _decoded(response, method)


def _decoded(text: str, source: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise NotJson(source) from error
