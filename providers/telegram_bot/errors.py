"""What a request to the Bot API may raise. No text of a network error is shown: it can contain the token."""

from aiogram.exceptions import AiogramError

FAILURES = (AiogramError, OSError, ValueError, TypeError)
"""aiogram lets an answer that is no text pass as ValueError, and fails with TypeError on an error 5xx without a
description.
"""

TOKEN_REFUSED = "Telegram does not accept the token: check ADA_BOT_TOKEN"


class TokenRefused(Exception):
    """The token was withdrawn; only an operator can help."""
