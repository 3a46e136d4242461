"""The client of VK's API: one call, with VK's body as it is, or with its errors as exceptions."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import aiohttp
from vkbottle import API
from vkbottle.api.response_validator import ABCResponseValidator
from vkbottle.http import AiohttpClient

from core.courier import Deferred, Halted, Outcome, Reason, Rejected, Scope
from couriers.vk import outcomes


class NotJson(ValueError):
    """The response is not JSON: usually the error page of a proxy."""


class CallRefused(Exception):
    """VK refuses this call for good; other calls may go on."""


class CallDeferred(Exception):
    """This call cannot be made now, so the message is not sent now. `outcome`: what that means for the message."""

    def __init__(self, outcome: Deferred | Halted) -> None:
        super().__init__(outcome.detail)
        self.outcome = outcome


class Client:
    """One per courier. Safe for concurrent calls."""

    def __init__(self, token: str, api_url: str | None, timeout: timedelta) -> None:
        seconds = timeout.total_seconds()
        self.http = AiohttpClient(timeout=aiohttp.ClientTimeout(total=seconds, connect=seconds / 3))
        self.api = API(token, http_client=self.http)
        self.api.response_validators = [_RawValidator()]
        if api_url is not None:
            self.api.API_URL = f"{api_url.rstrip('/')}/"

    async def request(self, method: str, parameters: dict[str, Any]) -> Any:
        """Return VK's body. Raises NotJson, aiohttp.ClientError, OSError."""
        return await self.api.request(method, parameters)

    async def call(self, method: str, **parameters: Any) -> Any:
        """Return the response of a call that may be repeated. Raises CallRefused, CallDeferred."""
        try:
            body = await self.request(method, parameters)
        except (aiohttp.ClientError, OSError, NotJson) as error:
            raise CallDeferred(_repeatable(outcomes.outcome_of_error(error))) from None
        return _response(body)

    async def upload(self, url: str, field: str, name: str, media_type: str, data: bytes) -> dict[str, Any]:
        """Transfer a file to an address that VK named. Raises CallRefused, CallDeferred."""
        form = aiohttp.FormData()
        form.add_field(field, data, filename=name, content_type=media_type)
        try:
            # vkbottle hands the form to aiohttp, which takes it; its type names only dict.
            text = await self.http.request_text(url, method="POST", data=form)  # type: ignore[arg-type]
            answer = json.loads(text)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise CallDeferred(_repeatable(outcomes.outcome_of_error(error))) from None
        if not isinstance(answer, dict) or answer.get("error"):
            raise CallRefused("the upload was refused")
        return answer

    async def close(self) -> None:
        await self.http.close()


def _response(body: Any) -> Any:
    code = outcomes.error_code(body)
    if code is None and isinstance(body, dict) and "response" in body:
        return body["response"]
    outcome = outcomes.peer_outcome(code) if code else outcomes.NO_ANSWER
    if isinstance(outcome, Rejected):
        raise CallRefused(outcome.detail)
    raise CallDeferred(_repeatable(outcome))


def _repeatable(outcome: Outcome) -> Deferred | Halted:
    """What an outcome means if the call may be made twice: nothing is unclear then. A limit per chat is meant for
    messages.send.
    """
    match outcome:
        case Halted():
            return outcome
        case Deferred(scope=Scope.CHAT):
            return replace(outcome, scope=Scope.ACCOUNT)
        case Deferred():
            return outcome
    return Deferred(Reason.PROVIDER_DOWN, None, Scope.RECIPIENT, getattr(outcome, "detail", ""))


class _RawValidator(ABCResponseValidator):
    """Returns VK's body unchanged.

    vkbottle's own validators repeat a call without end when the body is not JSON, and turn errors into exceptions; one
    of them (a captcha without a picture) fails.
    """

    async def validate(self, method: str, data: dict[str, Any], response: Any, ctx_api: Any) -> Any:
        try:
            return json.loads(response)
        except ValueError as error:
            raise NotJson(method) from error
