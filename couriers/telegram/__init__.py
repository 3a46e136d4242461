"""Telegram over MTProto, by Telethon: as a bot (ADA_TELEGRAM_BOT_TOKEN) or as a user (ADA_TELEGRAM_SESSION)."""

from couriers.telegram.settings import Settings
from couriers.telegram.signing_in import open  # noqa: A004 - the port's name: couriers are opened

__all__ = ["Settings", "open"]
