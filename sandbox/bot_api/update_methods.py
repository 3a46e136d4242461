"""The methods by which the bot gets its updates: getUpdates, and those of the webhook."""

from collections.abc import Mapping
from typing import Any

from sandbox.bot_api.state.bot import Bot
from sandbox.bot_api.state.errors import WEBHOOK_IS_ACTIVE, ApiError
from sandbox.bot_api.state.parameters import Parameters
from sandbox.bot_api.state.updates import Webhook, webhook_info


async def get_updates(bot: Bot, parameters: Parameters) -> list[Any]:
    if bot.webhook is not None:
        raise ApiError(409, WEBHOOK_IS_ACTIVE)
    _set_allowed(bot, parameters)
    offset, limit = parameters.integer("offset"), parameters.integer("limit", 100)
    return await bot.updates.poll(offset, limit, parameters.integer("timeout"))


def _set_allowed(bot: Bot, parameters: Parameters) -> None:
    """Set which kinds the bot gets; without the parameter they stay as they are."""
    allowed = parameters.texts("allowed_updates")
    if allowed is not None:
        bot.updates.allowed = allowed


def set_webhook(bot: Bot, parameters: Parameters) -> bool:
    webhook = Webhook.read(parameters)
    _set_allowed(bot, parameters)
    return _use_webhook(bot, webhook, parameters)


def delete_webhook(bot: Bot, parameters: Parameters) -> bool:
    return _use_webhook(bot, None, parameters)


def _use_webhook(bot: Bot, webhook: Webhook | None, parameters: Parameters) -> bool:
    if parameters.flag("drop_pending_updates"):
        bot.updates.clear()
    bot.webhook = webhook
    bot.webhook_sender.stop()
    if webhook is not None:
        bot.updates.end_poll(WEBHOOK_IS_ACTIVE)
        bot.webhook_sender.start(webhook)
    return True


def get_webhook_info(bot: Bot, parameters: Parameters) -> dict[str, Any]:
    return webhook_info(bot.webhook, bot.updates)


UPDATE_METHODS: Mapping[str, Any] = {
    "getUpdates": get_updates,
    "setWebhook": set_webhook,
    "deleteWebhook": delete_webhook,
    "getWebhookInfo": get_webhook_info,
}
