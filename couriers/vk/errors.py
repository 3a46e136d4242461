"""VK's errors, and the codes of those that concern the token or the account. No text contains the token.

14, 17 and 3300 (captcha, validation) need a person. Source: dev.vk.com/reference/errors.
"""

TOKEN_REFUSED = frozenset({5, 27, 28})
AMBIGUOUS = frozenset({1, 10, 950})
THROTTLED = frozenset({6, 9, 29})
NEEDS_PERSON = frozenset({14, 17, 3300})


class NotJson(ValueError):
    """The response is not JSON: usually the error page of a proxy."""


class VkUnavailable(Exception):
    """VK cannot be reached or refuses the call."""


class VkRefused(VkUnavailable):
    """VK refuses this call."""


class TokenRefused(Exception):
    """The token was withdrawn, or is of no community; only an operator can help."""
