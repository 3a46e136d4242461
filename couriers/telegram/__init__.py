"""Telegram over MTProto, as a bot or a user."""
