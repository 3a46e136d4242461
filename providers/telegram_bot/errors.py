"""Errors of a call of the Bot API. No text of a broken connection is shown: it can contain the token.

    BotApiError
    ├── NoAnswer        the connection broke; the cause says how
    ├── Unreadable      the answer is not one of the Bot API
    └── Refused         the Bot API says why not
        ├── Throttled, Moved, BadRequest, WrongToken, Forbidden, Conflicting, TooLarge
        └── ServerFault

Source: core.telegram.org/bots/api#making-requests.
"""

from collections.abc import Mapping
from typing import Any

TOKEN_REFUSED = "Telegram does not accept the token: check ADA_BOT_TOKEN"


class TokenRefused(Exception):
    """The token was withdrawn; only an operator can help."""


class BotApiError(Exception):
    """A call without a result."""


class NoAnswer(BotApiError):
    """There is no answer. `cause`: the name of the fault. `is_sent`: whether the call may have been received."""

    def __init__(self, cause: str, *, is_sent: bool) -> None:
        super().__init__(cause)
        self.cause = cause
        self.is_sent = is_sent


class Unreadable(BotApiError):
    """The answer is no JSON object of the Bot API, for example the page of a proxy."""


class Refused(BotApiError):
    """The answer is a refusal. `message`: Telegram's description."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Throttled(Refused):
    """Telegram asks to wait `retry_after` seconds."""

    def __init__(self, message: str, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Moved(Refused):
    """The group has become a supergroup with the id `chat`."""

    def __init__(self, message: str, chat: int) -> None:
        super().__init__(message)
        self.chat = chat


class BadRequest(Refused):
    """The call, the chat or the message is wrong."""


class WrongToken(Refused):
    """There is no bot with this token."""


class Forbidden(Refused):
    """The bot may not write to this chat."""


class Conflicting(Refused):
    """Another program gets the updates of this bot."""


class TooLarge(Refused):
    """The file has too many bytes."""


class ServerFault(Refused):
    """Telegram has a fault; what the call should do may be done."""


FAILURES = (BotApiError, OSError)
"""The errors that a call raises; OSError if a file to upload cannot be read."""

_BY_STATUS: Mapping[int, type[Refused]] = {
    400: BadRequest,
    401: WrongToken,
    403: Forbidden,
    404: WrongToken,
    409: Conflicting,
    413: TooLarge,
}


def error_of(status: int, body: Any) -> BotApiError:
    """Return the error that an answer without a result means. `body`: decoded JSON."""
    if not isinstance(body, dict) or body.get("ok") is not False:
        return Unreadable(f"status {status}")
    message = str(body.get("description") or status)
    hints = body.get("parameters")
    hints = hints if isinstance(hints, dict) else {}
    if isinstance(wait := hints.get("retry_after"), int):
        return Throttled(message, wait)
    if isinstance(chat := hints.get("migrate_to_chat_id"), int):
        return Moved(message, chat)
    return ServerFault(message) if status >= 500 else _BY_STATUS.get(status, Refused)(message)
