"""The check of the token: the community that it belongs to."""

from typing import Any

from providers.vk.client import FAILURES, Client, unreachable
from providers.vk.errors import (
    AMBIGUOUS,
    NEEDS_PERSON,
    THROTTLED,
    TOKEN_REFUSED,
    TokenRefused,
    VkRefused,
    VkUnavailable,
    error_code,
)


async def find_community(client: Client) -> int:
    """Return the id of the token's community. Raises TokenRefused if it has none; VkUnavailable, VkRefused."""
    try:
        body = await client.request("groups.getById", {})
    except FAILURES as error:
        raise unreachable(error) from None
    found = body.get("response") if isinstance(body, dict) else None
    groups = found.get("groups") if isinstance(found, dict) else found
    if not isinstance(groups, list) or not groups or not isinstance(groups[0].get("id"), int):
        raise _refusal(body)
    return int(groups[0]["id"])


def _refusal(body: Any) -> VkUnavailable | TokenRefused:
    code, reason = error_code(body), _reason(body)
    if code is not None and code in THROTTLED | NEEDS_PERSON | AMBIGUOUS:
        return VkUnavailable(f"VK does not sign in this community now ({reason}). {remedy(code)}")
    fault = TokenRefused if code is None or code in TOKEN_REFUSED else VkRefused
    return fault(f"VK does not accept this token for a community ({reason}): check ADA_VK_TOKEN")


def _reason(body: Any) -> str:
    error = body.get("error") if isinstance(body, dict) else None
    return f"error {error.get('error_code')}: {error.get('error_msg')}" if isinstance(error, dict) else "no community"


def remedy(code: int) -> str:
    """Return what an operator does after an error of the sign-in that says nothing about the token."""
    if code in NEEDS_PERSON:
        return "Confirm the account in a browser."
    return "The token may be right; Ada tries again. Other programs that use this token share its limit."
