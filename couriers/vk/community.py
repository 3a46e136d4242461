"""The check of the token: the community that it belongs to."""

from typing import Any

from couriers.vk.client import VkClient, faults
from couriers.vk.errors import (
    AMBIGUOUS,
    NEEDS_PERSON,
    THROTTLED,
    TOKEN_REFUSED,
    TokenRefused,
    VkRefused,
    VkUnavailable,
)
from couriers.vk.library import VKAPIError

LATER = "The token may be right; Ada tries again. Other programs that use this token share its limit."


async def find_community(client: VkClient) -> int:
    """Return the id of the token's community. Raises TokenRefused if it has none; VkUnavailable, VkRefused."""
    with faults("groups.getById"):
        try:
            body: Any = await client.request("groups.getById", {})
        except VKAPIError as error:
            raise _refusal(error.code, str(error)) from None
    found = body.get("response") if isinstance(body, dict) else None
    groups = found.get("groups") if isinstance(found, dict) else found
    group = groups[0] if isinstance(groups, list) and groups else None
    if not isinstance(group, dict) or not isinstance(group.get("id"), int):
        raise TokenRefused("VK does not accept this token for a community (no community): check ADA_VK_TOKEN")
    return int(group["id"])


def _refusal(code: int, text: str) -> VkUnavailable | TokenRefused:
    if code in THROTTLED | NEEDS_PERSON | AMBIGUOUS:
        remedy = "Confirm the account in a browser." if code in NEEDS_PERSON else LATER
        return VkUnavailable(f"VK does not sign in this community now (error {code}: {text}). {remedy}")
    fault = TokenRefused if code in TOKEN_REFUSED else VkRefused
    return fault(f"VK does not accept this token for a community (error {code}: {text}): check ADA_VK_TOKEN")
