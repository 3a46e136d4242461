"""The record of the channel: Telegram's Bot API."""

from core.model.contacts.addresses import BOT_CHAT
from core.model.content import EVERY_FEATURE, Feature
from couriers.channel import Channel, ChannelWebhook, Receiving

CHANNEL = Channel(
    name="telegram-bot",
    courier="couriers.telegram_bot.courier",
    outcomes="couriers.telegram_bot.outcomes",
    place=5,
    titles={"en": "Telegram (bot)", "ru": "Telegram (бот)"},
    shows=EVERY_FEATURE | {Feature.ANSWER},
    section="bot",  # ADA_TELEGRAM_BOT_TOKEN is a setting of `telegram`
    account="ADA_BOT_TOKEN",
    no_account=frozenset({"ADA_BOT_TIMEOUT"}),
    of_installation=frozenset({"ADA_BOT_TENANT", "ADA_BOT_WEBHOOK_URL"}),
    is_per_bot=True,
    is_simulated=True,
    has_topics=True,
    address=BOT_CHAT,
    readers={
        "ADA_BOT_TOKEN": frozenset({"telegram-bot", "bot telegram", "scenarios", "telegram"}),
        "ADA_INBOUND_TELEGRAM_SECRET": frozenset({"serve", "bot telegram"}),
    },
    bot_place=1,
    samples={4: "100004"},
    receiving=Receiving(
        process="telegram",
        events="couriers.telegram_bot.events",
        gathers=True,
        receiver="couriers.telegram_bot.receive",
        webhook=ChannelWebhook(
            path="/v1/inbound/telegram",
            header="X-Telegram-Bot-Api-Secret-Token",
            secret="ADA_INBOUND_TELEGRAM_SECRET",
            title="An update of Telegram's webhook",
            url="ADA_BOT_WEBHOOK_URL",
        ),
        needs=frozenset({"ADA_BOT_TOKEN"}),
        makes_calls=True,
        longest_answer=200,  # answerCallbackQuery
    ),
)
