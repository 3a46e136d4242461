"""VK's errors (dev.vk.com, reference/errors): with HTTP they all come as 200."""

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
    911: "Keyboard format is invalid",
    912: "This is a chat bot feature, change this status in settings",
    913: "Too many forwarded messages",
    914: "Message is too long",
    917: "You don't have access to this chat",
    936: "Contact not found",
    945: "Chat was disabled",
    950: "Can't send message, reply timed out",
    983: "Unable to use this chat",
    3300: "Recaptcha needed",
}
_MORE: dict[int, dict[str, Value]] = {
    14: {"captcha_sid": "239633676097", "captcha_img": "/captcha.php?sid=239633676097"},
    17: {"redirect_uri": "/validate"},
}


def text_of(code: int) -> str:
    return TEXTS.get(code, "Unknown error")


class ApiError(Exception):
    """An answer `{"error": …}`."""

    def __init__(self, code: int, text: str | None = None) -> None:
        super().__init__(text or text_of(code))
        self.code = code

    def body(self, method: str, parameters: Mapping[str, str]) -> dict[str, Value]:
        """Return the error as VK shows it for a whole request; the token is not among the parameters."""
        shown: list[Value] = [{"key": "method", "value": method}, {"key": "oauth", "value": "1"}]
        shown += [{"key": key, "value": value} for key, value in parameters.items() if key != "access_token"]
        more = _MORE.get(self.code, {})
        return {"error": {"error_code": self.code, "error_msg": str(self), **more, "request_params": shown}}


class CallFailed(ApiError):
    """One API call failed: inside `execute` it leaves `false` and an entry in execute_errors."""

    def __init__(self, code: int, text: str | None = None, *, listed: bool = True) -> None:
        super().__init__(code, text)
        self.listed = listed


class RequestFailed(ApiError):
    """The HTTP request as a whole failed, `execute` included."""


class Interrupted(Exception):
    """The request ends with a failure of the connection, and nothing of it is kept."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.name)
        self.fault = fault


def parameter_error(what: str) -> CallFailed:
    """Return VK's error 100 with its usual text."""
    return CallFailed(100, f"{TEXTS[100]}: {what}")
