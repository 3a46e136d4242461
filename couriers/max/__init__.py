"""MAX, the Bot API by plain aiohttp: the client, its errors, the subscription and the reader of updates.

The ready clients repeat a POST after a lost connection, which sends twice, or keep no headers (docs/decisions/0115).
Source: dev.max.ru, the schema max-messenger/api-schema 0.0.33. Nothing here was tried on the live service.
"""

CHANNEL = "max"
API_URL = "https://platform-api2.max.ru"
