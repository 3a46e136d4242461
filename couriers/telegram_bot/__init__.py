"""Telegram's Bot API: the client, its errors, the reader of updates. Source: core.telegram.org/bots/api."""

CHANNEL = "telegram-bot"
"""The channel of the contacts of people who write to the bot."""

CHANNELS_OF_IDS = (CHANNEL, "telegram")
"""The channels in which the address of a person is its id in Telegram."""

BOT_API = "telegram"
"""The name by which actions and plugins of scenarios need the Bot API."""

API_URL = "https://api.telegram.org"
