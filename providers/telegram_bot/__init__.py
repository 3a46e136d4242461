"""Telegram's Bot API with aiogram: the client, its errors, the reader of updates.

This module and the reader import no aiogram, which takes a second of processor time.
Source: core.telegram.org/bots/api.
"""

CHANNEL = "telegram-bot"
"""The channel of the contacts of people who write to the bot."""

API_URL = "https://api.telegram.org"
