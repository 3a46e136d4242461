"""Errors of MAX. No text contains the token."""

from collections.abc import Mapping
from typing import Any

TOKEN_REFUSED = "MAX does not accept the token: check ADA_MAX_TOKEN"


class NotJson(ValueError):
    """The response is not JSON: usually the error page of a proxy."""


class MaxUnavailable(Exception):
    """MAX cannot be reached, or has no time now. `is_throttle`: it asks for a pause, of `after` seconds unless 0."""

    def __init__(self, message: str, *, is_throttle: bool = False, after: float = 0.0) -> None:
        super().__init__(message)
        self.is_throttle = is_throttle
        self.after = after


class MaxRefused(Exception):
    """MAX refuses this call. `code`: its code for it."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code


class MaxTokenRefused(Exception):
    """The token was withdrawn; only an operator can help."""


def error_of(body: Any) -> tuple[str, str]:
    """Return the code and the message of an error, which may come with status 200; "" for both if there is none."""
    if not isinstance(body, Mapping):
        return "", ""
    code, message = body.get("code") or body.get("error"), body.get("message")
    return (code, message if isinstance(message, str) else "") if isinstance(code, str) else ("", "")
