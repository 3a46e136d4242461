"""The parts of vkbottle that Ada uses, imported without the changes that vkbottle makes to the whole process."""

import logging
import warnings

with warnings.catch_warnings():  # it replaces warnings.showwarning, so that warnings go into its own log
    from vkbottle import API, ABCResponseValidator, AiohttpClient, BotPolling, CaptchaError, VKAPIError

__all__ = ["API", "ABCResponseValidator", "AiohttpClient", "BotPolling", "CaptchaError", "VKAPIError"]

_log = logging.getLogger("vkbottle")
_log.handlers.clear()  # its own handler would print each line a second time
_log.setLevel(logging.WARNING)  # below are the texts of messages and the answers
