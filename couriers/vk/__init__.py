"""VK through vkbottle, as a community. One `execute` sends up to 2,500 messages.

The table of VK's answers is in `answers.py`.
"""

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
from vkbottle import API
from vkbottle.api.response_validator import ABCResponseValidator
from vkbottle.http import AiohttpClient

from core.courier import Feature, Message, Outcome, ReadMark, Reason, Rejected, Sent, SetupError, Split
from couriers.vk import answers
from couriers.vk.calls import MAX_CALLS, MAX_CODE, MAX_PEERS, MessageKey, execute_code, group_into_calls, message_key
from couriers.vk.long_poll import read_marks

INVALID_ADDRESS = Rejected(Reason.RECIPIENT_UNREACHABLE, "not a peer id of VK")
TOO_LARGE = Split(Rejected(Reason.CONTENT_REFUSED, "more than one request can carry"))


@dataclass(frozen=True)
class Settings:
    """The fields are ADA_VK_TOKEN and so on."""

    token: str  # of a community, with the right to send messages
    api_url: str | None = None  # "…/method/" of a sandbox in place of VK
    long_poll: bool = False  # read marks; the community needs long poll with the event message_read
    timeout: timedelta = timedelta(seconds=30)  # of one request, which sends up to 2,500 messages


class Vk:
    """Implements `core.courier.Courier`. Safe for concurrent attempts."""

    channel = "vk"
    batch = MAX_CALLS * MAX_PEERS
    parcel = batch
    remembers = timedelta(hours=1)
    shows = frozenset[Feature]()

    def __init__(self, api: API, client: AiohttpClient, *, long_poll: bool = False) -> None:
        self._api, self._client = api, client
        self._group, self._has_long_poll = 0, long_poll
        self.account = ""

    async def attempt(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        keys = [message_key(message) for message in messages]
        outcomes = await self._send([key for key in keys if key is not None])
        return [INVALID_ADDRESS if key is None else self._named(key, outcomes[key]) for key in keys]

    def _named(self, key: MessageKey, outcome: Outcome) -> Outcome:
        """Name the dialog of a sent message, so that a read mark finds it."""
        if not self._has_long_poll or not isinstance(outcome, Sent):
            return outcome
        return Sent(outcome.reference, str(key.peer), int(outcome.reference))

    async def read_marks(self) -> AsyncIterator[ReadMark]:
        if self._has_long_poll:
            async for mark in read_marks(self._api, self._client, self._group):
                yield mark

    async def _send(self, keys: Sequence[MessageKey]) -> dict[MessageKey, Outcome]:
        calls = group_into_calls(keys)
        code = execute_code(calls)
        if len(calls) > MAX_CALLS or (len(code) > MAX_CODE and len(keys) > 1):
            return dict.fromkeys(keys, TOO_LARGE)
        if not calls:
            return {}
        try:
            return answers.outcomes_of(await self._api.request("execute", {"code": code}), calls)
        except (aiohttp.ClientError, OSError, NotJson) as error:
            return dict.fromkeys(keys, answers.outcome_of_error(error))

    async def sign_in(self) -> None:
        """Find the community that the token belongs to; it is the account. Raises SetupError if there is none."""
        body: Any = await self._api.request("groups.getById", {})
        found = body.get("response") if isinstance(body, dict) else None
        groups = found.get("groups") if isinstance(found, dict) else found
        code = answers.error_code(body)
        if code in answers.THROTTLES or code in answers.AMBIGUOUS:
            raise SetupError(
                f"VK does not sign in this community now ({_reason(body)}). {answers.sign_in_remedy(code)}"
            )
        if not groups:
            raise SetupError(f"VK does not accept this token for a community ({_reason(body)}): check ADA_VK_TOKEN")
        self._group = groups[0]["id"]
        self.account = f"club{self._group}"

    async def close(self) -> None:
        await self._client.close()


class NotJson(ValueError):
    """The response is not JSON: usually the error page of a proxy."""


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


async def open(settings: Settings, directory: Path) -> Vk:  # noqa: A001 - the interface's name
    """Check the token and return the courier; `directory` is not used.

    Raises SetupError if VK cannot be reached or refuses the token.
    """
    seconds = settings.timeout.total_seconds()
    client = AiohttpClient(timeout=aiohttp.ClientTimeout(total=seconds, connect=seconds / 3))
    api = API(settings.token, http_client=client)
    api.response_validators = [_RawValidator()]
    if settings.api_url is not None:
        api.API_URL = f"{settings.api_url.rstrip('/')}/"
    courier = Vk(api, client, long_poll=settings.long_poll)
    try:
        await courier.sign_in()
    except (aiohttp.ClientError, OSError, NotJson) as error:
        await courier.close()
        # The error's own text is left out: it can contain the URL and with it the token.
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
