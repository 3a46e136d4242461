"""Telegram through the Bot API: channel `telegram-bot`."""
