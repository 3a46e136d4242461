"""Simulates platform-api2.max.ru, the Bot API of MAX, for one bot: messages, updates, a webhook, uploads, `faults.MAX`.

Written after the pages of dev.max.ru and the schema `max-messenger/api-schema` 0.0.33. What is documented nowhere is
marked "(not documented)" where it is decided.
"""

from sandbox.max.server import MaxServer

__all__ = ["MaxServer"]
