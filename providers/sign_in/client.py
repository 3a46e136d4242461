"""Calls the token address and the revocation address of a service. oauthlib writes and reads, aiohttp transfers."""

import json
import re
from collections.abc import Mapping
from typing import Any

from oauthlib.oauth2 import OAuth2Error, WebApplicationClient
from oauthlib.oauth2.rfc6749.errors import InvalidGrantError

from core.errors import AdaError
from providers.service_call import ServiceUnavailable, call_service
from providers.sign_in.services import Service

_HEADERS = {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"}
_ERROR = re.compile(r"[a-z_]{1,50}")


class GrantRefused(AdaError):
    """The code or the refresh token is not valid (any more): the user has to sign in again."""


async def fetch_token(service: Service, body: str) -> Mapping[str, Any]:
    """Return the token that the service returns for a prepared request. Raises GrantRefused, ServiceUnavailable."""
    client = WebApplicationClient(service.client_id)
    status, text = await _post(service, service.token_url, body)
    if not _is_object(text):
        raise ServiceUnavailable(f"the token address answered {status} without a JSON object")
    try:
        token: Mapping[str, Any] = client.parse_request_body_response(text)
    except InvalidGrantError:
        raise GrantRefused("the service refuses the grant") from None
    except OAuth2Error as fault:
        raise ServiceUnavailable(f"the token address answered {error_of(fault)}") from None
    except (Warning, ValueError, TypeError, OverflowError) as fault:
        raise ServiceUnavailable(f"the answer of the token address is no token: {type(fault).__name__}") from None
    return token


async def revoke_token(service: Service, token: str, hint: str) -> None:
    """Have the service end a token (RFC 7009), also an unknown one. `hint`: the kind of the token. Raises
    ServiceUnavailable.
    """
    secret = {"client_secret": service.client_secret} if service.client_secret else {}
    url, _, body = WebApplicationClient(service.client_id).prepare_token_revocation_request(
        service.revoke_url, token, hint, client_id=service.client_id, **secret
    )
    status, _ = await _post(service, url, body)
    if status != 200:
        raise ServiceUnavailable(f"the revocation address answered {status}")


def error_of(fault: Exception) -> str:
    """Return the code of an error of OAuth 2, which may come from a service or a browser; never any other text of
    theirs."""
    code = str(getattr(fault, "error", ""))
    return code if _ERROR.fullmatch(code) else "an unknown error"


async def _post(service: Service, url: str, body: str) -> tuple[int, str]:
    """Return status and text of the response. Raises ServiceUnavailable."""
    return await call_service("POST", url, service.timeout_seconds, body=body, headers=_HEADERS)


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False
