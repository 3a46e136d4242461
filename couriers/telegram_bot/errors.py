"""Errors of calls of the Bot API, for parts of Ada that do not know aiogram. No text of an error has the token."""

from core.sentence import SentenceError, Text, sentence

TOKEN_REFUSED = sentence("halt_token", provider="Telegram", setting="ADA_BOT_TOKEN")


class BotTokenRefused(Exception):
    """The token was withdrawn; only an operator can help."""


class TelegramUnavailable(Exception):
    """Telegram could not be reached, or asks to be asked later."""


class BotCallFailed(SentenceError):
    """A call by `couriers.telegram_bot.named_calls` has no result. Its text is for people."""


class BotCallRefused(BotCallFailed):
    """The call, the chat or the message is wrong, or the bot may not do this; the text is Telegram's description."""


class CallThrottled(BotCallFailed):
    """Telegram asks to wait `retry_after` seconds."""

    def __init__(self, text: Text, retry_after: int) -> None:
        super().__init__(text)
        self.retry_after = retry_after
