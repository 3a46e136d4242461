"""Calls the token address of a service. What is sent and read is oauthlib's; aiohttp carries it."""

import json
from collections.abc import Mapping
from typing import Any

from aiohttp import ClientError, ClientSession, ClientTimeout
from oauthlib.oauth2 import OAuth2Error, WebApplicationClient
from oauthlib.oauth2.rfc6749.errors import InvalidGrantError

from core.errors import AdaError
from core.sign_in.services import Service

_TIMEOUT = ClientTimeout(total=15)
_LARGEST = 64 * 1024
_HEADERS = {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"}


class ServiceUnavailable(AdaError):
    """The service did not answer as a token address does. Trying again may help."""


class GrantRefused(AdaError):
    """The code or the refresh token is not valid (any more): the user has to sign in again."""


async def fetch_token(service: Service, body: str) -> Mapping[str, Any]:
    """The token that the service returns for a prepared request. Raises GrantRefused, ServiceUnavailable."""
    client = WebApplicationClient(service.client_id)
    text = await _post(service.token_url, body)
    try:
        token: Mapping[str, Any] = client.parse_request_body_response(text)
    except InvalidGrantError as refusal:
        raise GrantRefused(refusal.description or "the service refuses the grant") from None
    except (OAuth2Error, Warning, ValueError) as fault:
        raise ServiceUnavailable(f"the token address answered {type(fault).__name__}") from None
    return token


async def _post(url: str, body: str) -> str:
    """The text of the answer; with a status of 5xx or none, raises ServiceUnavailable."""
    try:
        async with (
            ClientSession(timeout=_TIMEOUT) as session,
            session.post(url, data=body, headers=_HEADERS) as response,
        ):
            if response.status >= 500 or response.status == 429:
                raise ServiceUnavailable(f"the token address answered {response.status}")
            text = (await response.content.read(_LARGEST)).decode(errors="replace")
    except (TimeoutError, ClientError, OSError) as fault:
        raise ServiceUnavailable(f"the token address cannot be reached: {type(fault).__name__}") from None
    return text if _is_json(text) else "{}"


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False
