"""Calls of the Bot API of Telegram for actions: members, rights, recordings."""
