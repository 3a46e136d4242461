"""Telegram over MTProto through Telethon, as a bot (ADA_TELEGRAM_BOT_TOKEN) or a user (ADA_TELEGRAM_SESSION)."""

from couriers.telegram.settings import Settings
from couriers.telegram.sign_in import open  # noqa: A004 - the interface's name

__all__ = ["Settings", "open"]
