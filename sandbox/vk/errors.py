"""VK's errors (dev.vk.com, reference/errors). All have HTTP status 200."""

from collections.abc import Mapping

from sandbox.events import Fault
from sandbox.vkscript import Value

TEXTS = {
    1: "Unknown error occurred",
    3: "Unknown method passed",
    5: "User authorization failed: invalid access_token (4).",
    6: "Too many requests per second",
    7: "Permission to perform this action is denied",
    8: "Invalid request: v (version) is required",
    9: "Flood control",
    10: "Internal server error: could not check access_token now, check later.",
    12: "Unable to compile code",
    13: "Runtime error occurred during code invocation",
    14: "Captcha needed",
    15: "Access denied",
    17: "Validation required: please open redirect_uri in browser",
    18: "User was deleted or banned",
    27: "Group authorization failed: group revoke access for this token.",
    28: "Application authorization failed: application is disabled",
    29: "Rate limit reached",
    36: "Method execution was interrupted due to timeout",
    100: "One of the parameters specified was missing or invalid",
    113: "Invalid user id",
    900: "Can't send messages for users from blacklist",
    901: "Can't send messages for users without permission",
    902: "Can't send messages to this user due to their privacy settings",
    909: "Can't edit this message, because it's too old",
    911: "Keyboard format is invalid",
    912: "This is a chat bot feature, change this status in settings",
    913: "Too many forwarded messages",
    914: "Message is too long",
    924: "Can't delete this message for everybody",
    917: "You don't have access to this chat",
    936: "Contact not found",
    945: "Chat was disabled",
    950: "Can't send message, reply timed out",
    983: "Unable to use this chat",
    3300: "Recaptcha needed",
}
_EXTRA_FIELDS: dict[int, dict[str, Value]] = {
    14: {"captcha_sid": "239633676097", "captcha_img": "/captcha.php?sid=239633676097"},
    17: {"redirect_uri": "/validate"},
}


def text_of(code: int) -> str:
    return TEXTS.get(code, "Unknown error")


class ApiError(Exception):
    """A response `{"error": …}`."""

    def __init__(self, code: int, text: str | None = None) -> None:
        super().__init__(text or text_of(code))
        self.code = code

    def body(self, method: str, parameters: Mapping[str, str]) -> dict[str, Value]:
        """Return the response body for a whole request that failed. The parameters in it do not include the token."""
        params: list[Value] = [{"key": "method", "value": method}, {"key": "oauth", "value": "1"}]
        params += [{"key": key, "value": value} for key, value in parameters.items() if key != "access_token"]
        extra = _EXTRA_FIELDS.get(self.code, {})
        return {"error": {"error_code": self.code, "error_msg": str(self), **extra, "request_params": params}}


class CallFailed(ApiError):
    """One API call failed. Inside `execute` its result is `false`, with an entry in execute_errors if `listed`."""

    def __init__(self, code: int, text: str | None = None, *, listed: bool = True) -> None:
        super().__init__(code, text)
        self.listed = listed


class RequestFailed(ApiError):
    """The whole HTTP request failed, including `execute`."""


class ConnectionFault(Exception):
    """The connection fails instead of a response; nothing of the request is stored."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.name)
        self.fault = fault


def parameter_error(what: str) -> CallFailed:
    """Return VK's error 100 with its usual text."""
    return CallFailed(100, f"{TEXTS[100]}: {what}")
