"""VK, by vkbottle, as a community: 2,500 recipients are one `execute`.

Before: core.courier.runtime. After: api.vk.com. The table of answers is in `answers.py`.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
from vkbottle import API
from vkbottle.api.response_validator import ABCResponseValidator
from vkbottle.http import AiohttpClient

from core.courier import Message, Outcome, Reason, Rejected, SetupError, Split
from couriers.vk import answers
from couriers.vk.calls import LARGEST_CODE, MOST_CALLS, MOST_PEERS, Key, calls_of, code_of, key_of

UNADDRESSED = Rejected(Reason.RECIPIENT_UNREACHABLE, "not a peer id of VK")
TOO_LARGE = Split(Rejected(Reason.CONTENT_REFUSED, "more than one request can carry"))


@dataclass(frozen=True)
class Settings:
    """The fields are ADA_VK_TOKEN and so on."""

    token: str  # of a community, with the right to send messages
    api_url: str | None = None  # "…/method/", for a server that plays VK
    timeout: timedelta = timedelta(seconds=30)  # for one request of up to 2,500 messages


class Vk:
    """A courier of core.courier.interface. Safe for many attempts at once."""

    channel = "vk"
    batch = MOST_CALLS * MOST_PEERS
    parcel = batch
    remembers = timedelta(hours=1)

    def __init__(self, api: API, client: AiohttpClient) -> None:
        self._api, self._client = api, client
        self.account = ""

    async def attempt(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        keys = [key_of(message) for message in messages]
        outcomes = await self._sent([key for key in keys if key is not None])
        return [UNADDRESSED if key is None else outcomes[key] for key in keys]

    async def _sent(self, keys: Sequence[Key]) -> dict[Key, Outcome]:
        calls = calls_of(keys)
        code = code_of(calls)
        if len(calls) > MOST_CALLS or (len(code) > LARGEST_CODE and len(keys) > 1):
            return dict.fromkeys(keys, TOO_LARGE)
        if not calls:
            return {}
        try:
            return answers.read(await self._api.request("execute", {"code": code}), calls)
        except (aiohttp.ClientError, OSError, NotJson) as error:
            return dict.fromkeys(keys, answers.failed(error))

    async def sign_in(self) -> None:
        """Ask who the token belongs to: that is the account."""
        body: Any = await self._api.request("groups.getById", {})
        found = body.get("response") if isinstance(body, dict) else None
        groups = found.get("groups") if isinstance(found, dict) else found
        if not groups:
            raise SetupError(f"VK takes no token of a community here ({_reason(body)}): check ADA_VK_TOKEN")
        self.account = f"club{groups[0]['id']}"

    async def close(self) -> None:
        await self._client.close()


class NotJson(ValueError):
    """The answer is a page, not JSON: a gateway's, most often."""


class _Raw(ABCResponseValidator):
    """Hands VK's body on as it came. vkbottle's own pair repeats a call without end when the body is not JSON, and
    turns errors into exceptions, one of which (a captcha without picture) it cannot build."""

    async def validate(self, method: str, data: dict[str, Any], response: Any, ctx_api: Any) -> Any:
        try:
            return json.loads(response)
        except ValueError as error:
            raise NotJson(method) from error


async def open(settings: Settings, directory: Path) -> Vk:  # noqa: A001 - the port's name: couriers are opened
    """Check the token and return the courier; nothing is kept in `directory`.

    Raises SetupError when VK cannot be reached or does not take the token.
    """
    seconds = settings.timeout.total_seconds()
    client = AiohttpClient(timeout=aiohttp.ClientTimeout(total=seconds, connect=seconds / 3))
    api = API(settings.token, http_client=client)
    api.response_validators = [_Raw()]
    if settings.api_url is not None:
        api.API_URL = f"{settings.api_url.rstrip('/')}/"
    courier = Vk(api, client)
    try:
        await courier.sign_in()
    except (aiohttp.ClientError, OSError, NotJson) as error:
        await courier.close()
        # Not the error's own text: it can hold the address, and with it the token.
        raise SetupError(
            f"VK cannot be reached ({type(error).__name__}): check the network and ADA_VK_API_URL"
        ) from None
    except BaseException:
        await courier.close()
        raise
    return courier


def _reason(body: Any) -> str:
    error = body.get("error") if isinstance(body, dict) else None
    return f"error {error.get('error_code')}: {error.get('error_msg')}" if isinstance(error, dict) else "no community"
