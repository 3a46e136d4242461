"""Telegram's Bot API, for parts of Ada that do not know aiogram: names, and errors of calls without the token.

Source: core.telegram.org/bots/api.
"""

from core.sentence import SentenceError, Text, sentence

CHANNEL = "telegram-bot"
"""The channel of the contacts of people who write to the bot."""

CHANNELS_OF_IDS = (CHANNEL, "telegram")
"""The channels in which the address of a person is its id in Telegram."""

BOT_API = "telegram"
"""The name by which actions and plugins of scenarios need the Bot API."""

API_URL = "https://api.telegram.org"

TOKEN_REFUSED = sentence("halt_token", provider="Telegram", setting="ADA_BOT_TOKEN")


class BotTokenRefused(Exception):
    """The token was withdrawn; only an operator can help."""


class TelegramUnavailable(Exception):
    """Telegram could not be reached, or asks to be asked later."""


class BotCallFailed(SentenceError):
    """A call by `couriers.telegram_bot.client` has no result. Its text is for people."""


class BotCallRefused(BotCallFailed):
    """The call, the chat or the message is wrong, or the bot may not do this; the text is Telegram's description."""


class CallThrottled(BotCallFailed):
    """Telegram asks to wait `retry_after` seconds."""

    def __init__(self, text: Text, retry_after: int) -> None:
        super().__init__(text)
        self.retry_after = retry_after
