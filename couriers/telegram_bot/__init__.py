"""Telegram's Bot API: the client, its errors, the reader of updates. Source: core.telegram.org/bots/api."""

CHANNEL = "telegram-bot"
"""The channel of the contacts of people who write to the bot."""

API_URL = "https://api.telegram.org"
