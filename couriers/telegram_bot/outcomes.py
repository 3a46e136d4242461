"""Every answer of the Bot API to a method that sends, edits or deletes, with the outcome it means for the message.

The Bot API does not detect repeats. So an answer that leaves open whether the message was accepted is `Unknown`; a
message is known not to be sent only if Telegram refused it or the connection was never made.
A 429 does not say what its wait applies to. A group has a limit of its own (20 messages per minute), so the wait is for
that chat; so is it if the chat got a part of this message just before (1 per second). Otherwise it is for the bot.
No text of a network error is shown: it can contain the URL and with it the token.
Source: core.telegram.org/bots/api#making-requests, core.telegram.org/bots/faq#my-bot-is-hitting-limits.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta

import aiohttp

from couriers.sending import AnswerRow, Deferred, Halted, Outcome, Reason, Rejected, Scope, Unknown
from couriers.telegram_bot import TOKEN_REFUSED
from couriers.telegram_bot.client import BotClient, NoAnswer
from couriers.telegram_bot.library import exceptions, methods

RECONNECT_AFTER = timedelta(seconds=5)  # given explicitly, so that an outage does not use up the attempts

# The first text that the description contains decides.
FORBIDDEN = {
    "blocked by the user": Reason.BLOCKED,
    "kicked": Reason.BLOCKED,
    "user is deactivated": Reason.RECIPIENT_UNREACHABLE,
    "can't initiate conversation": Reason.PRIVACY,
}
BAD_REQUEST = {
    "message is too long": Reason.CONTENT_REFUSED,
    "message text is empty": Reason.CONTENT_REFUSED,
    "text must be non-empty": Reason.CONTENT_REFUSED,
    "can't parse entities": Reason.CONTENT_REFUSED,
    "caption is too long": Reason.CONTENT_REFUSED,
    "BUTTON_": Reason.CONTENT_REFUSED,  # _DATA_INVALID, _URL_INVALID, …
    "REPLY_MARKUP_": Reason.CONTENT_REFUSED,
    "keyboard button": Reason.CONTENT_REFUSED,
    "inline keyboard": Reason.CONTENT_REFUSED,
    "file": Reason.CONTENT_REFUSED,  # must be non-empty, wrong identifier, is too big, …
    "HTTP URL": Reason.CONTENT_REFUSED,  # Telegram could not fetch it
    "PHOTO_": Reason.CONTENT_REFUSED,
    "IMAGE_PROCESS_FAILED": Reason.CONTENT_REFUSED,
    "VOICE_MESSAGES_FORBIDDEN": Reason.PRIVACY,
    "chat not found": Reason.RECIPIENT_UNREACHABLE,
    "not enough rights": Reason.RECIPIENT_UNREACHABLE,
    "have no rights": Reason.RECIPIENT_UNREACHABLE,
    "need administrator rights": Reason.RECIPIENT_UNREACHABLE,
    "CHAT_WRITE_FORBIDDEN": Reason.RECIPIENT_UNREACHABLE,
    "PEER_ID_INVALID": Reason.RECIPIENT_UNREACHABLE,
}


def outcome_of(error: Exception, chat: str, *, is_first_part: bool = True) -> Outcome:
    """Return the outcome of a part of a message whose request raised this error."""
    match error:
        case exceptions.TelegramRetryAfter():
            scope = scope_of(chat, is_first_part=is_first_part)
            return Deferred(Reason.THROTTLED, timedelta(seconds=error.retry_after), scope, "429")
        case exceptions.TelegramUnauthorizedError() | exceptions.TelegramNotFound():
            return Halted(TOKEN_REFUSED)
        case exceptions.TelegramForbiddenError():
            return Rejected(_reason(FORBIDDEN, error.message), error.message)
        case exceptions.TelegramBadRequest():
            return Rejected(_reason(BAD_REQUEST, error.message), error.message)
        case exceptions.TelegramEntityTooLarge():
            return Rejected(Reason.CONTENT_REFUSED, "413")
        case NoAnswer():
            return _outcome_of_connection(error)
    return _other(error)


def outcome_before_sending(error: Exception, chat: str) -> Outcome:
    """Return the outcome of a message before whose sending a request raised this error: nothing was sent. An edit is
    such a request, too, because the same edit once more changes nothing.
    """
    outcome = outcome_of(error, chat)
    return (
        Deferred(Reason.PROVIDER_DOWN, None, Scope.RECIPIENT, outcome.detail)
        if isinstance(outcome, Unknown)
        else outcome
    )


def is_gone(error: exceptions.TelegramBadRequest) -> bool:
    """Return whether the messages to delete do not exist."""
    return "not found" in error.message and "chat not found" not in error.message


def is_topic_gone(error: exceptions.TelegramBadRequest) -> bool:
    """Return whether the topic of a message was deleted."""
    return "message thread not found" in error.message or "TOPIC_DELETED" in error.message


def is_not_modified(error: exceptions.TelegramBadRequest) -> bool:
    """Return whether the message has this content already."""
    return "message is not modified" in error.message


def needs_caption(error: exceptions.TelegramBadRequest) -> bool:
    """Return whether the message to edit has a file, and so a caption in place of a text."""
    return "there is no text in the message" in error.message


def scope_of(chat: str, *, is_first_part: bool) -> Scope:
    """Return what the wait of a 429 applies to."""
    is_group = chat.startswith(("-", "@"))
    return Scope.CHAT if is_group or not is_first_part else Scope.ACCOUNT


def _reason(table: Mapping[str, Reason], description: str) -> Reason:
    """Return the reason of a refusal. A refusal that is not listed concerns the recipient."""
    return next((reason for text, reason in table.items() if text in description), Reason.RECIPIENT_UNREACHABLE)


def _outcome_of_connection(error: NoAnswer) -> Outcome:
    """Return the outcome of a broken connection. Only a connection that was never made has surely sent nothing."""
    if error.is_sent:
        return Unknown(error.message)
    return Deferred(Reason.PROVIDER_DOWN, RECONNECT_AFTER, Scope.ACCOUNT, error.message)


def _other(error: Exception) -> Outcome:
    """Decide for the errors that have no class, and those after which the message may have been sent."""
    faults = exceptions.TelegramServerError | exceptions.TelegramConflictError
    if isinstance(error, faults) or not isinstance(error, exceptions.TelegramAPIError):
        return Unknown(type(error).__name__)
    if error.message.startswith("Too Many Requests"):  # without retry_after
        return Deferred(Reason.THROTTLED, None, Scope.ACCOUNT, "429")
    return Unknown(error.message)


def answer_tables() -> dict[str, Iterable[AnswerRow]]:
    """Return what the page of answers shows: title → rows."""
    return {"Telegram (Bot API)": _rows()}


def _rows() -> Iterator[AnswerRow]:
    refused, cut = aiohttp.ConnectionTimeoutError(), aiohttp.ServerDisconnectedError()
    yield "connect", "refused, silence", outcome_of(NoAnswer(methods.GetMe(), refused), "1")
    yield "send", "cut, silence", outcome_of(NoAnswer(methods.GetMe(), cut), "1")
    yield "send", "no JSON", outcome_of(_bot_api_error(200, b""), "1")
    for status in (400, 401, 403, 404, 409, 413, 500, 502):
        yield "send", str(status), outcome_of(_bot_api_error(status, b'{"ok": false}'), "1")
    throttled = _bot_api_error(429, b'{"ok": false, "parameters": {"retry_after": 1}}')
    yield "send to a person", "429, retry_after 1", outcome_of(throttled, "1")
    yield "send to a group", "429, retry_after 1", outcome_of(throttled, "-1")


def _bot_api_error(status: int, body: bytes) -> exceptions.AiogramError:
    try:
        result = BotClient("1:x").read(status, body)
    except exceptions.AiogramError as error:
        return error
    raise AssertionError(result)
