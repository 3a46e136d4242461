"""The Telegram bot: gets updates from the Bot API. In dialogs it also sends the replies of the conversation.

    Bot API ─▶ polling (one process at a time) ─▶ the queue ─▶ any process: conversation ─▶ sending ─▶ Bot API
                                                    └─ with ADA_SCENARIOS ─▶ `./ada scenarios`

Guarantees: an update is confirmed to Telegram only when it is in the queue. No log line contains the token.
"""

from bots.telegram.bot import TelegramBot, open_bot

__all__ = ["TelegramBot", "open_bot"]
